"""Machine code counts what the NumPy engine's observer counts, of every launch, line and metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import Fault
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = r"""
#define KERNEL(name) extern "C" __global__ void name
#define I (blockIdx.x * blockDim.x + threadIdx.x)
typedef unsigned long long u64;
KERNEL(gather)(const int* at, const int* in, int* out) {
    if (at[I] & 1) out[I] = in[at[I] >> 1 & 1023];
    out[at[I] & 1023] = in[I & 1023];
}
KERNEL(atomics)(const int* at, double* wide, int* before) {
    if (at[I] & 4) atomicAdd(&wide[at[I] & 63], 1.0);
    before[I] = atomicExch(&before[512 + I], 3) + atomicMax(&before[1024 + (at[I] & 31)], at[I]);
}
__constant__ int table[64];
KERNEL(constants)(const int* at, int* out) {
    out[I] = table[at[I] & 63] + table[5] + table[threadIdx.x / 40];
    if (at[I] & 64) out[I] += table[at[I] & 3];
}
KERNEL(mixed)(const int* at, u64* in, u64* out) {
    __shared__ u64 tile[64];
    u64 own[4] = {I, 1, 2, 9};
    tile[threadIdx.x & 63] = at[I];
    __syncthreads();
    u64* from[3] = {in, tile, own};
    u64* p = from[at[I] % 3];
    out[I] = p[at[I] >> 8 & 3];
    if (at[I] & 16) p[at[I] >> 4 & 3] = 5;
    else atomicAdd(&p[at[I] >> 5 & 3], 1ull);
    out[I] += own[at[I] & 3] + own[at[I] >> 2 & 3];
}
KERNEL(copies)(const int4* in, int4* out) {
    __shared__ int4 tile[128];
    unsigned place = __cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(in + 3 * threadIdx.x));
    if (threadIdx.x & 1) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place), "l"(in + I));
    // The second warp's lanes read nothing, nor do most of the others.
    int bytes = threadIdx.x % 32 < 7 && threadIdx.x / 32 != 1 ? threadIdx.x % 5 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(place), "l"(in + I), "r"(bytes));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[I] = tile[127 - threadIdx.x];
}
// Pairs of lanes at one place, and bytes whose words change with a step that is the same for all lanes.
KERNEL(banks)(double* out) {
    __shared__ double tile[128];
    __shared__ char bytes[256];
    tile[threadIdx.x] = bytes[threadIdx.x] = I;
    __syncthreads();
    double s = tile[threadIdx.x & ~1] + tile[threadIdx.x & ~2];
    #pragma unroll 1
    for (int step = 0; step < 8; step += 2) s += bytes[step + 130 * (threadIdx.x & 1)];
    out[I] = s;
}
KERNEL(long_loops)(int* out) {
    int s = 1;
    #pragma unroll 1
    for (int i = 0; i < 3000 * (threadIdx.x & 3); i++) s = s * 3 + i;
    out[I] = s;
}
KERNEL(lock)(int* mutex, int* count) {
    while (atomicCAS(mutex, 0, 1) != 0) {}
    *(volatile int*)count += 1;
    __threadfence();
    atomicExch(mutex, 0);
}
KERNEL(watch)(volatile int* flag) {
    if (blockIdx.x == 2) *flag = 7;
    while (!*flag) {}
}
KERNEL(grid_stride)(const int* at, int* bins) {
    for (unsigned i = I; i < 4096; i += gridDim.x * blockDim.x) atomicAdd(&bins[at[i] & 63], 1);
}
KERNEL(looks_at_the_clock)(long long* out) { out[threadIdx.x] = clock64(); }
KERNEL(beyond)(int* out, int n) { out[threadIdx.x * n] = 1; }
"""
AT = np.random.default_rng(5).integers(0, 1 << 30, 8192).astype(np.int32)
BYTES = np.zeros(1 << 17, np.uint8)
CASES: dict[str, list[Any]] = {
    "gather": [AT, AT, BYTES],
    "atomics": [AT, BYTES, BYTES],
    "constants": [AT, BYTES],
    "mixed": [AT, BYTES, BYTES],
    "copies": [BYTES, BYTES],
    "banks": [BYTES],
    "long_loops": [BYTES],
    "grid_stride": [AT, BYTES],
}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def ran_natively(kernels: Kernels, name: str) -> bool:
    program = program_of(kernels.module.entries[name])
    return any(kernel is not None for (_, watch, _), kernel in program.native.items() if "counters" in watch)


def count(kernels: Kernels, engine: str, name: str, block: int, arguments: list[Any]) -> LaunchCounters:
    kernels.engine = engine
    counters = LaunchCounters()
    given = [kernels.put(one) if isinstance(one, np.ndarray) else one for one in arguments]
    kernels.launch(name, 3, block, *given, observer=counters)
    return counters


@pytest.mark.parametrize("name", CASES)
def test_all_counts_are_those_of_numpy(kernels: Kernels, name: str) -> None:
    for block in (128, 100):
        expected, got = (count(kernels, engine, name, block, CASES[name]) for engine in ("numpy", "native"))
        assert ran_natively(kernels, name), program_of(kernels.module.entries[name]).native_lack
        assert got.lines == expected.lines
        assert got.metrics == expected.metrics
        assert got.metrics["smsp__inst_executed.sum"] > 0


def test_threads_add_their_counts_up_where_counters_watch_alone(kernels, monkeypatch):
    expected = count(kernels, "numpy", "mixed", 128, CASES["mixed"])
    monkeypatch.setattr(kernels, "threads", 3)
    kernels.engine = "native"
    kernels.launch("mixed", 3, 128, *map(kernels.put, CASES["mixed"]))
    assert count(kernels, "native", "mixed", 128, CASES["mixed"]).lines == expected.lines


@pytest.mark.parametrize(
    ("name", "arguments"), [("looks_at_the_clock", [BYTES]), ("lock", [BYTES, BYTES]), ("watch", [BYTES])]
)
def test_numpy_counts_what_machine_code_lacks_and_where_the_order_of_lanes_shows(kernels, name, arguments):
    counted = count(kernels, "native", name, 32, arguments)
    assert not ran_natively(kernels, name)
    assert counted.lines == count(kernels, "numpy", name, 32, arguments).lines


def test_a_launch_with_findings_which_runs_again_is_counted_once(kernels: Kernels) -> None:
    expected = count(kernels, "numpy", "gather", 128, CASES["gather"])
    kernels.engine, counters = "native", LaunchCounters()
    kernels.launch("gather", 3, 128, *map(kernels.put, CASES["gather"]), observer=Observers(counters, LaunchChecks()))
    assert any("race" in text for text in map(str, findings.pending))
    findings.pending.clear()
    assert counters.lines == expected.lines


def test_a_fault_is_the_same_while_counters_watch(kernels: Kernels) -> None:
    kernels.engine = "native"
    counters = LaunchCounters()
    with pytest.raises(Fault, match=r"a global write of 4 bytes at .* is out of bounds.*thread \(25, 0, 0\)"):
        kernels.launch("beyond", 1, 32, kernels.zeros(100), 4, observer=counters)
    assert ran_natively(kernels, "beyond")
    assert not counters.metrics


pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
