"""The debugger's commands: breakpoints, steps in both directions, and the tables of a stopped launch."""

import contextlib
import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.debugging.conftest import KERNELS, column
from tests.planted.cases import FOLDER

pytestmark = pytest.mark.needs("debugger")

PAIR = np.dtype([("x", "f4"), ("y", "i4", 3)])


def line_of(text: str) -> int:
    """Return the last line that a stop has shown."""
    return int(re.findall(r"^ +(\d+)  ", text, re.MULTILINE)[-1])


def test_a_breakpoint_stops_only_the_block_and_thread_that_its_condition_selects(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(3, np.float32)
    shown = debugged(
        "break kernels.cu:11 block 2 if threadIdx.x == 37 && value > 0\nrun\nprint value\ncontinue\n",
        "total", x, out, 64, grid=3,
    )  # fmt: skip  # one call
    assert "block (2, 0, 0), thread (37, 0, 0), warp 1 lane 5" not in shown  # x has 64 elements, so value is 0 there

    shown = debugged(
        "break kernels.cu:11 block 0 if threadIdx.x == 37 && value > 0\nrun\nprint value\ncontinue\n",
        "total", x, out, 64, grid=3,
    )  # fmt: skip  # one call
    assert "block (0, 0, 0), thread (37, 0, 0), warp 1 lane 5" in shown.after("run")
    assert float(shown.after("print value")) == numbers[37]
    assert shown.after("continue") == ""
    np.testing.assert_array_equal(out.to_host(), [numbers.sum(), 0, 0])


def test_a_breakpoint_may_name_a_function_a_kernel_and_a_thread(debugged, numbers):
    x, pair = cuda.to_device(np.concatenate([numbers, numbers])), np.array((1.5, (4, 5, 6)), PAIR)
    commands = "break kernels.cu:23 kernel total\nbreak scaled thread 33\nrun\nfinish\ninfo breakpoints\n"
    shown = debugged(commands, "calls", x, pair)
    assert "Breakpoint 2, " in shown.after("run")
    assert "thread (33, 0, 0), warp 1 lane 1, active lanes 0xffffffff\nscaled, " in shown.after("run")
    assert line_of(shown.after("finish")) == 24
    listed = shown.after("info breakpoints")
    assert re.search(r"kernels.cu:23 kernel total, hit 0 times\n.*:3 thread 33, hit 1 times", listed)


def test_lanes_have_their_own_values_and_the_mask_shows_which_are_active(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    shown = debugged(
        "break kernels.cu:15 if step == 16\nrun\nlanes threadIdx.x, value, tile[threadIdx.x + step]\ninfo warps\n",
        "total", x, out, 64,
    )  # fmt: skip  # one call
    assert "active lanes 0x0000ffff" in shown.after("run")
    table = shown.after("lanes threadIdx.x, value, tile[threadIdx.x + step]")
    assert list(map(float, column(table, "value"))) == numbers[:16].tolist()
    folded = numbers[:32] + numbers[32:]
    assert list(map(float, column(table, "tile[threadIdx.x + step]"))) == folded[16:].tolist()
    warps = shown.after("info warps")
    assert re.search(r"> +0 +0x0000ffff +runs +\S+:15", warps)
    assert re.search(r" 0 +0xffff0000 +ready +\S+:17", warps)


def test_steps_go_into_functions_or_over_them_and_finish_returns(debugged, numbers):
    x = cuda.to_device(np.concatenate([numbers, numbers]))
    pair = np.array((1.5, (4, 5, 6)), PAIR)
    shown = debugged(
        "break calls\nrun\nnext 2\nstep\nbacktrace\nprint pair.y[1] * 2\nup\nprint small\nlanes small\n"
        "finish\nnext\nprint result\nprint copy\n",
        "calls", x, pair,
    )  # fmt: skip  # one call
    assert [line_of(shown.after(command)) for command in ("run", "next 2", "step", "finish", "next")] == [
        22,
        24,
        3,
        24,
        25,
    ]
    assert re.search(r"#0 +scaled .*:3\n +#1 +calls .*:24", shown.after("backtrace"))
    assert shown.after("print pair.y[1] * 2") == "10\n"
    assert shown.after("print small") == "200\n"
    assert column(shown.after("lanes small"), "small") == [str(200 + lane) for lane in range(32)]
    assert float(shown.after("print result")) == 2 * numbers[0] + 5
    assert shown.after("print copy") == f"{{x = {1.5 + 2 * numbers[0]:.7g}, y = {{4, 5, 6}}}}\n"


def test_going_back_shows_registers_and_memory_as_they_were(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    shown = debugged(
        "break kernels.cu:19\nrun\nprint tile[0]\nreverse-next\nreverse-continue\n"
        "break kernels.cu:15 if step == 1\ndelete 1\ncontinue\nprint tile[0]\nnext\nprint tile[0]\n"
        "reverse-step\nprint tile[0]\nreverse-continue\ncontinue\ncontinue\n",
        "total", x, out, 64,
    )  # fmt: skip  # one call
    whole = numbers.sum()
    first = numbers[0::2].sum()
    assert float(shown.after("print tile[0]")) == whole
    assert line_of(shown.after("reverse-next")) == 13
    assert "history begins here" in shown.after("reverse-continue")
    assert "[in the past]" in shown.after("continue")
    assert float(shown.after("print tile[0]", 1)) == first
    assert float(shown.after("print tile[0]", 2)) == whole
    assert float(shown.after("print tile[0]", 3)) == first
    assert out.to_host()[0] == whole, "going back must not change what the launch computes"


def test_shared_memory_is_a_grid_with_the_threads_and_lines_that_wrote_it(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    shown = debugged("break kernels.cu:13\nrun\nnext\nnext\nnext\ninfo shared tile\n", "total", x, out, 64)
    values, writers = shown.after("info shared tile").split("written by")
    cells = [cell for line in values.splitlines()[2:] for cell in line.split()[1:]]
    expected = numbers.copy()
    expected[:32] += numbers[32:]
    assert list(map(float, cells)) == expected.tolist()
    cells = [cell for line in writers.splitlines()[2:] for cell in line.split()[1:]]
    assert cells == [f"{thread}:{15 if thread < 32 else 11}" for thread in range(64)]


def test_the_launch_stops_where_the_race_is(debugged, numbers):
    x = cuda.to_device(numbers)
    with pytest.warns(cuda.errors.SimulatorWarning, match="race"):
        shown = debugged("run\nprint threadIdx.x\ninfo shared\ncontinue\n", "reversed", x)
    stop = shown.after("run")
    assert "race: it reads 4 bytes of shared memory" in stop
    assert (
        line_of(stop)
        == KERNELS.splitlines().index("    x[threadIdx.x] = tile[7 - threadIdx.x / 8][7 - threadIdx.x % 8];") + 1
    )
    # The grid has the shape of the declaration.
    grid = shown.after("info shared").split("written by")[0].splitlines()
    assert grid[0].startswith("float[8][8] tile")
    assert [list(map(float, line.split()[1:])) for line in grid[2:]] == numbers.reshape(8, 8).tolist()


@pytest.mark.parametrize(
    ("kernel", "ordered"), [("all_store_late_fence", False), ("all_store_without_fence", False),
                            ("all_fence_then_count", True), ("one_fences_for_all", True)]
)  # fmt: skip  # rows of a table
def test_races_between_blocks_are_found_although_the_debugger_runs_one_block_after_another(debugged, kernel, ordered):
    out, partial, count = cuda.zeros(64, np.float32), cuda.zeros(512, np.float32), cuda.zeros(1, np.uint32)
    with contextlib.nullcontext() if ordered else pytest.warns(cuda.errors.SimulatorWarning, match="race"):
        shown = debugged("run\ncontinue\n", kernel, out, partial, count, 512, grid=8, source=FOLDER / "orders.cu")
    assert ("race" in shown.after("run")) != ordered


def test_conditions_and_expressions_that_are_wrong_are_explained(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    shown = debugged(
        "break\nbreak kernels.cu:11 blok 2\nbreak total block x\nbreak total if nothing > 1\nbreak total if n ==\nrun\n"
        "print value +\n"
        "print x.y\nprint *n\nprint 1 / 0\nprint x[1LL << 40]\nthread 99\nstep x\nfly\ninfo shared nothing\n",
        "total", x, out, 64,
    )  # fmt: skip  # one call
    said = {
        "break": "name a line", "break kernels.cu:11 blok 2": "'blok 2' is not understood",
        "break total if n ==": "the expression 'n ==' is incomplete",
        "break total block x": "block needs one to three numbers",
        "run": "the condition 'nothing > 1' has no value: no variable is named 'nothing'",
        "print value +": "is incomplete", "print x.y": "a float has no members", "print *n": "a int is not a pointer",
        "print 1 / 0": "-", "print x[1LL << 40]": "-", "thread 99": "there is no thread 99",
        "step x": "expected a number",
        "fly": "'fly' is not known", "info shared nothing": "no shared variable 'nothing': it has tile",
    }  # fmt: skip  # rows of a table
    for command, text in said.items():
        assert text in shown.after(command), command


def test_a_condition_without_a_value_stops_and_one_with_a_value_in_some_lanes_does_not(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = "break total if i == 911\nbreak kernels.cu:11 if n / threadIdx.x == 64\nrun\ncontinue\ncontinue\n"
    shown = debugged(commands, "total", x, out, 64)
    assert "the condition 'i == 911' has no value" in shown.after("run")
    assert "a function's variables are assigned after its first line" in shown.after("run")
    assert "Breakpoint 2" in shown.after("continue")
    assert "thread (1, 0, 0)" in shown.after("continue"), "thread 0 divides by zero"


def test_optimised_code_has_registers_and_no_variables(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    shown = debugged(
        "break kernels.cu:11\nrun\nstepi 4\ninfo registers\nprint value\ninfo locals\n", "total", x, out, 64,
        optimized=True,
    )  # fmt: skip  # one call
    assert "compiled without -G" in shown.after("print value")
    assert "compile the kernel with -G" in shown.after("info locals")
    rows = [line.split() for line in shown.after("info registers").splitlines()]
    assert [f"{numbers[0]:.7g}"] in [row[2:] for row in rows if row[1] == ".f32"], "x[0] is in a register"
    assert any(row[1] == ".b64" and int(row[3], 16) == x.pointer for row in rows), "so is the address of x"


def test_the_debugger_is_off_after_its_block(debugged, kernel_file, numbers):
    x = cuda.to_device(numbers)
    module = cuda.compile(kernel_file)
    assert b"debug_info" not in module.ptx
    with cuda.debugger("kernels.cu:28"):
        assert b"debug_info" in cuda.compile(kernel_file).ptx
    module["beyond"][1, 32](x, 3)
    assert x.to_host()[62] == 3
