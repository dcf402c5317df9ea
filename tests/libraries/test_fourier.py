"""Fourier transforms on DeviceArrays: every layout against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cudart_py as cuda
from cudart_py.libraries.dtypes import complex32
from cudart_py.libraries.fourier.transforms import fft, ifft, irfft, rfft

scipy_fft = pytest.importorskip("scipy.fft", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")


def same(got, expected, tolerance=1e-5):
    return np.linalg.norm(got - expected) <= tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("axes", [-1, 0, 1, 2, (1, 2), (0, 1), None, np.int64(0), [np.int32(0), 1], np.arange(2)])
def test_fft_is_numpys_along_every_axis(device, numbers, dtype, axes):
    x = numbers((1 if isinstance(axes, int) and axes == 1 else 5, 6, 7), dtype)
    along = None if axes is None else np.atleast_1d(axes).tolist()
    assert same(fft(cuda.to_device(x), axes=axes).to_host(), np.fft.fftn(x, axes=along))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_every_transform_is_scipys_along_any_axis_with_any_norm(device, numbers, norm, axis):
    """The reference is in NumPy's longest precision, and the bound 16 rounding errors per factor of two."""
    x = numbers((6, 5, 7), complex)
    half = np.fft.rfft(x.real, axis=axis)
    for function, operand in ((fft, x), (ifft, x), (rfft, x.real.copy()), (fft, x.real.copy()), (irfft, half)):
        options = {"length": x.shape[axis]} if function is irfft else {}
        found = function(cuda.to_device(operand), axis=axis, norm=norm, **options).to_host()
        wide = operand.astype(np.clongdouble if operand.dtype.kind == "c" else np.longdouble)
        sizes = {"n": x.shape[axis]} if function is irfft else {}
        expected = getattr(scipy_fft, function.__name__)(wide, axis=axis, norm=norm, **sizes)
        assert same(found, expected, 16 * 2**-53 * 3)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_real_elements_may_begin_anywhere(device, numbers, first, axis):
    """Each call of cuFFT rejects real elements that do not begin where a complex element could."""
    x, shape = numbers(4 * 5 * 7 + 1, np.float32), (4, 5, 7)
    host = x[first : first + 140].reshape(shape)
    spectrum = np.fft.rfft(host.astype(float), axis=axis)
    real = cuda.to_device(x)[first : first + 140].reshape(shape)
    assert same(rfft(real, axis=axis).to_host(), spectrum)
    whole = cuda.full(141, 3, np.float32)
    out = whole[first : first + 140].reshape(shape)
    irfft(cuda.to_device(spectrum.astype(np.complex64)), out, axis=axis, length=shape[axis])
    assert same(out.to_host(), host)
    assert whole.to_host()[0 if first else -1] == 3


def test_a_result_is_scaled_within_a_window_and_nowhere_else(device, numbers):
    x = numbers((4, 6), np.complex64)
    whole = cuda.full((5, 7, 2), 1, np.complex64)
    ifft(cuda.to_device(x), whole[1:, :6, 1], axis=0)
    found = whole.to_host()
    assert same(found[1:, :6, 1], np.fft.ifft(x, axis=0))
    found[1:, :6, 1] = 1
    assert np.all(found == 1)


