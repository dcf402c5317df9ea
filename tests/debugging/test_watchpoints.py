"""Watchpoints: each change of a value, in any block and launch, with the thread that wrote it."""

import itertools
import re

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = pytest.mark.needs("debugger")


def test_a_watchpoint_stops_at_each_change_and_says_which_line_made_it(debugged, numbers):
    x, out = cuda.to_device(numbers), cuda.zeros(1, np.float32)
    commands = (
        "break kernels.cu:13\nrun\ndelete\nwatch tile[0]\n"
        + "continue\n" * 6
        + "info breakpoints\ndelete 2\nreverse-continue\n"
    )
    shown = debugged(commands, "total", x, out, 64)
    folded = numbers.copy()
    for turn, step in enumerate((32, 16, 8, 4, 2, 1)):
        before = folded[0]
        folded[:step] += folded[step : 2 * step]
        said = shown.after("continue", turn)
        assert f"Watchpoint 2: tile[0] changes from {before:.7g} to {folded[0]:.7g} after " in said
        assert "kernels.cu:15" in said
    assert folded[0] == numbers.sum()
    assert "2  watchpoint, tile[0]" in shown.after("info breakpoints")
    assert "history begins here" in shown.after("reverse-continue")
    assert out.to_host()[0] == numbers.sum()


WATCHED = """extern "C" __global__ void stores(int* b, int first) {
    __shared__ int tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = 0, __syncthreads();
    if (i == 1 || i == 70 || i == 130) atomicExch(&b[3], first + i);
    if (blockIdx.x == 1) b[i - 55] = first + 5;
    if (threadIdx.x < 9) atomicMax(&b[5], first + 7);
    if (threadIdx.x == 63) tile[0] = 6;
    for (int turn = 0; turn < 2; turn++) {
        if (threadIdx.x == 63) tile[0] += turn;
    }
    int odd = threadIdx.x % 2;
    atomicCAS(&b[7], first + odd, first + odd + 1);
    atomicCAS(&tile[1], 0, 5 + threadIdx.x);
}
"""


@pytest.mark.parametrize(
    ("expression", "values", "writers"),
    [
        ("b[3]", [0, 1, 70, 130, 1001, 1070, 1130], [(0, "1", 5), (1, "6", 5), (2, "2", 5)] * 2),
        ("*(b + 20)", [0, 5, 1005], [(1, "11", 6)] * 2),
        ("b[5]", [0, 7, 1007], [(0, "0-8", 7)] * 2),
        ("b[7]", [0, 2], [(0, "0-1", 13)]),  # all others compare with another value
        ("tile[1]", [0, 5], [(0, "0", 14)]),
        ("tile[0]", [0, 6, 7], [(0, "63", 8), (0, "63", 10)]),
    ],
)
def test_a_watchpoint_follows_memory_into_other_blocks_and_launches_and_names_the_writers(
    debugged, expression, values, writers
):
    b = cuda.zeros(73, np.int32)
    commands = f"break 5 block 0\nrun\ndelete\nwatch {expression}\nwatch {expression}\n"
    commands += "continue\n" * (len(values) + 1)
    shown = debugged(commands, "stores", b, 0, grid=3, source=WATCHED, then=(b, 1000))
    change = r"{}: .* changes from (\d+) to (\d+) after \S+:(\d+) in block \((\d), 0, 0\), threads? \(?([\d-]+)"
    for number in (2, 3):  # both stop at the same instruction
        found = re.findall(change.format(f"Watchpoint {number}"), shown)
        assert [(int(before), int(after)) for before, after, *_ in found] == list(itertools.pairwise(values))
        assert [(int(block), thread, int(line)) for *_, line, block, thread in found] == writers
    assert b.to_host()[[3, 5, 20]].tolist() == [1130, 1007, 1005]


HEADER = """#pragma once
template <class T> __device__ __forceinline__ void inlined(T* place, T value) { *place = value; }
template <class T> __device__ __noinline__ void called(T* place, T value) { *place = value; }
"""
REACHING = """#include "stores.cuh"
extern "C" __global__ void reaching(int* x) {
    __shared__ int tile[64];
    tile[threadIdx.x] = 0;
    if (threadIdx.x == 1) inlined(&tile[1], 5);
    if (threadIdx.x == 2) called(&tile[2], 5);
    if (threadIdx.x == 3) atomicAdd(&tile[3], 5);
    x[threadIdx.x] = tile[threadIdx.x];
}
"""


@pytest.mark.parametrize(("element", "line", "inner"), [(1, 5, " (in stores.cuh:2)"), (2, 6, " (in stores.cuh:3)")])
def test_a_write_in_a_header_is_at_the_line_of_the_kernel_that_led_there(debugged, tmp_path, element, line, inner):
    (tmp_path / "stores.cuh").write_text(HEADER)
    (tmp_path / "reaching.cu").write_text(REACHING)
    commands = f"break 5\nrun\nwatch tile[{element}]\nthread {element}\nwatch tile[{element}]\n"
    commands += "break 8\ncontinue\ncontinue\ninfo shared tile\n"
    shown = debugged(commands, "reaching", cuda.zeros(64, np.int32), source=tmp_path / "reaching.cu")
    change = f"tile[{element}] changes from 0 to 5 after {tmp_path}/reaching.cu:{line}{inner} in block"
    assert change in shown.after("continue")
    writers = shown.after("info shared tile").split("written by")[1].splitlines()[2].split()
    assert writers[1:6] == ["0:4", "1:5", "2:6", "3:7", "4:4"]
