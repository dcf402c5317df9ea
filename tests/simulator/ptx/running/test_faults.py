"""What a kernel does wrong ends the launch with the hardware's status and says where."""

from __future__ import annotations

import pytest

from cudart_py.simulator.ptx import Fault
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
extern "C" __global__ void beyond(int* out, int bad) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i == bad ? 100000 : i] = 1;
}
extern "C" __global__ void misaligned(char* out) {
    *(int*)(out + threadIdx.x * 2) = 1;
}
extern "C" __global__ void trapping(int t) { if (threadIdx.x == t) __trap(); }
extern "C" __global__ void endless(volatile int* p) { while (*p == 0); }
extern "C" __global__ void shared(int* out, int i) {
    __shared__ int s[4];
    s[threadIdx.x & 3] = 1;
    __syncthreads();
    *out = s[i];
}
extern "C" __global__ void local(int* out, int i) {
    int l[4];
    for (int k = 0; k < 4; k++) l[k] = k;
    l[out[1]] = 2;
    *out = l[i];
}
__device__ __noinline__ int deep(int n) {
    int a[64];
    for (int i = 0; i < 64; i++) a[i] = n + i;
    return n <= 0 ? a[n & 63] : deep(n - 1) + a[(n * 7) & 63];
}
extern "C" __global__ void recursive(int* out, int n) { out[threadIdx.x] = deep(n); }
extern "C" __global__ void asserting(int n) { assert(threadIdx.x < n); }
extern "C" __global__ void null(int* out) { *out = 1; }
extern "C" __global__ void stuck(int n) { if (threadIdx.x < n) asm volatile("bar.sync 1, 64;"); }
extern "C" __global__ void wild(unsigned long long address) { ((void (*)())address)(); }
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def fault(kernels: Kernels, name: str, grid: int, block: int, *arguments: int, **options: int) -> Fault:
    with pytest.raises(Fault) as caught:
        kernels.launch(name, grid, block, *arguments, **options)
    return caught.value


def test_a_store_out_of_bounds_names_block_thread_address_and_line(kernels: Kernels) -> None:
    out = kernels.zeros(1024)
    found = fault(kernels, "beyond", 4, 256, out, 700)
    assert found.status_name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    for part in (
        "kernel beyond",
        "test.cu:4",
        "block (2, 0, 0)",
        "thread (188, 0, 0)",
        f"{out + 400000:#x}",
        "write of 4",
    ):
        assert part in found.report


def test_a_misaligned_store_is_an_error(kernels: Kernels) -> None:
    found = fault(kernels, "misaligned", 1, 32, kernels.zeros(64))
    assert found.status_name == "CUDA_ERROR_MISALIGNED_ADDRESS"
    assert "thread (1, 0, 0)" in found.report


def test_freed_memory_is_out_of_bounds(kernels: Kernels) -> None:
    out = kernels.zeros(256)
    kernels.launch("beyond", 1, 256, out, -1)
    kernels.memory.end(out)
    assert fault(kernels, "beyond", 1, 256, out, -1).status_name == "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_the_null_pointer_is_out_of_bounds(kernels: Kernels) -> None:
    assert "0x0 is out of bounds" in fault(kernels, "null", 1, 1, 0).report


def test_shared_memory_ends_where_the_block_s_does(kernels: Kernels) -> None:
    found = fault(kernels, "shared", 2, 32, kernels.zeros(1), 32)
    assert "a shared read" in found.report


def test_local_memory_ends_where_the_lane_s_does(kernels: Kernels) -> None:
    found = fault(kernels, "local", 1, 32, kernels.zeros(2), 40)
    assert "a local read" in found.report


def test_trap_fails_the_launch(kernels: Kernels) -> None:
    found = fault(kernels, "trapping", 2, 64, 33)
    assert found.status_name == "CUDA_ERROR_LAUNCH_FAILED"
    assert "thread (33, 0, 0)" in found.report


def test_an_endless_loop_ends_at_the_limit(kernels: Kernels) -> None:
    found = fault(kernels, "endless", 1, 32, kernels.zeros(1), steps=5000)
    assert found.status_name == "CUDA_ERROR_LAUNCH_TIMEOUT"
    assert "test.cu:10" in found.report


def test_deep_recursion_overflows_the_stack(kernels: Kernels) -> None:
    kernels.launch("recursive", 1, 32, kernels.zeros(32), 2)
    found = fault(kernels, "recursive", 1, 32, kernels.zeros(32), 100)
    assert found.status_name == "CUDA_ERROR_LAUNCH_FAILED"
    assert "stack overflow" in found.report


def test_an_assertion_prints_each_failing_lane(kernels: Kernels) -> None:
    kernels.printed.clear()
    found = fault(kernels, "asserting", 1, 32, 30)
    assert found.status_name == "CUDA_ERROR_ASSERT"
    assert [text.split("thread: ")[1] for text in kernels.printed] == [
        f"[{t},0,0] Assertion `threadIdx.x < n` failed.\n" for t in (30, 31)
    ]


def test_a_barrier_that_cannot_fill_is_a_deadlock(kernels: Kernels) -> None:
    assert "deadlock" in fault(kernels, "stuck", 1, 64, 32).report


def test_a_call_through_no_function_is_an_error(kernels: Kernels) -> None:
    assert fault(kernels, "wild", 1, 1, 0x1000).status_name == "CUDA_ERROR_INVALID_PC"
