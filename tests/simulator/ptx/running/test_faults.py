"""What a kernel does wrong ends the launch with the hardware's status and says where, alike in both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, has_llvmlite, load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD, Kernels

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
extern "C" __global__ void counting(int* p, int n) {
    int s = 0;
    for (unsigned i = 0; i < 4000000000u; i++) s = s * n + i;
    *p = s;
}
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
extern "C" __global__ void through_null(int** out) { if (threadIdx.x > 40) *out[0] = 1; }
extern "C" __global__ void stuck(int n) { if (threadIdx.x < n) asm volatile("bar.sync 1, 64;"); }
extern "C" __global__ void wild(unsigned long long address) { ((void (*)())address)(); }
extern "C" __global__ void before_each(int* out, const int* const* lists, int n) {
    int sum = 0;
    for (int j = 0; j < n; j++) sum += lists[j][-1];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void some_before(int* out, const int* const* lists) {
    out[threadIdx.x] = lists[threadIdx.x % 3][-1];
}
"""
ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS"


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def fault(kernels: Kernels, name: str, grid: int, block: int, *arguments: int, **options: int) -> Fault:
    """Return the fault of a launch, which is the same in both engines."""
    faults = []
    for engine in ("numpy", "native") if has_llvmlite() else ("numpy",):
        kernels.engine = engine
        kernels.printed.clear()
        with pytest.raises(Fault) as caught:
            kernels.launch(name, grid, block, *arguments, **options)
        faults.append(caught.value)
        native = any(program_of(kernels.module.entries[name]).native.values())
        assert native or engine == "numpy" or name in ("recursive", "wild")
    assert faults[0].status_name == faults[-1].status_name
    # How many instructions the limit has let go on isn't the same.
    assert faults[0].report == faults[-1].report or "limit" in faults[0].report
    return faults[-1]


def test_a_store_out_of_bounds_names_block_thread_address_and_line(kernels: Kernels) -> None:
    out = kernels.zeros(1024)
    found = fault(kernels, "beyond", 4, 256, out, 700)
    assert found.status_name == ILLEGAL
    place = ("kernel beyond", "test.cu:4", "block (2, 0, 0)", "thread (188, 0, 0)", f"{out + 400000:#x}", "write of 4")
    assert [part for part in place if part not in found.report] == []


def test_freed_memory_is_out_of_bounds(kernels: Kernels) -> None:
    out = kernels.zeros(256)
    kernels.launch("beyond", 1, 256, out, -1)
    kernels.memory.end(out)
    assert fault(kernels, "beyond", 1, 256, out, -1).status_name == ILLEGAL


@pytest.mark.parametrize(
    ("name", "block", "numbers", "status", "text"),
    [
        ("misaligned", 32, [], "MISALIGNED_ADDRESS", "thread (1, 0, 0)"),
        ("through_null", 64, [], "ILLEGAL_ADDRESS", "0x0 is out of bounds"),
        ("shared", 32, [32], "ILLEGAL_ADDRESS", "a shared read"),
        ("local", 32, [40], "ILLEGAL_ADDRESS", "a local read"),
        ("endless", 32, [], "LAUNCH_TIMEOUT", "test.cu:10"),
        ("counting", 1, [3], "LAUNCH_TIMEOUT", "block (0, 0, 0)"),
        ("recursive", 32, [100], "LAUNCH_FAILED", "stack overflow"),
    ],
)
def test_a_fault_has_the_hardwares_status_and_says_what_was_wrong(
    kernels: Kernels, name: str, block: int, numbers: list[int], status: str, text: str
) -> None:
    found = fault(kernels, name, 1, block, kernels.zeros(64), *numbers, steps=5000)
    assert found.status_name == f"CUDA_ERROR_{status}"
    assert text in found.report


def test_trap_fails_the_launch(kernels: Kernels) -> None:
    found = fault(kernels, "trapping", 2, 64, 33)
    assert found.status_name == "CUDA_ERROR_LAUNCH_FAILED"
    assert "thread (33, 0, 0)" in found.report


def test_an_assertion_prints_each_failing_lane(kernels: Kernels) -> None:
    assert fault(kernels, "asserting", 1, 32, 30).status_name == "CUDA_ERROR_ASSERT"
    assert [text.split("thread: ")[1] for text in kernels.printed] == [
        f"[{t},0,0] Assertion `threadIdx.x < n` failed.\n" for t in (30, 31)
    ]


def test_a_barrier_that_cannot_fill_is_a_deadlock(kernels: Kernels) -> None:
    assert "deadlock" in fault(kernels, "stuck", 1, 64, 32).report


def test_a_call_through_no_function_is_an_error(kernels: Kernels) -> None:
    assert fault(kernels, "wild", 1, 1, 0x1000).status_name == "CUDA_ERROR_INVALID_PC"


@pytest.mark.parametrize("good", [0, 1, 5])
def test_an_element_before_a_null_pointer_is_refused(kernels: Kernels, good: int) -> None:
    """Its address and its bytes add up to 2^64."""
    data, out = kernels.put(np.arange(8, dtype=np.int32)), kernels.zeros(32)
    lists = kernels.put(np.array([data + 4] * good + [0], np.uint64))
    kernels.engine = "native"
    kernels.launch("before_each", 1, 32, out, lists, good)
    assert "4 bytes at 0xfffffffffffffffc is" in fault(kernels, "before_each", 1, 32, out, lists, good + 1).report


def test_lanes_before_a_null_pointer_are_refused_too(kernels: Kernels) -> None:
    data, other = (kernels.put(np.arange(8, dtype=np.int32)) for _ in range(2))
    out = kernels.zeros(32)
    pointers = np.array([data + 4, other + 8, data + 8], np.uint64)
    kernels.launch("some_before", 1, 32, out, kernels.put(pointers))
    assert kernels.get(out, 3).tolist() == [0, 1, 1]
    pointers[1] = 0
    report = fault(kernels, "some_before", 1, 32, out, kernels.put(pointers)).report
    assert "0xfffffffffffffffc is out of bounds" in report
    assert "thread (1, 0, 0)" in report


REGISTERS = ".reg .b64 out, at, found; .reg .b32 tile, word; .shared .align 16 .b8 memory[256];"
BODIES = {
    # The address of the second access follows from what the first one would have loaded.
    "a field behind a wrong pointer": "add.u64 at, out, 100000; ld.u64 found, [at]; ld.u32 word, [found+-8];",
    "a misaligned pointer, then a wrong one": "add.u64 at, out, 4; ld.u64 found, [at]; ld.u8 word, [found+-7];",
    "the source of a copy": "add.u64 at, out, 100000; cp.async.ca.shared.global [tile], [at], 4;",
    "the destination of a copy": "cp.async.ca.shared.global [tile+4096], [out], 16;",
    "a misaligned source of a copy": "cp.async.ca.shared.global [tile], [out+2], 16;",
    "a misaligned destination of a copy": "cp.async.ca.shared.global [tile+4], [out], 16;",
    "an atomic": "atom.global.add.u32 word, [out+4000], 1;",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_whichever_address_of_an_instruction_is_wrong_both_engines_report_it(body: str) -> None:
    text = f".visible .entry k(.param .u64 p) {{ {REGISTERS} ld.param.u64 out, [p]; mov.u32 tile, memory; {body} }}"
    kernels: Any = Kernels(load_module(HEAD + text))
    fault(kernels, "k", 1, 32, kernels.zeros(64))
