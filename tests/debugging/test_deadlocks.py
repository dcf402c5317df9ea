"""Threads that wait for other threads in loops: they go on once these have had a turn, or are named if none will."""

import io
import re

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.debugging.attaching import attached
from cudart_py.debugging.interfaces.command_line import CommandLine
from cudart_py.debugging.session import Session
from cudart_py.simulator.debugging.recorder import HISTORY
from tests.debugging.conftest import Transcript
from tests.forks import own_environment

pytestmark = pytest.mark.needs("debugger")

# The tests refer to line numbers of this text.
SOURCE = """#include <cooperative_groups.h>
extern "C" __global__ void locked(int* lock, int* sum, int released) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *sum = *sum + 1;
    __threadfence();
    if (released)
        atomicExch(lock, 0);
}
extern "C" __global__ void met(int* arrived, int* sum, int absent) {
    if (blockIdx.x == absent)
        return;
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile int*)arrived < gridDim.x) {
        }
        atomicAdd(sum, 1);
    }
}
extern "C" __global__ void synchronised(int* arrived, int* sum, int absent) {
    if (blockIdx.x == absent)
        return;
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) atomicAdd(sum, 1);
}
extern "C" __global__ void timed(int* flag, int* sum, int cycles) {
    long long start = clock64();
    while (*(volatile int*)flag == 0 && clock64() - start < cycles) {
    }
    if (threadIdx.x == 0) *sum = 7;
}
extern "C" __global__ void leaked(int* lock, int* sum, int times) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            if (++*sum == times)
                return;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
extern "C" __global__ void absent(int* flag, int* sum, int n) {
    if (threadIdx.x < n) {
        if (threadIdx.x == 3)
            return;
        sum[threadIdx.x % 2] = 1;
        if (threadIdx.x == 1) {
            atomicAdd(&sum[2], 1);
        }
    }
    else
        while (*(volatile int*)flag == 0) {
        }
}
extern "C" __global__ void several(int* flag, int* sum, int n) {
    if (threadIdx.x == 0)
        sum[1] = 5;
    __syncthreads();
    while (((volatile int*)sum)[threadIdx.x % 3] < 9) {
    }
}
extern "C" __global__ void scattered(int* flag, int* sum, int blocks) {
    if (blockIdx.x >= blocks)
        while (*(volatile int*)flag == 0) {
        }
    switch (threadIdx.x % 8) {
        case 0: return;
        case 1: return;
        case 2: return;
        case 3: return;
        case 4: return;
    }
}
"""
# Without the turns that a lock needs, or if a launch that never ends is not recognised, a launch would take many times
# as many steps.
STEPS = 200_000


@pytest.fixture
def limited(monkeypatch):
    """Limit the steps of launches, in this process and in those that it starts."""
    monkeypatch.setenv("CUDART_PY_SIMULATOR_STEPS", str(STEPS))


@pytest.fixture
def launched(limited):
    """Return a function that launches a kernel under the debugger, and returns the transcript and `sum`."""

    def launch(kernel: str, value: int, commands: str = "run\n", grid: int = 4) -> tuple[Transcript, int]:
        flag, total = cuda.zeros(1, np.int32), cuda.zeros(1, np.int32)
        output = io.StringIO()
        frontend = CommandLine(commands.splitlines(), output)
        session = Session(frontend)
        frontend.attach(session)
        with attached(session):
            module = cuda.compile(SOURCE)
            frontend.read_commands()
            module[kernel].launch(grid, 32, flag, total, value, cooperative=kernel == "synchronised")
            cuda.current_device().synchronize()
        return Transcript(output.getvalue()), int(total.to_host()[0])

    return launch


@pytest.mark.parametrize("commands", ["run\n", "break 5 block 1\nrun\ndelete\ncontinue\n"])
def test_a_lock_passes_from_thread_to_thread(launched, commands):
    assert launched("locked", 1, commands)[1] == 4 * 32


def test_blocks_wait_for_blocks_that_the_debugger_has_not_begun(launched):
    assert launched("met", -1, "break 17 block 0\nrun\ncontinue\n", 20)[1] == 20


def test_threads_that_wait_for_the_clock_are_not_stuck(launched):
    assert launched("timed", 100_000, grid=1)[1] == 7


PROGRAM = """import sys
from pathlib import Path
import numpy as np
import cudart_py as cuda
from cudart_py.simulator.debugging import recorder
one, other = cuda.zeros(1, np.int32), cuda.zeros(3, np.int32)
name, grid, value = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
recorder.HISTORY = int(sys.argv[4])
cuda.compile(Path("waits.cu"))[name].launch(grid, 32, one, other, value, cooperative=name == "synchronised")
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Return a program that launches a kernel of the file beside it.

    All tests run it in its own folder, so that they share a compiled module, whose debugging information has the path.
    """
    folder = tmp_path_factory.mktemp("waits")
    (folder / "waits.cu").write_text(SOURCE)
    path = folder / "waits.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def transcript(program, limited, forks):
    """Return a function that debugs a launch that never ends, and returns the transcript."""

    def debug(*arguments: object, history: int = HISTORY) -> Transcript:
        command = ["debug", program.name, *map(str, (*arguments, history))]
        commands = "run\ninfo barriers\nquit\n"
        ran = forks.run("tests.forks:run_command", command, own_environment(), program.parent, commands)
        assert ran.returncode == 0, ran.stderr
        assert "deadlock" in ran.stdout, ran.stdout
        return Transcript(ran.stdout)

    return debug


