"""`cudart-py debug` in a terminal, and the command lines that it refuses."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

import cudart_py as cuda
from cudart_py.__main__ import main
from cudart_py.debugging import attaching
from cudart_py.driver import program_command
from cudart_py.simulator.calls.launches.launches import launch_limits
from tests.debugging.conftest import KERNELS, Transcript

pytestmark = pytest.mark.needs("debugger")

PROGRAM = """
import sys
from pathlib import Path

import numpy as np

import cudart_py as cuda

module = cuda.compile(Path(__file__).with_name("kernels.cu"))
x = cuda.zeros(64, np.float32)
kernel, *arguments = sys.argv[1:]
module[kernel][1, 64](x, *map(int, arguments))
cuda.current_device().synchronize()
print("sum", x.to_host().sum())
"""


@pytest.fixture
def program(tmp_path) -> Path:
    (tmp_path / "kernels.cu").write_text(KERNELS)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


class Terminal:
    """A pseudo-terminal with the debugger, which the `with` block ends."""

    def __init__(self, *arguments: str) -> None:
        self._descriptor, inside = pty.openpty()
        command = [sys.executable, "-m", "cudart_py", "debug", *arguments]
        environment = {**os.environ, "TERM": "dumb"}  # no escape sequences in the output
        self.process = subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, start_new_session=True, env=environment
        )
        os.close(inside)

    def until(self, text: str, seconds: float = 60) -> str:
        """Return the output up to a text."""
        shown = ""
        end = time.monotonic() + seconds
        while text not in shown:
            assert select.select([self._descriptor], [], [], max(0, end - time.monotonic()))[0], shown
            try:
                shown += os.read(self._descriptor, 4096).decode()
            except OSError:  # the end of the process
                break
        return shown.replace("\r\n", "\n")

    def type(self, text: str) -> None:
        """Send keys."""
        os.write(self._descriptor, text.encode())

    def command(self, text: str) -> str:
        """Type a command, and return what it shows."""
        self.type(f"{text}\n")
        return self.until("(cudart-py) ").removeprefix(f"{text}\n").removesuffix("(cudart-py) ")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def test_a_deadlock_in_a_terminal_shows_who_waits_and_where_the_others_are(program):
    with Terminal(str(program), "stuck") as terminal:
        assert re.search(r"\bbreak\b.*\brun\b.*\bhelp\b", terminal.until("(cudart-py) ")), (
            "the first commands are named"
        )
        stop = terminal.command("run")
        assert "deadlock: 40 threads wait" in stop
        line = KERNELS.splitlines().index('        asm volatile("bar.sync 1, 64;");') + 1
        waiting, others = terminal.command("info barriers").split("not waiting:")
        assert re.search(rf"threads 0-39 \(40\): at barrier 1 for 64 threads, \S*kernels.cu:{line}\n", waiting)
        assert "threads 40-63 (24): exited" in others
        # An empty line shows more memory.
        shown = [terminal.command(text).split(":")[0] for text in ("x/2dw x", "", "")]
        assert [int(address, 16) - int(shown[0], 16) for address in shown] == [0, 8, 16]
        # An empty line repeats a step. Going back from the end, the threads that exited are present again.
        terminal.command("thread 39")
        assert "[in the past]" in terminal.command("reverse-step")
        assert "[in the past]" in terminal.command("")
        assert re.search(r"1 +0xffffffff +runs", terminal.command("info warps"))
        terminal.type("quit\n")
        assert terminal.process.wait(30) == 0


def test_control_c_stops_a_kernel_that_does_not_end(program, tmp_path):
    (tmp_path / "kernels.cu").write_text(
        'extern "C" __global__ void turns(volatile float* x) {\n'
        "    int i = 0;\n    while (x[0] == 0) {\n        i++;\n    }\n}\n"
    )
    with Terminal("--break", "turns", str(program), "turns") as terminal:
        terminal.until("(cudart-py) ")
        counts = []
        for _ in range(2):
            os.kill(terminal.process.pid, signal.SIGINT)  # at the prompt, it does nothing
            terminal.type("continue\n")
            time.sleep(0.3)
            os.kill(terminal.process.pid, signal.SIGINT)
            assert "Interrupted." in terminal.until("(cudart-py) ")
            counts.append(int(terminal.command("print i")))
        assert 0 < counts[0] < counts[1]
        terminal.type("quit\n")
        assert terminal.process.wait(30) == 0


def test_control_c_ends_a_search_through_the_recorded_history(program, tmp_path):
    (tmp_path / "kernels.cu").write_text(
        'extern "C" __global__ void turns(volatile float* x) {\n    while (x[0] == 0) {\n        x[1] += 1;\n    }\n}\n'
    )
    with Terminal("--break", "turns", str(program), "turns") as terminal:
        terminal.until("(cudart-py) ")
        terminal.type("continue\n")
        time.sleep(4)
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.until("(cudart-py) ")
        terminal.command("watch x[0]")
        terminal.type("reverse-continue\n")
        time.sleep(0.5)
        os.kill(terminal.process.pid, signal.SIGINT)
        shown = terminal.until("(cudart-py) ", 8)
        assert "Interrupted." in shown
        assert "[in the past]" in shown


def test_control_c_stops_a_block_that_is_not_recorded_at_its_beginning_and_then_where_it_is(program, tmp_path):
    (tmp_path / "kernels.cu").write_text(
        'extern "C" __global__ void turns(volatile float* x) {\n'
        "    int i = 0;\n    while (blockIdx.x && x[0] == 0) {\n        i++;\n    }\n}\n"
    )
    program.write_text(PROGRAM.replace("[1, 64]", "[2, 64]"))

    def interrupted(terminal: Terminal) -> str:
        """Interrupt the launch in the second block, and return the value of a variable."""
        for _ in range(20):
            terminal.type("continue\n")
            time.sleep(0.3)
            os.kill(terminal.process.pid, signal.SIGINT)
            assert "Interrupted." in terminal.until("(cudart-py) ")
            if terminal.command("print blockIdx.x").strip() == "1":
                break
        return terminal.command("print i").strip()

    with Terminal("--break", "turns block 0", str(program), "turns") as terminal:
        terminal.until("(cudart-py) ")
        assert not interrupted(terminal).isdigit(), "the variable does not exist yet"
        assert int(interrupted(terminal)) > 0
        terminal.type("quit\n")
        assert terminal.process.wait(30) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["absent.py"], "absent.py does not exist"), (["--break", "", "{program}"], "argument --break: name a line")],
)
def test_a_command_line_that_is_wrong_is_refused(program, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(["debug", *(text.format(program=program) for text in arguments)])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_late_block_that_fails_shows_its_state_although_it_ran_without_being_recorded_at_first(tmp_path):
    (tmp_path / "kernels.cu").write_text(
        'extern "C" __global__ void late(float* x, int bad) {\n'
        "    int i = blockIdx.x;\n    atomicAdd(x, 1.0f);\n    atomicAdd(&x[i == bad ? 1 << 20 : 1], 1.0f);\n}\n"
    )
    (tmp_path / "program.py").write_text(PROGRAM.replace("[1, 64]", "[2000, 1]"))
    command = [sys.executable, "-m", "cudart_py", "debug", "program.py", "late", "1777"]
    commands = "run\nup\nprint i\nprint x[0]\nreverse-next\nreverse-next\nprint x[0]\ncontinue\ncontinue\n"
    done = subprocess.run(command, input=commands, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert "out of bounds" in done.stdout
    values = re.findall(r"\(cudart-py\) print .*\n(.*)\n", done.stdout)
    assert values == ["1777", "1778", "1777"]
    assert "IllegalAddressError" in done.stderr


def test_commands_are_read_where_the_debugger_began_although_the_program_captures_its_streams(tmp_path):
    (tmp_path / "test_kernel.py").write_text(
        "import numpy as np, cudart_py as cuda\n\n"
        "def test_ones():\n    print('captured')\n"
        "    x = cuda.zeros(32, np.int32)\n"
        "    cuda.compile('extern \"C\" __global__ void ones(int* x) { x[threadIdx.x] = 1; }')['ones'][1, 32](x)\n"
        "    assert x.to_host().sum() == 32\n"
        "def test_more():\n    test_ones()\n"
    )
    command = [sys.executable, "-m", "cudart_py", "debug", "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path]
    commands = "print 1\nbreak ones\nbreak absent.cu:7\nrun\nprint threadIdx.x + 5\ndelete 1\ncontinue\n"
    done = subprocess.run(command, input=commands, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert "(cudart-py) print threadIdx.x + 5\n5\n" in done.stdout, done
    assert "captured" not in done.stdout
    assert "2 passed" in done.stdout
    assert "Breakpoint 2 at absent.cu:7 was not set" in done.stdout
    assert "the program has not started: type run" in done.stdout
    # Ending the debugger ends the tests that are left, too.
    ended = subprocess.run(
        command, input="break ones\nrun\nquit\n", capture_output=True, text=True, cwd=tmp_path, timeout=100
    )
    assert ended.returncode == 0
    assert "ILLEGAL_STATE" not in ended.stderr
    assert ended.stdout.count("Breakpoint 1, ") == 1


def test_quit_ends_the_debugger_with_status_0_although_the_program_catches_it_and_ends_by_itself(tmp_path):
    (tmp_path / "program.py").write_text(
        "import sys\n\nimport numpy as np\n\nimport cudart_py as cuda\n\n"
        "x = cuda.zeros(32, np.int32)\n"
        "cuda.compile('extern \"C\" __global__ void ones(int* x) { x[threadIdx.x] = 1; }')['ones'][1, 32](x)\n"
        # The launch ends at the first wait. Since the second one has failed, too, no work is left.
        "for _ in range(3):\n"
        "    try:\n        cuda.current_device().synchronize()\n"
        "    except BaseException as end:\n        print('caught', type(end).__name__)\n"
        "sys.exit(3)\n"
    )
    command = [sys.executable, "-m", "cudart_py", "debug", "--break", "ones", "program.py"]
    done = subprocess.run(command, input="quit\n", capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert "caught QuitDebugger\n" in done.stdout, done
    assert "The program has ended" not in done.stdout
    assert done.returncode == 0


def test_the_full_screen_needs_a_terminal(program, capsys, monkeypatch):
    with open(os.devnull) as empty:
        monkeypatch.setattr(sys, "stdin", empty)
        assert main(["debug", "--screen", str(program), "total"]) == 2
    assert "--screen needs a terminal" in capsys.readouterr().err


def test_only_python_programs_are_debugged(program, capsys):
    assert main(["debug", str(program.with_name("kernels.cu"))]) == 2
    assert "is C++" in capsys.readouterr().err


def test_a_driver_without_the_capability_is_refused_by_the_command_and_by_the_call(program, monkeypatch, capsys):
    for module in (attaching, program_command):
        monkeypatch.setattr(module, "capabilities", frozenset)
    assert main(["debug", str(program)]) == 2
    assert "use cuda-gdb" in capsys.readouterr().err
    with pytest.raises(cuda.errors.NotSupportedError, match="lacks the capability 'debugger'"), cuda.debugger():
        pass


def test_a_launch_has_no_limit_of_seconds_while_a_debugger_is_attached_unless_the_environment_sets_one(monkeypatch):
    monkeypatch.delenv("CUDART_PY_SIMULATOR_SECONDS", raising=False)
    before = launch_limits()
    with cuda.debugger(commands=[]):
        assert launch_limits() == (before[0], None)
        monkeypatch.setenv("CUDART_PY_SIMULATOR_SECONDS", "7")
        assert launch_limits() == (before[0], 7)
    monkeypatch.delenv("CUDART_PY_SIMULATOR_SECONDS")
    assert launch_limits() == before
    assert before[1] is not None


def test_help_lists_the_commands_also_without_docstrings(python):
    program = """
