"""The debugger's commands: breakpoints, steps in both directions, and the tables of a stopped launch."""

import contextlib
import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.debugging.conftest import KERNELS, column, line_of
from tests.planted.cases import FOLDER

pytestmark = pytest.mark.needs("debugger")

PAIR = np.dtype([("x", "f4"), ("y", "i4", 3)])


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
    assert re.search(r"kernels.cu:23 kernel total, pending\n.*:3 thread 33, hit 1 time\n", listed)


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
        "down\nfinish\nnext\nprint result\nprint copy\n",
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
        "step x": "'x' is not a number",
        "fly": "unknown command 'fly'", "info shared nothing": "no shared variable 'nothing': it has tile",
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


TEMPLATES = """template <class T> __device__ T twice(T v) {
    return v + v;
}
template <int N> struct Box {
    __device__ int scaled(int i) { return i * N; }
};
extern "C" __global__ void counts(int* out) {
    int i = threadIdx.x;
    atomicAdd(&out[i % 4], twice(i));
    Box<3> box;
    out[4 + i] = box.scaled(i);
}
"""


@pytest.mark.parametrize("name", ["twice", "twice<int>", "Box<3>::scaled", "Box::scaled", "scaled"])
def test_a_breakpoint_may_name_a_template_or_a_member(debugged, name):
    shown = debugged(f"break {name}\nrun\n", "counts", cuda.zeros(68, np.int32), source=TEMPLATES)
    assert "Breakpoint 1, " in shown.after("run")
    assert line_of(shown.after("run")) == (2 if "twice" in name else 5)


def test_steps_do_not_enter_functions_without_source(debugged):
    commands = "break 9\nrun\nwatch out[1]\ncontinue\nstep\nreverse-step\nreverse-step\n"
    shown = debugged(commands, "counts", cuda.zeros(68, np.int32), source=TEMPLATES)
    # The launch stops inside atomicAdd, which has no source, so that the next step is to the next line.
    assert "out[1] changes from 0 to " in shown.after("continue")
    assert line_of(shown.after("step")) == 11
    assert line_of(shown.after("reverse-step")) == 9
    assert line_of(shown.after("reverse-step", 1)) in (2, 3), "the other function of the line has source"


