"""Kernels that launch kernels, linked with CUDA's runtime for kernels."""

from pathlib import Path

import numpy as np
import pytest
from cuda.pathfinder import StaticLibNotFoundError, find_static_lib

import cudart_py as cuda
from cudart_py.images import compile_image

try:
    LIBRARY = Path(find_static_lib("cudadevrt"))
except StaticLibNotFoundError:
    pytest.skip("libcudadevrt.a is not installed", allow_module_level=True)

SOURCE = """
__global__ void scale(float *x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
__global__ void total(const float *x, float *sum, int n) {
    float found = 0;
    for (int i = 0; i < n; ++i) found += x[i];
    *sum = found;
}
// Scales each row of a matrix by its index, and then sums the whole.
extern "C" __global__ void rows(float *x, float *sum, int columns) {
    int row = threadIdx.x;
    scale<<<(columns + 31) / 32, 32>>>(x + row * columns, row, columns);
    if (row == 0) total<<<1, 1, 0, cudaStreamTailLaunch>>>(x, sum, blockDim.x * columns);
}
"""


@pytest.fixture(scope="module")
def kernel():
    with cuda.Device(0):
        return cuda.link([compile_image(SOURCE, options=["-rdc=true"]), LIBRARY])["rows"]


def test_the_library_that_is_missing_is_named(device):
    with pytest.raises(cuda.errors.LinkError, match=r"__cudaCDP2LaunchDeviceV2.*\n(.*\n)*.*libcudadevrt\.a"):
        cuda.link([compile_image(SOURCE, options=["-rdc=true"])])
    for source in (SOURCE, SOURCE.replace(", cudaStreamTailLaunch>>>", ">>>")):
        with pytest.raises(cuda.CompileError, match=r"-rdc=true.*\n?.*libcudadevrt\.a"):
            cuda.compile(source)


def test_the_grids_that_a_grid_launches_end_before_its_tail(device, kernel, rng):
    host = rng.integers(-50, 50, (5, 77)).astype(np.float32)
    x, total = cuda.to_device(host), cuda.full(1, np.nan, np.float32)
    kernel[1, 5](x, total, 77)
    expected = host * np.arange(5, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(x.to_host(), expected)
    assert total.to_host().tolist() == [expected.sum()]
