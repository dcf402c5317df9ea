"""Kernels that launch kernels, linked with CUDA's runtime for kernels."""

from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.images import compile_image

nvidia = pytest.importorskip("nvidia", reason="CUDA's wheels, with libcudadevrt.a, are not installed")
LIBRARIES = [found for path in nvidia.__path__ for found in Path(path).glob("**/libcudadevrt.a")]

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
    if not LIBRARIES:
        pytest.skip("libcudadevrt.a is not installed")
    with cuda.Device(0):
        return cuda.link([compile_image(SOURCE, options=["-rdc=true"]), LIBRARIES[0]])["rows"]


def test_the_grids_that_a_grid_launches_end_before_its_tail(device, kernel, rng):
    host = rng.integers(-50, 50, (5, 77)).astype(np.float32)
    x, total = cuda.to_device(host), cuda.full(1, np.nan, np.float32)
    kernel[1, 5](x, total, 77)
    expected = host * np.arange(5, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(x.to_host(), expected)
    assert total.to_host().tolist() == [expected.sum()]