def test_one_call_covers_as_many_transforms_as_are_evenly_spaced(device, record, numbers):
    calls = record("cufft", "exec_z2z")
    x = numbers((50, 4, 3), complex)
    assert same(fft(cuda.to_device(x), axis=1).to_host(), np.fft.fft(x, axis=1))
    assert len(calls) == 3
    with pytest.raises(ValueError, match="fft: argument 'x' must .* at most 4096 groups .* 4225 .*; pass x.copy"):
        fft(cuda.zeros((65, 66, 66, 2), np.complex64)[:, :65, :65, :1], axis=3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("last", [8, 9])
def test_rfft_and_irfft_are_numpys(device, numbers, dtype, last):
    x = numbers((4, 6, last), dtype)
    spectrum = rfft(cuda.to_device(x), axes=(1, 2))
    assert same(spectrum.to_host(), np.fft.rfftn(x, axes=(1, 2)))
    assert same(irfft(spectrum, axes=(1, 2), length=last).to_host(), x)
    out = cuda.empty((4, 6, last), dtype)
    assert irfft(spectrum, out, axes=(1, 2), length=np.int64(last)) is out
    assert same(out.to_host(), x)


def test_irfft_leaves_its_operand_alone_unless_told_otherwise(device, record, numbers):
    spectrum = cuda.to_device(numbers((4, 5), np.complex64))
    out = cuda.empty((4, 8), np.float32)
    calls = record("cufft", "exec_c2r")
    for overwrite in (False, False, True):
        irfft(spectrum, out, axes=(0, 1), overwrite=overwrite)
    assert [source == spectrum.pointer for _, (_, source, _) in calls] == [False, False, True]


def test_transforms_work_in_place(device, numbers):
    x = numbers((4, 8), np.complex64)
    array = cuda.to_device(x)
    assert fft(array, array) is array
    assert same(array.to_host(), np.fft.fft(x))
    assert same(ifft(array, array).to_host(), x)


def test_rfft_works_in_place_in_padded_rows(device, numbers):
    x = numbers((6, 8), np.float32)
    padded = cuda.zeros((6, 10), np.float32)
    cuda.memcpy2d(padded, x)
    rfft(padded[:, :8], padded.view(np.complex64), axes=(0, 1))
    assert same(padded.view(np.complex64).to_host(), np.fft.rfft2(x))
    irfft(padded.view(np.complex64), padded[:, :8], axes=(0, 1))
    assert same(padded.to_host()[:, :8], x)


def test_transforms_of_halves(device, numbers):
    x, real = np.zeros((3, 8), complex32), numbers((3, 16), np.float16)
    x["real"], x["imag"] = numbers((2, 3, 8))
    spectrum = rfft(cuda.to_device(real))
    for got, expected in (
        (fft(cuda.to_device(x)).to_host(), np.fft.fft(x["real"].astype(float) + 1j * x["imag"])),
        (spectrum.to_host(), np.fft.rfft(real.astype(float))),
    ):
        assert same(got["real"].astype(float) + 1j * got["imag"], expected, 1e-2)
    assert same(irfft(spectrum).to_host().astype(float), real.astype(float), 1e-2)
    found = fft(cuda.to_device(real)).to_host()
    assert same(found["real"].astype(float) + 1j * found["imag"], np.fft.fft(real.astype(float)), 1e-2)


def test_a_plan_is_made_once_and_given_back_when_many_were_made(device, record):
    """A value that equals an argument of a cached plan, as True equals 1, is validated all the same."""
    made = record("cufft", "create", "make_plan_many", "exec_c2c")
    given_back = record("cufft", "destroy")
    x, out = cuda.zeros((3, 8), np.complex64), cuda.zeros((3, 8), np.complex64)
    for _ in range(2):
        fft(x, out)
    assert [name for name, _ in made] == ["create", "make_plan_many", "exec_c2c", "exec_c2c"]
    fft(x, out, axes=1)
    with pytest.raises(TypeError, match="fft: argument 'axes' must be an int, not the bool"):
        fft(x, out, axes=True)
    out.close()
    with pytest.raises(ValueError, match="fft: argument 'out' must be open"):
        fft(x, out)
    for length in range(1, 80):
        fft(cuda.zeros(length, np.complex64))
    assert [name for name, _ in made].count("create") - len(given_back) == 64


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    gaps=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    data=st.data(),
)
def test_fft_takes_any_window_or_refuses_it(device, numbers, shape, gaps, data):
    x = numbers([2 * (size + gap) for size, gap in zip(shape, gaps, strict=False)], np.complex64)
    window = (*map(slice, shape[:-1]), slice(0, 2 * shape[-1], data.draw(st.integers(1, 2))))
    first = data.draw(st.integers(0, len(shape) - 1))
    axes = tuple(range(first, data.draw(st.integers(first, min(first + 2, len(shape) - 1))) + 1))
    try:
        found = fft(cuda.to_device(x)[window], axes=axes).to_host()
    except ValueError:
        return
    assert same(found, np.fft.fftn(x[window], axes=axes))


@pytest.mark.parametrize("axes", [(1, 0), (-1, 0), [2, 1]])
def test_a_real_transform_that_would_halve_another_axis_than_numpys_is_refused(device, numbers, axes):
    x = numbers((4, 6, 8) if 2 in axes else (4, 6))
    for function in (rfft, irfft):
        operand = x if function is rfft else x + 0j
        with pytest.raises(ValueError, match=r"^i?rfft: argument 'axes' must end with axis \d, .* transposed copy"):
            function(cuda.to_device(operand), axes=axes)
    assert np.allclose(fft(cuda.to_device(x + 0j), axes=axes).to_host(), np.fft.fftn(x, axes=axes))


def test_axes_in_any_order_halve_the_last_one_as_in_numpy(device, numbers):
    x = numbers((4, 6, 8))
    got = rfft(cuda.to_device(x), axes=(1, 0, 2), norm=None).to_host()
    assert np.allclose(got, np.fft.rfftn(x, axes=(1, 0, 2), norm=None))