import cudart_py as cuda

with cuda.debugger("nothing", commands=["help"]):
    cuda.compile('extern "C" __global__ void nothing() {}')["nothing"][1, 32]()
    cuda.Device(0).synchronize()
"""
    documented, plain = (python(program, own_imports=True, PYTHONOPTIMIZE=level).stdout for level in ("1", "2"))
    assert "print [/FORMAT] EXPRESSION\n    " in documented
    assert re.search(r"^print \[/FORMAT\] EXPRESSION\nx ", plain, re.MULTILINE)


def test_a_breakpoint_in_a_python_file_is_reported_there(tmp_path):
    (tmp_path / "doubled.py").write_text(
        "import numpy as np\nimport cudart_py as cuda\n\n"
        'SOURCE = """\nextern "C" __global__ void doubled(int* x)\n'
        '{\n    int i = threadIdx.x;\n    x[i] *= 2;\n}\n"""\n'
        'cuda.compile(SOURCE)["doubled"][1, 64](cuda.zeros(64, np.int32))\n'
    )
    command = [sys.executable, "-m", "cudart_py", "debug", "doubled.py"]
    commands = "break doubled.py:7\nrun\ntbreak doubled.py:8\ninfo breakpoints\nbreak 5\ncontinue\nquit\n"
    done = subprocess.run(command, input=commands, capture_output=True, text=True, cwd=tmp_path, check=True)
    shown = Transcript(done.stdout)
    assert shown.after("run").startswith("Breakpoint 1, doubled.py:7\n")
    assert shown.after("tbreak doubled.py:8") == "Breakpoint 2 at doubled.py:8\n"
    listed = re.findall(r"^ +\d  (\S+),", shown.after("info breakpoints"), re.MULTILINE)
    assert listed == ["doubled.py:7", "doubled.py:8"]
    assert shown.after("break 5") == "Breakpoint 3 at kernel.cu:5\n", "it was set by a line of the kernel's own text"
    assert shown.after("continue").startswith("Breakpoint 2, doubled.py:8\n")
