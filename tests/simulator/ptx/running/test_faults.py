"""A fault ends the launch with the hardware's status and reports its location, identically in both engines."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, has_llvmlite, load_module
from cudart_py.simulator.ptx.windows import RESERVED_SHARED, SHARED_WINDOW
from tests.simulator.ptx.machine import HEAD, Kernels

SOURCE = r"""
extern "C" __global__ void beyond(int* out, int bad) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i == bad ? 100000 : i] = 1;
}
extern "C" __global__ void misaligned(char* out) {
    *(int*)(out + threadIdx.x * 2) = 1;
}
extern "C" __global__ void trapping(int* out, int t) { if (threadIdx.x == t) __trap(); }
extern "C" __global__ void endless(volatile int* p) { while (*p == 0); }
extern "C" __global__ void counting(int* p, int n) {
    int s = 0;
    for (unsigned i = 0; i < 4000000000u; i++) s = s * n + i;
    *p = s;
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
extern "C" __global__ void stuck(int* out, int n) { if (threadIdx.x < n) asm volatile("bar.sync 1, 64;"); }
extern "C" __global__ void wild(int* out, unsigned long long address) { ((void (*)())address)(); }
"""
ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS"


def fault(kernels: Kernels, name: str, grid: int, block: int, *arguments: int, **options: int) -> Fault:
    """Return the fault of a launch, which must be the same in both engines."""
    faults = []
    for engine in ("numpy", "native") if has_llvmlite() else ("numpy",):
        kernels.engine = engine
        kernels.printed.clear()
        with pytest.raises(Fault) as caught:
            kernels.launch(name, grid, block, *arguments, **options)
        faults.append(caught.value)
        assert kernels.ran_natively(name) or engine == "numpy" or name in ("recursive", "wild")
    assert faults[0].status_name == faults[-1].status_name
    # The engines may stop at different instructions when they reach the limit.
    assert faults[0].report == faults[-1].report or "limit" in faults[0].report
    return faults[-1]


def test_a_store_out_of_bounds_names_block_thread_address_and_line(kernels):
    out = kernels.zeros(1024)
    found = fault(kernels, "beyond", 4, 256, out, 700)
    assert found.status_name == ILLEGAL
    place = ("kernel beyond", "test.cu:4", "block (2, 0, 0)", "thread (188, 0, 0)", f"{out + 400000:#x}", "write of 4")
    assert [part for part in place if part not in found.report] == []
    kernels.launch("beyond", 1, 256, out, -1)
    kernels.memory.end(out)  # so every address in it is out of bounds
    assert fault(kernels, "beyond", 1, 256, out, -1).status_name == ILLEGAL


@pytest.mark.parametrize(
    ("name", "block", "numbers", "status", "text"),
    [
        ("misaligned", 32, [], "MISALIGNED_ADDRESS", "thread (1, 0, 0)"),
        ("local", 32, [40], "ILLEGAL_ADDRESS", "a local read"),
        ("endless", 32, [], "LAUNCH_TIMEOUT", "test.cu:10"),
        ("counting", 1, [3], "LAUNCH_TIMEOUT", "block (0, 0, 0)"),
        ("recursive", 32, [100], "LAUNCH_FAILED", "stack overflow"),
        ("trapping", 64, [33], "LAUNCH_FAILED", "thread (33, 0, 0)"),
        ("stuck", 64, [32], "LAUNCH_TIMEOUT", "deadlock"),
        ("wild", 1, [0x1000], "INVALID_PC", "0x1000"),
    ],
)
def test_a_fault_has_the_hardwares_status_and_says_what_was_wrong(kernels, name, block, numbers, status, text):
    found = fault(kernels, name, 1, block, kernels.zeros(64), *numbers, steps=5000)
    assert found.status_name == f"CUDA_ERROR_{status}"
    assert text in found.report


def test_an_assertion_prints_each_failing_lane(kernels):
    assert fault(kernels, "asserting", 1, 32, 30).status_name == "CUDA_ERROR_ASSERT"
    assert [text.split("thread: ")[1] for text in kernels.printed] == [
        f"[{t},0,0] Assertion `threadIdx.x < n` failed.\n" for t in (30, 31)
    ]


# One lane executes instructions with a given address, or the one of them that `which` selects.
PTX = (
    HEAD
    + """.visible .entry k(.param .u64 address, .param .u32 lane, .param .u32 which) {{
    .reg .u16 %h<2>; .reg .u32 %r<7>; .reg .u64 %rd<6>; .reg .pred %p<2>;
    .shared .align 16 .b8 block[256]; .local .align 16 .b8 own[64];
    mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, block; mov.u64 %rd3, 0; mov.u64 %rd4, 0;
    ld.param.u64 %rd2, [address]; ld.param.u32 %r5, [lane]; ld.param.u32 %r6, [which];
    setp.ne.u32 %p1, %r1, %r5; @%p1 bra done;
    {instruction}
done:
    ret;
}}
"""
)
# Instructions, and the number of bytes that they access.
ACCESSES = {
    "ld{space}.u8 %r1, [%rd2];": 1,
    "ld{space}.u16 %h1, [%rd2];": 2,
    "ld{space}.u32 %r1, [%rd2];": 4,
    "ld{space}.u64 %rd3, [%rd2];": 8,
    "ld{space}.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd2];": 16,
    "st{space}.u8 [%rd2], %r1;": 1,
    "st{space}.u64 [%rd2], %rd3;": 8,
    "st{space}.v4.u32 [%rd2], {{%r1, %r2, %r3, %r4}};": 16,
    "atom{space}.add.u32 %r1, [%rd2], 1;": 4,
    "red{space}.add.u64 [%rd2], 1;": 8,
    "atom{space}.cas.b64 %rd3, [%rd2], %rd3, %rd3;": 8,
}
# The state spaces, and addresses at which wrap-around could occur. Addresses in shared memory have 32 bits, whatever
# the upper half of a register contains.
WIDE = (1 << 31, 1 << 32, 1 << 62, 1 << 63, 1 << 64)
EDGES = {"": WIDE, ".global": WIDE, ".shared": (1 << 31, 1 << 32), ".local": WIDE}


@pytest.mark.parametrize("space", EDGES)
def test_a_wild_address_is_refused(space):
    # There are no atomics in local memory.
    accesses = [access for access in ACCESSES if space != ".local" or access.startswith(("ld", "st"))]
    guarded = (f"setp.eq.u32 %p1, %r6, {which}; @%p1 {access}" for which, access in enumerate(accesses))
    kernels = Kernels(load_module(PTX.format(instruction=" ".join(guarded).format(space=space))))
    kernels.zeros(64)
    for which, access in enumerate(accesses):
        size = ACCESSES[access]
        for address in [(edge + distance) % (1 << 64) for edge in EDGES[space] for distance in (-size, 0, size)]:
            given = address & ((1 << 32) - 1 if space == ".shared" else (1 << 64) - 1)
            if space in (".shared", ".local") and given < 2048:
                continue  # the hardware truncates it to a valid address
            found = fault(kernels, "k", 1, 32, address, 5, which)
            assert found.status_name == ILLEGAL
            for text in (f"of {size} byte", "thread (5, 0, 0)", f"at {given:#x} is out of bounds"):
                assert text in found.report, access


@pytest.mark.parametrize(("space", "others"), [("", "global"), ("", "global and shared"), (".global", "global")])
def test_one_wild_lane_among_right_ones_is_refused(space, others):
    instruction = "mul.wide.u32 %rd4, %r1, 8; add.u64 %rd2, %rd2, %rd4; ld.global.u64 %rd2, [%rd2];"
    text = PTX.replace("@%p1 bra done;", "").format(instruction=f"{instruction} ld{space}.u32 %r1, [%rd2];")
    kernels = Kernels(load_module(text))
    data = kernels.zeros(64)
    for wild in ((1 << 63) - 4, 1 << 63, (1 << 64) - 4, (1 << 62) - 4):
        pointers = np.full(32, data, np.uint64)
        if others == "global and shared":
            pointers[::2] = SHARED_WINDOW + RESERVED_SHARED
        kernels.launch("k", 1, 32, kernels.put(pointers), 0, 0)
        pointers[7] = wild
        report = fault(kernels, "k", 1, 32, kernels.put(pointers), 0, 0).report
        assert f"at {wild:#x} is out of bounds" in report
        assert "thread (7, 0, 0)" in report


@pytest.mark.parametrize(
    "body",
    [
        # The address of the second access depends on the value that the first would have loaded.
        "add.u64 %rd3, %rd2, 100000; ld.u64 %rd4, [%rd3]; ld.u32 %r1, [%rd4+-8];",
        "add.u64 %rd3, %rd2, 4; ld.u64 %rd4, [%rd3]; ld.u8 %r1, [%rd4+-7];",
        # A copy's source and destination, out of bounds and misaligned.
        "add.u64 %rd3, %rd2, 100000; cp.async.ca.shared.global [%r4], [%rd3], 4;",
        "cp.async.ca.shared.global [%r4+4096], [%rd2], 16;",
        "cp.async.ca.shared.global [%r4], [%rd2+2], 16;",
        "cp.async.ca.shared.global [%r4+4], [%rd2], 16;",
        "atom.global.add.u32 %r1, [%rd2+4000], 1;",
    ],
)
def test_whichever_address_of_an_instruction_is_wrong_both_engines_report_it(body):
    kernels = Kernels(load_module(PTX.replace("@%p1 bra done;", "").format(instruction=body)))
    fault(kernels, "k", 1, 32, kernels.zeros(64), 0, 0)
