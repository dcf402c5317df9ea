"""Asynchronous copies in launches of more blocks than an engine runs at once."""

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
}"""
BLOCKS = 300  # the NumPy engine runs 32,768 threads at once


@pytest.fixture(params=["numpy", "native"])
def engine(request, monkeypatch):
    if request.param == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)


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
