"""Bulk copies in the machine: what their faults say. What kernels get is in tests/launch/test_bulk_copies.py."""

from __future__ import annotations

import pytest

from cudart_py.simulator.ptx import Fault
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void fetch(const int* in, int bytes, int to, int from, int lane) {
    __shared__ alignas(16) int s[64];
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
    __syncthreads();
    if (threadIdx.x == lane)
        ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, (char*)s + to, (const char*)in + from, bytes, &bar);
}
extern "C" __global__ void store(int* out, int bytes) {
    __shared__ alignas(16) int s[64];
    s[threadIdx.x] = 1;
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, bytes);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
extern "C" __global__ void spread(const int* in, int ranks) {
    __shared__ alignas(16) int s[64];
    __shared__ alignas(8) uint64_t bar;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 256, [%2], %3;" : : "r"((unsigned)__cvta_generic_to_shared(s)), "l"(in),
                     "r"((unsigned)__cvta_generic_to_shared(&bar)), "h"((short)ranks) : "memory");
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


@pytest.mark.parametrize(
    ("bytes_", "to", "source", "status", "text"),
    [
        (24, 0, 0, "ILLEGAL_INSTRUCTION", "a bulk copy of 24 bytes, which is no multiple of 16"),
        (64, 8, 0, "MISALIGNED_ADDRESS", "needs an address aligned to 16 bytes"),
        (64, 0, 4, "MISALIGNED_ADDRESS", "needs an address aligned to 16 bytes"),
        (1 << 16, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* is out of bounds"),
        (0x7FFFFFF0, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* is out of bounds"),
        (-16, 0, 0, "ILLEGAL_ADDRESS", "shared write of 16 bytes at .* is out of bounds"),
        (256, 0, 16, "ILLEGAL_ADDRESS", "global read of 16 bytes at .* is out of bounds"),
    ],
)
def test_a_wrong_copy_is_a_fault_of_its_thread(
    kernels: Kernels, bytes_: int, to: int, source: int, status: str, text: str
) -> None:
    with pytest.raises(Fault, match=text) as caught:
        kernels.launch("fetch", 1, 64, kernels.zeros(64), bytes_ & 0xFFFFFFFF, to, source, 37)
    assert caught.value.status_name == f"CUDA_ERROR_{status}"
    assert "thread (37, 0, 0)" in caught.value.report


def test_a_wrong_store_is_a_write(kernels: Kernels) -> None:
    with pytest.raises(Fault, match="global write of 16 bytes at .* is out of bounds"):
        kernels.launch("store", 1, 1, kernels.zeros(32), 256)


def test_a_copy_goes_to_blocks_of_the_cluster_alone(kernels: Kernels) -> None:
    with pytest.raises(Fault, match="a bulk copy to the block of rank 3, in a cluster of 2"):
        kernels.launch("spread", 2, 32, kernels.zeros(64), 0b1001, cluster=(2, 1, 1))
