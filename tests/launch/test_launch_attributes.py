"""Attributes of launches: dependent launches, priorities, shared memory's share, cluster scheduling, domains."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda

KERNELS = """
#include <cuda_device_runtime_api.h>
extern "C" __global__ void produce(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    if (i < n) x[i] = i;
}
extern "C" __global__ void consume(int *y, const int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaGridDependencySynchronize();
    if (i < n) y[i] = 2 * x[n - 1 - i];
}
extern "C" __global__ void fill(float *x, float value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
"""
N = 100_000


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


@pytest.mark.parametrize("is_captured", [False, True])
def test_a_dependent_launch_reads_what_the_launch_before_it_wrote(device, kernels, is_captured):
    with cuda.Stream() as stream:
        x, y = cuda.zeros(N, np.int32, stream=stream), cuda.zeros(N, np.int32, stream=stream)

        def launch():
            kernels["produce"][391, 256, 0, stream](x, N)
            kernels["consume"].launch(391, 256, 0, stream, programmatic=True)(y, x, N)

        if is_captured:
            with stream.capture("relaxed") as graph:
                launch()
            graph.instantiate().launch(stream)
        else:
            launch()
            launch()
        np.testing.assert_array_equal(y.to_host(stream=stream), 2 * np.arange(N)[::-1])
        x.close()
        y.close()


OPTIONS = [
    {"priority": 0},
    {"carveout": 50},
    {"carveout": 0},
    {"cluster": 2, "cluster_scheduling": "spread"},
    {"cluster": 2, "cluster_scheduling": "load_balancing"},
    {"memory_domain": "remote"},
    {"programmatic": True, "carveout": 100, "memory_domain": "default"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_launch_with_attributes_computes_the_same(device, kernels, options):
    x = cuda.zeros(128, np.float32)
    kernels["fill"].launch(4, 32, **options)(x, 3.0)
    np.testing.assert_array_equal(x.to_host(), np.full(128, 3.0))


BAD = [
    ({"programmatic": 1}, TypeError, "'programmatic' must be a bool, not the int 1"),
    ({"priority": 99}, ValueError, "'priority' must be an int from .* not the int 99"),
    ({"priority": "high"}, TypeError, "'priority' must be an int, not the str 'high'"),
    ({"carveout": 101}, ValueError, "'carveout' must be an int from 0 to 100, not the int 101"),
    ({"carveout": -1}, ValueError, "'carveout' must be an int from 0 to 100, not the int -1"),
    ({"cluster_scheduling": "random"}, ValueError, "'cluster_scheduling' must be one of 'default', 'spread'"),
    ({"memory_domain": 1}, TypeError, "'memory_domain' must be a str, not the int 1"),
]


@pytest.mark.parametrize(("options", "error", "words"), BAD)
def test_a_bad_attribute_names_kernel_and_argument(device, kernels, options, error, words):
    with pytest.raises(error, match=f"fill: argument {words}"):
        kernels["fill"].launch(1, 32, **options)


def test_a_kernels_carveout_is_read_and_set(device, kernels):
    kernel = kernels["fill"]
    assert kernel.carveout is None
    kernel.carveout = 25
    assert kernel.carveout == 25
    kernel.carveout = None
    assert kernel.carveout is None
    with pytest.raises(ValueError, match="'carveout' must be an int from 0 to 100, not the int 200"):
        kernel.carveout = 200
