"""Blocks in which a launch does not stop are not recorded; one that makes a mistake runs again."""

import numpy as np
import pytest

import cudart_py as cuda
from tests.debugging.conftest import line_of

pytestmark = pytest.mark.needs("debugger")

LATE = """extern "C" __global__ void late(const int* x, int* out, int bad, int racing) {
    __shared__ int tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = x[i];
    if (blockIdx.x != racing) __syncthreads();
    int value = tile[63 - threadIdx.x];
    if (threadIdx.x == 0) atomicAdd(&out[0], 1);
    if (threadIdx.x == 0 && blockIdx.x % 1000 == 0) printf("block %d\\n", blockIdx.x);
    out[i + (blockIdx.x == bad ? 1 << 24 : 1)] = value;
}
"""
BLOCKS = 3000


@pytest.fixture
def late(debugged):
    """Return a function that launches many blocks, and returns the transcript and the result."""
    x = np.random.default_rng().integers(1, 1 << 30, 64 * BLOCKS).astype(np.int32)
    out = cuda.zeros(64 * BLOCKS + 1, np.int32)

    def run(commands: str, bad: int = -1, racing: int = -1) -> str:
        return debugged(commands, "late", cuda.to_device(x), out, bad, racing, grid=BLOCKS, source=LATE)

    run.result, run.x = out, x
    return run


@pytest.mark.parametrize(
    "place",
    ["7 block 2917", "late block 2917", "7 if blockIdx.x > 2916 && value != 0", "7 if gridDim.x - blockIdx.x == 83"],
)
def test_blocks_before_the_one_of_a_breakpoint_are_not_recorded_and_compute_the_same(late, place):
    shown = late(
        f"break {place}\nrun\nprint x[blockIdx.x * 64]\nprint out[0]\nreverse-continue\nprint blockIdx.x\n"
        "delete\ncontinue\n"
    )
    assert "block (2917, 0, 0)" in shown.after("run")
    assert int(shown.after("print x[blockIdx.x * 64]")) == late.x[2917 * 64]
    assert int(shown.after("print out[0]")) in (2917, 2918)
    assert "history begins here" in shown.after("reverse-continue")
    assert shown.after("print blockIdx.x") == "2917\n"
    expected = late.x.reshape(-1, 64)[:, ::-1].reshape(-1)
    assert late.result.to_host()[0] == BLOCKS
    np.testing.assert_array_equal(late.result.to_host()[1:], expected)


def test_until_continues_to_a_block_or_a_place(late):
    shown = late("break late\nrun\ndelete\nuntil block 1500\nuntil 7\nuntil block 3000\nuntil 99\ninfo b\ncontinue\n")
    assert "block (1500, 0, 0), thread (0, 0, 0)" in shown.after("until block 1500")
    assert line_of(shown.after("until 7")) == 7
    assert "no place" in shown.after("until block 3000")
    assert "no place" in shown.after("until 99")
    assert shown.after("info b") == "no breakpoints\n"


def test_a_late_block_with_a_mistake_runs_again_from_memory_as_it_was(late, capfd):
    with pytest.warns(cuda.errors.SimulatorWarning, match="race"):
        shown = late("run\nprint blockIdx.x\nprint out[0]\ncontinue\n", racing=2044)
    assert "race" in shown.after("run")
    assert line_of(shown.after("run")) == 6
    assert shown.after("print blockIdx.x") == "2044\n"
    assert shown.after("print out[0]") == "2044\n", "the block has run twice, but the others not"
    assert late.result.to_host()[0] == BLOCKS
    assert capfd.readouterr().out.split() == ["block", "0", "block", "1000", "block", "2000"]


def test_a_launch_that_runs_again_does_not_stop_again_where_it_has_stopped(late):
    commands = "break 7 block 100\nrun\ncontinue\nprint blockIdx.x\nprint out[0]\ninfo b\ncontinue\n"
    with pytest.warns(cuda.errors.SimulatorWarning, match="race"):
        shown = late(commands, racing=2044)
    assert "block (100, 0, 0)" in shown.after("run")
    assert "race" in shown.after("continue")
    assert shown.after("print blockIdx.x") == "2044\n"
    assert shown.after("print out[0]") == "2044\n"
    assert "hit 1 time\n" in shown.after("info b")
    assert late.result.to_host()[0] == BLOCKS


def test_all_blocks_of_a_kernel_that_cannot_run_again_are_recorded(debugged):
    source = """extern "C" __global__ void allocates(int* out) {
    int* p = (int*)malloc(4);
    *p = blockIdx.x;
    if (threadIdx.x == 0) out[blockIdx.x] = *p;
    free(p);
}
"""
    out = cuda.zeros(6, np.int32)
    commands = "break 4 block 5\nrun\nreverse-continue\nprint blockIdx.x\n"
    shown = debugged(commands, "allocates", out, grid=6, source=source)
    assert shown.after("print blockIdx.x") == "0\n"
    assert out.to_host().tolist() == list(range(6))
