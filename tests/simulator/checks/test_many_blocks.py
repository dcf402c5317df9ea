"""Asynchronous copies and reductions in launches of more blocks than an engine runs at once."""

import numpy as np
import pytest

import cudart_py as cuda

SOURCE = """
extern "C" __global__ void reversed(const float *in, float *out, int waits)
{
    __shared__ float tile[256];
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
    const float *from = in + blockIdx.x * 256 + threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(from) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (waits || blockIdx.x != gridDim.x - 1)
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
}
// Each block adds 1 to every sum. The last block but one may also read the first sum, which nothing orders.
extern "C" __global__ void counted(int *sums, int *out, int reads)
{
    __shared__ alignas(16) int ones[256];
    ones[threadIdx.x] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 1024;"
                     "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
                     :: "l"(sums), "r"((unsigned)__cvta_generic_to_shared(ones)) : "memory");
        if (reads && blockIdx.x == gridDim.x - 2) *out = sums[0];
    }
}
// Each block reverses its part of an array. The last block does not write to its shared memory.
extern "C" __global__ void unwritten(const float *in, float *out, int all)
{
    __shared__ float tile[256];
    if (all || blockIdx.x != gridDim.x - 1) tile[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
}"""
BLOCKS = 300  # the NumPy engine runs 32,768 threads at once


def test_a_barrier_orders_the_wait_of_another_thread_in_every_block(device, engine, rng):
    host = rng.random((BLOCKS, 256), np.float32)
    out = cuda.empty(host.shape, np.float32)
    with cuda.sanitizer("error"):
        cuda.compile(SOURCE)["reversed"][BLOCKS, 256](cuda.to_device(host), out, 1)
        np.testing.assert_array_equal(out.to_host(), host[:, ::-1])


@pytest.mark.needs("profile")
def test_a_missing_wait_in_the_last_block_is_found(device, engine):
    array = cuda.zeros((BLOCKS, 256), np.float32)
    kernel = cuda.compile(SOURCE)["reversed"]
    with cuda.sanitizer("error"):
        kernel[BLOCKS, 256](array, cuda.empty(array.shape, np.float32), 0)
        with pytest.raises(cuda.errors.SimulatorWarning, match=rf"block \({BLOCKS - 1}, 0, 0\)"):
            device.synchronize()


@pytest.mark.needs("sm_90")  # which has bulk copies
@pytest.mark.parametrize("reads", [0, pytest.param(1, marks=pytest.mark.needs("profile"))])
def test_bulk_reductions_of_all_blocks_are_atomic_but_reads_are_not_ordered(device, engine, reads):
    kernel, sums = cuda.compile(SOURCE, arch="sm_90")["counted"], cuda.zeros(256, np.int32)
    with cuda.sanitizer("error"):
        kernel[BLOCKS, 256](sums, cuda.zeros(1, np.int32), reads)
        if reads:
            with pytest.raises(cuda.errors.SimulatorWarning, match="race: it reads 4 bytes"):
                device.synchronize()
        else:
            np.testing.assert_array_equal(sums.to_host(), BLOCKS)


@pytest.mark.needs("profile")
def test_what_earlier_blocks_did_in_shared_memory_is_forgotten(device, engine):
    # The blocks that the NumPy engine runs last need as much memory for their records as those before.
    blocks = 256
    array, kernel = cuda.zeros((blocks, 256), np.float32), cuda.compile(SOURCE)["unwritten"]
    with cuda.sanitizer("error"):
        kernel[blocks, 256](array, cuda.empty(array.shape, np.float32), 1)
        device.synchronize()
        kernel[blocks, 256](array, cuda.empty(array.shape, np.float32), 0)
        words = rf"nothing has been written.*block \({blocks - 1}, 0, 0\)"
        with pytest.raises(cuda.errors.SimulatorWarning, match=words):
            device.synchronize()
