"""Interrupts and other signals of programs that `cudart-py run` starts."""

import signal
import subprocess
import sys
import time

import pytest

WAITING = """
import sys
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.bindings import driver

SOURCE = 'extern "C" __global__ void wait(volatile int *flag) { while (!*flag) {} }'
device = Device()
device.set_current()
stream = device.create_stream()
wait = Program(SOURCE, code_type="c++", options=ProgramOptions(arch="sm_90")).compile("cubin").get_kernel("wait")
flag = device.allocate(4, stream=stream)
driver.cuMemsetD32Async(int(flag.handle), 0, 1, stream.handle)
launch(stream, LaunchConfig(grid=1, block=32), wait, flag)
print("waiting", flush=True)
stream.sync()
"""


def interrupted(arguments, first_line):
    """Interrupt `cudart-py run` shortly after its program has printed a line; return the exit status, and the rest."""
    with subprocess.Popen(
        [sys.executable, "-m", "cudart_py", "run", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A process in the background of a shell ignores interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout.readline() == first_line
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
            return process.returncode, rest
        finally:
            process.kill()


def test_an_interrupt_ends_a_script_while_a_kernel_runs(tmp_path):
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    status, rest = interrupted([script], "waiting\n")
    assert rest.endswith("KeyboardInterrupt\n")
    assert status == -signal.SIGINT


WAIT = 'extern "C" __global__ void wait(volatile int *flag) { while (!*flag) {} }'


@pytest.mark.parametrize("place", ["kernel", "host"])
@pytest.mark.parametrize(
    ("handler", "expected"), [("none", -signal.SIGINT), ("before", 42), ("after", 42)], ids=["none", "before", "after"]
)
def test_an_interrupt_belongs_to_the_program(build, ptx, place, handler, expected):
    """The Python that the stand-in starts in a program of C++ must not handle the program's signals."""
    assert interrupted([build("interrupts.cpp"), ptx(WAIT), handler, place], "ready\n") == (expected, "")


def test_signals_that_python_ignores_have_their_default_actions_in_the_program(run):
    handled = run("sh", "-c", "grep SigIgn /proc/$$/status").stdout
    ignored = int(handled.split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))
