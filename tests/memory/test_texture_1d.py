"""Textures of one dimension, whose elements kernels read by number."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda

KERNELS = """
extern "C" __global__ void fetch(cudaTextureObject_t t, const int *at, float *out) {
    out[threadIdx.x] = tex1Dfetch<float>(t, at[threadIdx.x]);
}
extern "C" __global__ void fetch_int(cudaTextureObject_t t, const int *at, int *out) {
    out[threadIdx.x] = tex1Dfetch<int>(t, at[threadIdx.x]);
}
extern "C" __global__ void fetch_two(cudaTextureObject_t t, const int *at, float2 *out) {
    out[threadIdx.x] = tex1Dfetch<float2>(t, at[threadIdx.x]);
}
"""


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


def fetched(kernel, texture, at, dtype=np.float32, channels=1):
    out = cuda.zeros(len(at) * channels, dtype)
    kernel[1, len(at)](texture, cuda.to_device(np.array(at, np.int32)), out)
    return out.to_host().tolist()


def test_elements_are_read_by_number_and_zeros_outside(device, kernels):
    host = np.arange(1, 101, dtype=np.float32)
    texture = cuda.Texture(cuda.to_device(host))
    assert fetched(kernels["fetch"], texture, [0, 99, 42, 100, -1]) == [1, 100, 43, 0, 0]
    assert texture.options.addresses == ("border", "border", "border")


def test_integers_are_read_as_they_are_or_as_floats(device, kernels):
    texture = cuda.Texture(cuda.to_device(np.array([-5, 2**31 - 1], np.int32)))
    assert fetched(kernels["fetch_int"], texture, [1, 0], np.int32) == [2**31 - 1, -5]
    parts = cuda.Texture(cuda.to_device(np.array([0, 255], np.uint8)), read="normalized_float")
    assert fetched(kernels["fetch"], parts, [0, 1]) == [0, 1]


def test_elements_have_channels(device, kernels):
    host = np.arange(10, dtype=np.float32).reshape(5, 2)
    texture = cuda.Texture(cuda.to_device(host), dimensions=1)
    assert fetched(kernels["fetch_two"], texture, [4, 0], channels=2) == [8, 9, 0, 1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda x: cuda.Texture(x, filter="linear"), ValueError, "argument 'filter' has no meaning"),
        (lambda x: cuda.Texture(x, normalized=True), ValueError, "argument 'normalized' has no meaning"),
        (lambda x: cuda.Texture(x, address="border"), ValueError, "argument 'address' has no meaning"),
        (lambda x: cuda.Texture(x, dimensions=3), ValueError, "argument 'dimensions'"),
        (lambda x: cuda.Texture(x, dimensions=2), ValueError, r"\(height, width\)"),
        (lambda x: cuda.Texture(x[::2]), ValueError, "must be contiguous"),
        (lambda x: cuda.Texture(x[1:]), ValueError, "begins at a multiple of"),
        (lambda x: cuda.Texture(x.reshape(-1, 3), dimensions=1), ValueError, "1, 2 or 4 channels"),
        (lambda x: cuda.Texture(cuda.zeros((2, 2, 2), np.float32), dimensions=1), ValueError, "of one dimension has"),
    ],
)
def test_what_a_texture_of_one_dimension_cannot_be_is_named(device, make, error, message):
    with pytest.raises(error, match=message):
        make(cuda.zeros(48, np.float32))