def rows_in(text: str) -> list[tuple[str, str]]:
    """Return the threads of a list of threads, and what they wait for or the line after which they have exited."""
    return re.findall(r"^  (.*) \([\d,]+\): (.*)$", text, re.MULTILINE)


@pytest.fixture
def rows(transcript):
    """Return a function that debugs a launch that never ends, and returns the rows of the list that is shown then."""
    return lambda *arguments, **options: rows_in(transcript(*arguments, **options).after("run"))


def test_a_lock_that_is_never_released_is_named_with_the_thread_that_took_it(rows):
    (waiting, reason), (exited, line) = rows("locked", 1, 0)
    assert (waiting, exited) == ("block 0, threads 1-31", "block 0, thread 0")
    where = r"in a loop, waits.cu:3, until the 4 bytes at 0x\w+ \(allocated at waits.py:6\)"
    assert re.fullmatch(
        rf"{where} change \(now 1, written at waits.cu:3 by block \(0, 0, 0\), thread \(0, 0, 0\)\)", reason
    )
    assert line == "exited after waits.cu:7"


def test_the_thread_that_took_a_lock_is_named_even_if_the_recording_begins_later(rows):
    found = rows("leaked", 2, 5, history=300)
    assert len(found) == 4
    holder = next(threads for threads, line in found if line == "exited after waits.cu:36")
    block, thread = re.fullmatch(r"block (\d), thread (\d+)", holder).groups()
    for _, reason in found[:2]:
        assert reason.endswith(f" written at waits.cu:34 by block ({block}, 0, 0), thread ({thread}, 0, 0))")


def test_memory_that_a_launch_never_writes_is_said_to_be_so(rows):
    ((_, reason),) = rows("absent", 1, 0)
    assert reason.endswith(" change (now 0, not written by this launch)")


def test_each_of_several_addresses_is_named_with_its_value_and_its_writer(rows):
    ((_, reason),) = rows("several", 1, 0)
    known = re.findall(r"the 4 bytes at 0x(\w+) \(allocated at waits.py:6\) change \(now (\d), (\w+ \w+)", reason)
    assert [int(address, 16) - int(known[0][0], 16) for address, _, _ in known] == [0, 4, 8]
    assert [found for _, *found in known] == [["0", "not written"], ["5", "written at"], ["0", "not written"]]


@pytest.mark.parametrize(("kernel", "line", "left"), [("met", 15, 12), ("synchronised", 23, 22)])
def test_a_block_that_never_reaches_the_grids_barrier_is_named_with_its_line(rows, kernel, line, left):
    found = rows(kernel, 4, 2)
    assert found[-1] == ("block 2, threads 0-31", f"exited after waits.cu:{left}")
    assert found[0][0] == "blocks 0-1, 3, thread 0"
    assert found[0][1].startswith(f"in a loop, waits.cu:{line}")


def test_threads_have_exited_after_the_line_that_they_executed_last(rows):
    assert rows("absent", 1, 5)[1:] == [
        ("block 0, threads 0, 2, 4", "exited after waits.cu:48"),
        ("block 0, thread 1", "exited after waits.cu:49"),
        ("block 0, thread 3", "exited after waits.cu:46"),
    ]


@pytest.mark.parametrize(("blocks", "lines"), [(1, 6), (0, 0)])
def test_many_lines_of_exited_threads_are_shown_only_by_info_barriers(transcript, blocks, lines):
    shown = transcript("scattered", 2, blocks)
    at_stop, asked = (shown.after(command) for command in ("run", "info barriers"))
    exited = [line for _, line in rows_in(asked) if line.startswith("exited")]
    assert len(exited) == len(set(exited)) == lines
    assert "exited after" not in at_stop
    assert ("  32 threads have exited: `info barriers` shows after which lines" in at_stop) == (lines > 0)


@pytest.mark.parametrize(("limit", "value"), [("SECONDS", "1"), ("STEPS", "10000")])
def test_without_the_debugger_a_launch_that_never_ends_fails_at_a_limit_and_names_the_debugger(python, limit, value):
    program = f"""
import numpy as np
import cudart_py as cuda
try:
    cuda.compile({SOURCE!r})["absent"][1, 32](cuda.zeros(1, np.int32), cuda.zeros(3, np.int32), 5)
    cuda.current_device().synchronize()
except cuda.errors.KernelTimeoutError as error:
    print(error)
"""
    said = python(program, **{f"CUDART_PY_SIMULATOR_{limit}": value}).stdout
    assert re.search(rf"the limit of .* which CUDART_PY_SIMULATOR_{limit} sets \(.*`cudart-py debug` shows who", said)
