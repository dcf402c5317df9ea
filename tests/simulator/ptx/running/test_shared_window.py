"""The window of shared memory: 32-bit addresses, a reserved KiB in front, and what CUDA's headers find there."""

from __future__ import annotations

import pytest

from cudart_py.simulator.ptx import Fault
from cudart_py.simulator.ptx.windows import RESERVED_SHARED
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
extern "C" __global__ void wrapped(int *out, unsigned long long base) {
    __shared__ int cells[8];
    cells[threadIdx.x] = 100 + threadIdx.x;
    __syncthreads();
    asm volatile("ld.shared.u32 %0, [%1+1032];  // of %2" : "=r"(out[0]) : "r"((unsigned)base), "l"(cells) : "memory");
    asm volatile("ld.shared.u32 %0, [%1+1032];  // of %2" : "=r"(out[1]) : "l"(base), "l"(cells) : "memory");
}
extern "C" __global__ void reserved(unsigned *out, unsigned at) {
    __shared__ int cells[16];
    cells[threadIdx.x] = 1;
    unsigned found;
    asm volatile("st.shared.u32 [%1], %2; ld.shared.u32 %0, [%1];" : "=r"(found) : "r"(at), "r"(7u) : "memory");
    *out = found + cells[0] - 1;
}
extern "C" __global__ void address(unsigned *out) {
    __shared__ int cells[16];
    extern __shared__ int more[];
    out[0] = (unsigned)__cvta_generic_to_shared(cells);
    out[1] = (unsigned)__cvta_generic_to_shared(more);
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def test_variables_begin_behind_the_reserved_kibibyte(kernels):
    out = kernels.zeros(2)
    kernels.launch("address", 1, 1, out, shared_bytes=16)
    assert kernels.get(out, 2).tolist() == [RESERVED_SHARED, RESERVED_SHARED + 64]


@pytest.mark.parametrize("base", [0, 4, 2**32 - 8, 2**64 - 8])
def test_a_register_and_its_offset_wrap_at_32_bits_however_wide_it_is(kernels, base):
    out = kernels.zeros(2)
    kernels.launch("wrapped", 1, 8, out, base)
    assert kernels.get(out, 2).tolist() == [100 + (base + 8) % 2**32 // 4] * 2


def test_the_part_of_the_reserved_memory_that_is_for_cuda_may_be_used(kernels):
    out = kernels.zeros(1)
    kernels.launch("reserved", 2, 16, out, 284)
    assert kernels.get(out, 1)[0] == 7


@pytest.mark.parametrize(
    ("at", "where"),
    [
        (288, "736 bytes before the start"),
        (1020, "4 bytes before the start"),
        (1152, "64 bytes past the end"),
        (2**32 - 8, "1032 bytes before the start"),
    ],
)
def test_the_rest_of_the_reserved_memory_is_nobodys(kernels, at, where):
    with pytest.raises(Fault, match=where):
        kernels.launch("reserved", 1, 16, kernels.zeros(1), at)
