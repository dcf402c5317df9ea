"""Transforms of rows in one kernel with its callbacks, against NumPy."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.images import compile_image
from cudart_py.libraries import Callback, fft, ifft
from cudart_py.libraries.fourier import planning
from cudart_py.libraries.fourier.row_kernels import RowFunction, row_function
from tests.libraries.test_callbacks import SOURCE, TYPES, same

pytestmark = pytest.mark.needs("libraries")

LENGTH, THREADS, ROWS, ELEMENTS = 22, 5, 3, 5
# The transform of a row by its definition. Each row has 5 threads with 5 places each, of which 3 are unused.
DEFINITION = """
__constant__ float2 roots[22] = ROOTS;

extern "C" __device__ void transform_rows(float2* elements, float2* shared)
{
    float2* row = shared + threadIdx.y * 25;
    for (int e = 0; e < 5; ++e)
        row[threadIdx.x + 5 * e] = elements[e];
    __syncthreads();
#pragma unroll 1
    for (int e = 0; e < 5; ++e) {
        float2 sum = {};
#pragma unroll 1
        for (int i = 0; i < 22; ++i) {
            float2 root = roots[(threadIdx.x + 5 * e) * i % 22];
            sum.x += row[i].x * root.x - row[i].y * root.y;
            sum.y += row[i].x * root.y + row[i].y * root.x;
        }
        elements[e] = sum;
    }
}
"""


@pytest.fixture
def defined(device, monkeypatch):
    """Let transforms of 22 elements use the definition in place of cuFFTDx."""

    def find(length, direction, capability):
        roots = np.exp(direction * 2j * np.pi * np.arange(length) / length)
        values = ", ".join(f"{{{root.real:.9f}f, {root.imag:.9f}f}}" for root in roots)
        source = DEFINITION.replace("ROOTS", f"{{{values}}}")
        code = compile_image(source, arch=capability, options=["-rdc=true", "-dlto"]).ltoir
        shared_bytes = ROWS * THREADS * ELEMENTS * 8
        return RowFunction("transform_rows", length, THREADS, ROWS, ELEMENTS, THREADS, shared_bytes, code)

    monkeypatch.setattr(planning, "row_function", find)


def callbacks(length):
    data = cuda.to_device(np.array([(0.5, length, 0)], [("factor", "f8"), ("columns", "i4"), ("unused", "i4")]))
    define = TYPES[np.complex64]
    return Callback(SOURCE, "load", data, define=define), Callback(SOURCE, "store", define=define)


def check_rows(x, out, host):
    """Compare transforms of the rows of `x`, with callbacks, with those of NumPy. Both arrays may have gaps."""
    rows, length = host.shape
    load, store = callbacks(length)
    numbered = np.arange(rows)[:, None] * (x.strides[0] // 8) + np.arange(length)
    loaded = host.astype(complex) * 0.5 * (numbered % length)
    place = 0.25 * ((np.arange(rows)[:, None] * (out.strides[0] // 8) + np.arange(length)) % 7)
    for given, expected in (
        ({"load": load}, np.fft.fft(loaded)),
        ({"store": store}, np.fft.fft(host.astype(complex)) * place),
        ({"load": load, "store": store}, np.fft.fft(loaded) * place),
    ):
        with fft.plan(x, out, **given) as plan:
            assert plan.fused
            assert same(plan().to_host(), expected, np.complex64)
    assert same(ifft(x, load=load).to_host(), np.fft.ifft(loaded), np.complex64)
    assert same(ifft(x, load=load, norm="ortho").to_host(), np.fft.ifft(loaded, norm="ortho"), np.complex64)


def test_rows_pass_through_callbacks_in_one_kernel_and_may_have_gaps(defined, numbers):
    host = numbers((4, LENGTH + 3), np.complex64)
    whole, out = cuda.to_device(host), cuda.full((4, LENGTH + 5), 7, np.complex64)
    check_rows(whole[:, :LENGTH], out[:, :LENGTH], host[:, :LENGTH])
    assert (out.to_host()[:, LENGTH:] == 7).all()
    x = whole[:, :LENGTH]
    load, _ = callbacks(LENGTH + 3)
    fft(x, x, load=load)
    expected = np.fft.fft(host[:, :LENGTH].astype(complex) * 0.5 * np.arange(LENGTH))
    assert same(x.to_host(), expected, np.complex64)
    assert (whole.to_host()[:, LENGTH:] == host[:, LENGTH:]).all()


def test_a_plan_of_rows_takes_other_operands_and_streams(defined, numbers):
    first, second = numbers((2, 5, LENGTH), np.complex64)
    load, _ = callbacks(LENGTH)
    loaded = 0.5 * np.arange(LENGTH)
    stream = cuda.Stream()
    with fft.plan(cuda.to_device(first), load=load, stream=stream) as plan:
        assert same(plan().to_host(), np.fft.fft(first.astype(complex) * loaded), np.complex64)
        found = plan(cuda.to_device(second)).to_host()
    assert same(found, np.fft.fft(second.astype(complex) * loaded), np.complex64)


def test_columns_wide_elements_and_callbacks_that_cannot_be_linked_take_other_ways(defined, numbers):
    load, _ = callbacks(LENGTH)
    kernel = Callback(SOURCE + "__global__ void kernel() {}", "load", load.data, define=TYPES[np.complex64])
    host = numbers((LENGTH, LENGTH), np.complex64)
    x = cuda.to_device(host)
    expected = np.fft.fft(host.astype(complex) * 0.5 * np.arange(LENGTH), axis=0)
    assert same(fft(x, axis=0, load=load).to_host(), expected, np.complex64)
    expected = np.fft.fft(host.astype(complex) * 0.5 * np.arange(LENGTH))
    assert same(fft(x, load=kernel).to_host(), expected, np.complex64)
    with fft.plan(x, load=Callback(SOURCE, "load", load.data, define=TYPES[np.complex64], fuse=False)) as plan:
        assert not plan.fused
        assert same(plan().to_host(), expected, np.complex64)
    wide = Callback(SOURCE, "load", load.data, define=TYPES[np.complex128])
    assert same(fft(cuda.to_device(host.astype(complex)), load=wide).to_host(), expected, np.complex128)


# MathDx compiles for seconds, twice per length.
@pytest.mark.exhaustive
@pytest.mark.parametrize("length", [64, 256, 1000, 1024, 4096, 16384])
def test_rows_are_transformed_by_mathdx(device, numbers, length):
    if row_function(length, -1, cuda.current_device().compute_capability) is None:
        pytest.skip("needs MathDx and NVIDIA's driver")
    host = numbers((5, length), np.complex64)
    check_rows(cuda.to_device(host), cuda.empty((5, length), np.complex64), host)
