"""A block's shared memory ends at a multiple of 128 bytes: beyond the variables, loads get anything, stores are found.

Where it ends on each driver is in tests/launch/test_shared_memory_end.py.
"""

from __future__ import annotations

import re

import pytest

from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
#include <cuda_pipeline_primitives.h>
extern __shared__ int s[];
extern "C" __global__ void stored(int* out, int at) { ((volatile int*)s)[at] = 7; out[0] = ((volatile int*)s)[at]; }
extern "C" __global__ void loaded(int* out, int at) { int v = ((volatile int*)s)[at]; out[1] = at < 0 ? v : 3; }
extern "C" __global__ void used(int* out, int at) { out[0] = ((volatile int*)s)[at] + 1; }
extern "C" __global__ void added(int* out, int at) { atomicAdd(s + at, 1); out[0] = 1; }
extern "C" __global__ void vectors(int* out, int at) {
    int4* v = (int4*)(s + at);
    *v = make_int4(1, 2, 3, 4);
    out[0] = ((volatile int*)s)[at + 1];
}
extern "C" __global__ void part_of_a_vector(int* out, int at) {
    s[at] = s[at + 1] = s[at + 2] = 5;
    int4 v = *(int4*)(s + at);
    asm volatile("" :: "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
    out[0] = v.x + v.y + v.z;
}
extern "C" __global__ void generic(int* out, int at) {
    int* p = threadIdx.x ? out + 1 : s + at;
    *(volatile int*)p = 7;
    out[threadIdx.x] = *(volatile int*)p;
}
extern "C" __global__ void fixed(int* out, int at) {
    __shared__ int f[7];
    volatile int* p = f;
    p[at] = 7;
    out[0] = p[at];
}
extern "C" __global__ void fixed_and_dynamic(int* out, int at) {
    __shared__ int f[7];
    f[threadIdx.x] = 1;
    ((volatile int*)s)[at] = f[0];
    out[0] = ((volatile int*)s)[at];
}
extern "C" __global__ void copied(int* out, int at) {
    out[1] = 7;
    __pipeline_memcpy_async(s + at, out + 1, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[0] = ((volatile int*)s)[at];
}
extern "C" __global__ void neighbour(int* out, int at) {
    *((volatile int*)__cluster_map_shared_rank(s, __clusterRelativeBlockRank() ^ 1) + at) = 7;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    out[0] = ((volatile int*)s)[at];
}
extern "C" __global__ void bulk(int* out, int at) {
    unsigned to = (unsigned)__cvta_generic_to_shared(s + at), barrier = (unsigned)__cvta_generic_to_shared(s);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];"
                 ::"r"(to), "l"(out), "r"(barrier) : "memory");
}
"""
# The kernels that write at a place, with the sizes of their accesses.
WRITERS = {"stored": 4, "added": 4, "vectors": 16, "generic": 4, "fixed_and_dynamic": 4, "copied": 4}


@pytest.fixture(scope="module")
def compiled() -> Kernels:
    return Kernels(SOURCE)


@pytest.fixture
def kernels(engine: str, compiled: Kernels) -> Kernels:
    compiled.engine = engine
    return compiled


def found(kernels: Kernels, name: str, at: int, shared_bytes: int, threads: int = 1, blocks: int = 1) -> list[str]:
    """Return the findings of a launch."""
    findings.pending.clear()
    out = kernels.zeros(64)
    cluster = (blocks, 1, 1)
    kernels.launch(name, blocks, threads, out, at, shared_bytes=shared_bytes, cluster=cluster, observer=LaunchChecks())
    texts = [str(finding) for finding in findings.pending]
    findings.pending.clear()
    return texts


@pytest.mark.parametrize("name", WRITERS)
def test_every_write_ends_there(kernels: Kernels, name: str) -> None:
    out, last = kernels.zeros(64), (128 - WRITERS[name]) // 4
    # The static variables lie before the dynamic ones.
    last -= 8 if name == "fixed_and_dynamic" else 0
    kernels.launch(name, 1, 1, out, last, shared_bytes=12)
    with pytest.raises(Fault, match="out of bounds"):
        kernels.launch(name, 1, 1, out, last + WRITERS[name] // 4, shared_bytes=12)


@pytest.mark.parametrize("name", [*WRITERS, "fixed"])
def test_a_write_beyond_the_variables_is_found(kernels: Kernels, name: str) -> None:
    size = 0 if name == "fixed" else 28
    (text,) = found(kernels, name, 8, size)
    assert re.search("out of bounds: it .*of shared memory at 0x4.*bytes that the block has", text)


def test_a_write_beyond_the_variables_of_another_block_is_found(kernels: Kernels) -> None:
    (text,) = found(kernels, "neighbour", 8, 28, blocks=2)
    assert "out of bounds: it writes 4 bytes" in text
    with pytest.raises(Fault, match="100 bytes past the end"):
        kernels.launch("neighbour", 2, 1, kernels.zeros(8), 32, shared_bytes=28, cluster=(2, 1, 1))


def test_a_bulk_copy_beyond_the_variables_is_found(kernels: Kernels) -> None:
    (text,) = found(kernels, "bulk", 8, 40)
    assert "out of bounds: it writes 16 bytes" in text
    with pytest.raises(Fault, match="out of bounds"):
        kernels.launch("bulk", 1, 1, kernels.zeros(64), 32, shared_bytes=40)


def test_a_load_beyond_the_variables_is_uninitialised(kernels: Kernels) -> None:
    (text,) = found(kernels, "used", 7, 28)
    assert "uninitialised value reaches a store: it was read at" in text
    assert "beyond the 28 bytes that the block has" in text


@pytest.mark.parametrize(("name", "at"), [("stored", 6), ("loaded", 7), ("part_of_a_vector", 4)])
def test_writes_inside_and_loads_whose_values_are_not_used_are_fine(kernels: Kernels, name: str, at: int) -> None:
    assert found(kernels, name, at, 28) == []