def test_continue_with_a_number_ignores_hits_of_the_breakpoint(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = "break kernels.cu:15\nrun\ncontinue 3\nprint step\ncontinue 0\ncontinue x\n"
    commands += "step\ncontinue 2\ncontinue\nprint step\ncontinue 9\n"
    shown = debugged(commands, "total", x, out, 64)
    assert shown.after("print step") == "4\n", "after 32, the hits at 16 and 8 are ignored"
    assert "at least 1" in shown.after("continue 0")
    assert "is not a number" in shown.after("continue x")
    assert "not stopped at a breakpoint" in shown.after("continue 2")
    assert shown.after("print step", 1) == "2\n", "a number that is refused ignores nothing"
    assert shown.after("continue 9") == ""
    assert out.to_host()[0] == numbers.sum()


def test_a_temporary_breakpoint_stops_once_and_displays_follow_each_stop(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = "display step\ntbreak kernels.cu:15\nrun\ninfo b\nbreak kernels.cu:15 if step < 8\n"
    commands += "continue\nundisplay 1\ncontinue\n"
    shown = debugged(commands, "total", x, out, 64)
    assert "1: step = 32" in shown.after("run")
    assert shown.after("info b") == "no breakpoints\n"
    assert "1: step = 4" in shown.after("continue")
    assert "1: step" not in shown.after("continue", 1)


def test_parameters_have_values_where_another_block_or_the_history_begins(debugged, numbers):
    x, out = cuda.to_device(np.tile(numbers, 3)), cuda.zeros(3, np.float32)
    commands = "break kernels.cu:19 block 0\nrun\ndelete\nfinish\nprint n\nreverse-continue\nprint n\n"
    shown = debugged(commands, "total", x, out, 177, grid=3)
    assert "The thread has exited." in shown.after("finish")
    assert shown.after("print n") == "177\n"
    assert "history begins here" in shown.after("reverse-continue")
    assert shown.after("print n", 1) == "177\n"


def test_continuing_from_the_past_ends_where_the_launch_has_stopped(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = "break kernels.cu:15\nrun\ndelete\nnext\nprint step\nreverse-stepi 5\ncontinue\nprint step\ncontinue\n"
    shown = debugged(commands, "total", x, out, 64)
    assert "[in the past]" in shown.after("reverse-stepi 5")
    assert "The recorded history ends here." in shown.after("continue")
    assert "[in the past]" not in shown.after("continue")
    assert shown.after("print step") == shown.after("print step", 1)
    assert shown.after("continue", 1) == ""


SPINNING = """extern "C" __global__ void waits(volatile int* flag, int turns) {
    int block = blockIdx.x;
    if (block == 0) {
        for (int i = 0; i < turns; i++) flag[1] = i;
        *flag = 1;
    }
    while (*flag == 0) {
    }
    flag[2 + block] = block;
}
"""


def test_another_block_that_has_begun_can_be_looked_at(debugged):
    # The condition is one of a variable, so that all blocks are recorded.
    commands = "break 7 if block == 1\nrun\nblock 0\nprint blockIdx.x\nprint turns\nblock 7\ncontinue\n"
    flag = cuda.zeros(8, np.int32)
    with cuda.sanitizer("off"):
        shown = debugged(commands, "waits", flag, 3000, grid=2, source=SPINNING)
    assert "block (1, 0, 0)" in shown.after("run")
    assert "[in the past] block (0, 0, 0), thread (0, 0, 0)" in shown.after("block 0")
    assert shown.after("print blockIdx.x") == "0\n"
    assert shown.after("print turns") == "3000\n"
    assert "there is no block (7, 0, 0)" in shown.after("block 7")


def test_source_is_listed_on_and_around_functions(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = "list\nbreak total\nrun\nlist\nlist\nlist scaled\nlist 900\nlist nothing\nthread\ndown\nlanes i,,n\n"
    commands += "delete x\nstep\nlist\n"
    shown = debugged(commands, "total", x, out, 64)
    lines = KERNELS.splitlines()

    def listed(text: str) -> list[int]:
        return [int(number) for number in re.findall(r"^[* ][> ] +(\d+)", text, re.MULTILINE)]

    first, second = listed(shown.after("list", 1)), listed(shown.after("list", 2))
    assert lines.index('extern "C" __global__ void total(const float* x, float* out, int n) {') + 1 in first
    assert second == list(range(first[-1] + 1, first[-1] + 12))
    assert shown.after("list 900").endswith(f"has {len(lines)} lines\n")
    assert "no line or function 'nothing'" in shown.after("list nothing")
    assert "thread (0, 0, 0)" in shown.after("thread")
    assert shown.after("down") == "this is the innermost function\n"
    assert "an expression is missing" in shown.after("lanes i,,n")
    assert shown.after("delete x") == "'x' is not a number\n"
    assert line_of(shown.after("step")) in listed(shown.after("list", 3))


INLINED = """__device__ __forceinline__ int twice(int a) {
    int b = a + a;
    return b;
}
__device__ __noinline__ int folded(int a, int n) {
    int c = twice(twice(a) + 1);
    return c + n;
}
extern "C" __global__ void inlines(int* out, int n) {
    int i = threadIdx.x;
    int value = folded(i, n);
    out[i] = value;
}
"""


def test_frames_are_those_of_calls_and_of_inlined_functions(debugged):
    commands = "break twice\nrun\nbacktrace\ninfo args\nup\ninfo args\nup 1\nprint n\nframe 0\nframe 9\nnext\nprint b\n"
    commands += "thread 5\ncontinue\nprint a\nfinish\nnext\nprint c\nreverse-step\nstep 2\nbreak 2\ninfo b\n"
    out = cuda.zeros(64, np.int32)
    shown = debugged(commands, "inlines", out, 7, source=INLINED)
    names = [re.split(r" {2,}", line.strip(" >")) for line in shown.after("backtrace").splitlines()]
    assert [(name, place.rpartition(":")[2]) for _, name, place in names] == [
        ("twice (inlined)", "2"), ("folded", "6"), ("inlines", "11")
    ]  # fmt: skip  # rows of a table
    assert shown.after("info args").split() == ["a", "int", "=", "0"]
    assert shown.after("info args", 1).split() == ["a", "int", "=", "0", "n", "int", "=", "7"]
    assert line_of(shown.after("up")) == 6
    assert "inlines, " in shown.after("up 1")
    assert shown.after("print n") == "7\n"
    assert line_of(shown.after("frame 0")) == 2
    assert shown.after("frame 9") == "there is no caller\n"
    assert line_of(shown.after("next")) == 3
    assert shown.after("print b") == "0\n"
    assert shown.after("print a") == "11\n", "the second inlined call of thread 5"
    assert line_of(shown.after("finish")) == 6
    assert line_of(shown.after("next", 1)) == 7
    assert shown.after("print c") == "22\n"
    np.testing.assert_array_equal(out.to_host(), 4 * np.arange(64) + 2 + 7)


def test_optimised_code_has_frames_of_inlined_functions_too(debugged):
    source = INLINED.replace("__noinline__", "__forceinline__").replace("a + a", "a * out_of(a)")
    source = "__device__ int out_of(int a) {\n    return a ^ 5;\n}\n" + source
    out = cuda.zeros(64, np.int32)
    shown = debugged("break 2\nrun\nbacktrace\nup\nup\nfinish\n", "inlines", out, 7, source=source, optimized=True)
    names = [re.split(r" {2,}", line.strip(" >"))[1:] for line in shown.after("backtrace").splitlines()]
    assert [(name, place.rpartition(":")[2]) for name, place in names] == [
        ("out_of (inlined)", "2"), ("twice (inlined)", "5"), ("folded (inlined)", "9"), ("inlines", "14")
    ]  # fmt: skip  # rows of a table
    assert "twice, " in shown.after("up")
    assert line_of(shown.after("up", 1)) == 9
    # The chosen frame is that of `folded`, which returns to the kernel.
    assert "\ninlines, " in shown.after("finish")


def test_cuda_and_info_cuda_are_those_of_cuda_gdb(debugged, numbers):
    x, out = cuda.to_device(np.tile(numbers, 3)), cuda.zeros(3, np.float32)
    commands = "break kernels.cu:15 block 1 if step == 16\nrun\ncuda thread 9\nprint threadIdx.x\ncuda lane 3 warp 0\n"
    commands += "cuda block 1,0,0 thread (7,0,0)\ncuda thread\ncuda kernel 0 grid 1 block 1 thread 2\ncuda device 3\n"
    commands += "cuda block 2 thread 1\ncuda block 1 thread 99\ncuda\ncuda tread 5\nprint threadIdx.x\n"
    commands += "info cuda kernels\ninfo cuda blocks\ninfo cuda threads\ninfo cuda sms\ninfo threads\n"
    shown = debugged(commands, "total", x, out, 177, grid=3)
    assert shown.after("print threadIdx.x") == "9\n"
    assert "thread (3, 0, 0)" in shown.after("cuda lane 3 warp 0")
    assert "thread (7, 0, 0)" in shown.after("cuda block 1,0,0 thread (7,0,0)")
    assert shown.after("cuda thread") == shown.after("cuda block 1,0,0 thread (7,0,0)")
    assert "thread (2, 0, 0)" in shown.after("cuda kernel 0 grid 1 block 1 thread 2")
    assert "no device 3" in shown.after("cuda device 3")
    assert "until block 2 " in shown.after("cuda block 2 thread 1")
    assert "no thread 99" in shown.after("cuda block 1 thread 99")
    for command in ("cuda", "cuda tread 5"):
        assert "is not understood" in shown.after(command)
    assert shown.after("print threadIdx.x", 1) == "2\n", "a choice that fails leaves the focus where it was"
    kernel = re.split(r" {2,}", shown.after("info cuda kernels").splitlines()[1].strip())
    assert kernel[:5] == ["*", "0", "(3, 1, 1)", "(64, 1, 1)", "total"]
    assert kernel[5] == f"x={x.pointer:#x}, out={out.pointer:#x}, n=177"
    rows = [re.split(r" {2,}", line.strip(" *")) for line in shown.after("info cuda blocks").splitlines()[1:]]
    assert rows == [
        [f"({number}, 0, 0)", f"({number}, 0, 0)", "1", state]
        for number, state in enumerate(("ended", "running", "not begun"))
    ]
    rows = [re.split(r" {2,}", line.strip(" *")) for line in shown.after("info cuda threads").splitlines()[1:]]
    assert [(row[1], row[3], row[4], row[5], row[6].rpartition(":")[2]) for row in rows] == [
        ("(0, 0, 0)", "(15, 0, 0)", "16", "runs", "15"), ("(16, 0, 0)", "(63, 0, 0)", "48", "ready", "17")
    ]  # fmt: skip  # rows of a table
    assert shown.after("info threads") == shown.after("info cuda threads")
    assert "info cuda shows kernels, blocks, threads" in shown.after("info cuda sms")


def test_memory_is_examined_in_its_state_space_and_in_the_past(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = "break kernels.cu:13\nrun\nx/4fw tile\nx/2fw &tile[32]\nx/3fw (@shared float*)0x400\nx/2dw\n"
    commands += "x/64fw x\nx/2xw %rd1\nx/1xg 16\nx tile[\nx/q tile\nx/4hf tile\nprint/4 n\nprint/x\ndisplay/x n\n"
    commands += "delete\nbreak kernels.cu:15 if step == 1\ncontinue\nx/fw tile\nnext\nx/fw tile\n"
    commands += "reverse-next\nx/fw tile\nlanes/x threadIdx.x\n"
    shown = debugged(commands, "total", x, out, 64)

    def values(command: str, occurrence: int = 0) -> list[float]:
        words = [word for line in shown.after(command, occurrence).splitlines() for word in line.split("\t")[1:]]
        return [float(word) for word in words]

    assert values("x/4fw tile") == numbers[:4].tolist()
    assert "<tile+128>" in shown.after("x/2fw &tile[32]")
    assert values("x/3fw (@shared float*)0x400") == numbers[:3].tolist()
    assert values("x/2dw") == numbers[3:5].view(np.int32).tolist()
    assert values("x/64fw x") == numbers.tolist()
    assert shown.after("x/1xg 16") == "0x10:\t-\n"
    first, whole = numbers[0::2].sum(), numbers.sum()
    assert [values("x/fw tile", time) for time in range(3)] == [[first], [whole], [first]]
    assert column(shown.after("lanes/x threadIdx.x"), "threadIdx.x") == ["0x0"]
    assert "1: /x n = 0x40" in shown.after("display/x n")
    said = {
        "x tile[": "is incomplete", "x/q tile": "/q is not a format", "x/4hf tile": "have the size w or g",
        "print/4 n": "/4 is a format of memory", "print/x": "an expression is missing",
    }  # fmt: skip  # rows of a table
    for command, text in said.items():
        assert text in shown.after(command), command


def test_continue_with_a_number_ignores_changes_of_the_watched_value(debugged, numbers):
    data, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = "break 14\nrun\ndelete\nwatch step\ncontinue\ncontinue 2\nprint step\nblock 0 thread 20\n"
    shown = debugged(commands, "total", data, out, 64)
    assert shown.after("print step") == "4\n", "the launch stops at 16, and passes 8"
    assert "cuda block 0 thread 20" in shown.after("block 0 thread 20")
