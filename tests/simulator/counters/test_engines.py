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
#define EACH_TYPE(DO) DO(char) DO(int) DO(int4)

// Lanes take part by chance, and reach global and shared memory at places by chance.
#define GATHER(T) KERNEL(gather_##T)(const int* at, const T* in, T* out) { \
    if (at[I] & 1) out[I] = in[at[I] >> 1 & 1023]; \
    out[at[I] & 1023] = in[I & 1023]; \
}
EACH_TYPE(GATHER)
#define TILE(T) KERNEL(tile_##T)(const int* at, const T* in, T* out) { \
    __shared__ T tile[128]; \
    if (at[I] & 6) tile[at[I] >> 5 & 127] = in[0]; \
    __syncthreads(); \
    if (at[I] & 1) out[I] = tile[at[I] >> 1 & 127]; \
    __syncthreads(); \
    tile[threadIdx.x * 3 & 127] = in[1]; \
    out[I] = tile[(threadIdx.x & 15) * 2]; \
    if (at[I] & 8) out[I] = tile[threadIdx.x & 127]; \
}
EACH_TYPE(TILE)

KERNEL(atomics)(const int* at, int* sums, double* wide, int* before) {
    __shared__ unsigned long long bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&sums[at[I] & 7], 1);
    if (at[I] & 1) atomicAdd(&sums[at[I] >> 2 & 255], at[I]);
    atomicAdd(&sums[5], 1);
    if (at[I] & 4) atomicMax(&sums[at[I] & 8 ? 6 : 7], at[I]);
    atomicAdd(&wide[at[I] & 63], 1.0);
    before[I] = atomicExch(&sums[512 + I], 3) + atomicAdd(&sums[256 + (at[I] & 31)], 1);
    atomicAdd(&bins[at[I] >> 3 & 63], 1);
    if (at[I] & 2) atomicMin(&bins[0], 7);
    __syncthreads();
    if (threadIdx.x < 64) wide[64 + threadIdx.x] = bins[threadIdx.x];
}
__constant__ int table[64];
KERNEL(constants)(const int* at, int* out) {
    out[I] = table[at[I] & 63] + table[5] + table[threadIdx.x / 40];
    if (at[I] & 64) out[I] += table[at[I] & 3];
}
KERNEL(mixed)(const int* at, int* in, int* out) {
    __shared__ int tile[64];
    int own[4] = {at[I], at[I] + 1, at[I] + 2, 9};
    tile[threadIdx.x & 63] = at[I];
    __syncthreads();
    int* from[3] = {in, tile, own};
    int* p = from[at[I] % 3];
    out[I] = p[at[I] >> 8 & 3];
    if (at[I] & 16) p[at[I] >> 4 & 3] = 5;
    else atomicAdd(&p[at[I] >> 5 & 3], 1);
    out[I] += own[at[I] & 3] + own[at[I] >> 2 & 3];
}
KERNEL(tables)(const int* at, double* out) {
    double own[12];
    for (int j = 0; j < 12; j++) own[j] = j * at[I];
    for (int j = 0; j < (at[I] & 7); j++) own[(at[I] >> j) % 12] += own[j];
    out[I] = own[at[I] % 12];
}
__device__ __noinline__ int steps(unsigned v, int* seen) {
    int count = 0;
    while (v > 1) {
        v = v & 1 ? 3 * v + 1 : v >> 1;
        if (v == 40) break;
        if (v % 7 == 3) { *seen = v; continue; }
        count++;
    }
    return count;
}
KERNEL(paths)(const int* at, int* out, int n) {
    if (I >= n) return;
    int s = steps(at[I] & 1023, out + 4096 + I);
    switch (at[I] & 7) {
        case 0: s += 5; break;
        case 1: s *= out[9000];
        case 2: s = -s; break;
        case 5: return;
        default: s++;
    }
    if (at[I] & 32) s += steps(s & 127, out + 4096 + I) + __shfl_down_sync(__activemask(), s, 1);
    out[I] = s;
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
    **{f"{verb}_{kind}": [AT, BYTES, BYTES] for verb in ("gather", "tile") for kind in ("char", "int", "int4")},
    "atomics": [AT, BYTES, BYTES, BYTES],
    "constants": [AT, BYTES],
    "mixed": [AT, BYTES, BYTES],
    "tables": [AT, BYTES],
    "paths": [AT, BYTES, 500],
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
    """Return what an engine counts of a launch of three blocks on fresh arrays."""
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


def test_threads_add_their_counts_up(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = count(kernels, "numpy", "paths", 128, CASES["paths"])
    monkeypatch.setattr(kernels, "threads", 3)
    assert count(kernels, "native", "paths", 128, CASES["paths"]).lines == expected.lines


def test_a_launch_that_nobody_counts_runs_other_code(kernels: Kernels) -> None:
    counted = count(kernels, "native", "gather_int", 128, CASES["gather_int"])
    arguments = [kernels.put(array) for array in CASES["gather_int"]]
    kernels.launch("gather_int", 3, 128, *arguments)
    program = program_of(kernels.module.entries["gather_int"])
    assert {watch for _, watch, _ in program.native} == {frozenset(), frozenset({"counters"})}
    assert counted.lines == count(kernels, "native", "gather_int", 128, CASES["gather_int"]).lines


@pytest.mark.parametrize(
    ("name", "arguments"), [("looks_at_the_clock", [BYTES]), ("lock", [BYTES, BYTES]), ("watch", [BYTES])]
)
def test_numpy_counts_what_machine_code_lacks_and_where_the_order_of_lanes_shows(
    kernels: Kernels, name: str, arguments: list[Any]
) -> None:
    counted = count(kernels, "native", name, 32, arguments)
    assert not ran_natively(kernels, name)
    assert counted.lines == count(kernels, "numpy", name, 32, arguments).lines


def test_a_launch_with_findings_which_runs_again_is_counted_once(kernels: Kernels) -> None:
    given = [AT, AT, BYTES]
    expected = count(kernels, "numpy", "gather_int", 128, given)
    kernels.engine = "native"
    counters, arrays = LaunchCounters(), [kernels.put(array) for array in given]
    kernels.launch("gather_int", 3, 128, *arrays, observer=Observers(counters, LaunchChecks()))
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
