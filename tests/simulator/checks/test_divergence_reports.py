"""The report of a divergent barrier says where the thread is that does not wait, not how it came there."""

import re

import pytest

import cudart_py as cuda
from tests.planted.cases import ints
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE

# The tests refer to line numbers of this text. Each kernel has a barrier that only the first n threads reach.
SOURCE = """extern "C" __global__ void skipped(int* x, int n) {
    if (threadIdx.x < n)
        __syncthreads();
    x[threadIdx.x] = 1;
}
extern "C" __global__ void left(int* x, int n) {
    for (int i = 0; i < (threadIdx.x < n ? 2 : 1); i++)
        __syncthreads();
    x[threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize(("kernel", "barrier", "line"), [("skipped", 3, 4), ("left", 8, 9)])
def test_the_report_names_the_line_of_the_thread_that_does_not_wait(kernel, barrier, line):
    (text, *_) = found(cuda.compile(SOURCE)[kernel][1, 64], ints(64), 33)
    assert re.search(rf"kernel.cu:{barrier}: divergent barrier: .* this thread is at kernel.cu:{line}", text)
    assert "thread (33, 0, 0)" in text
