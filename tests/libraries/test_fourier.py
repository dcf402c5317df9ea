"""Transforms on DeviceArrays: every layout against SciPy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cudart_py as cuda
from cudart_py.libraries.fourier.layout import describe
from cudart_py.libraries.fourier.transforms import complex32, fft, ifft, irfft, rfft

pytestmark = pytest.mark.needs("libraries")


def numbers(rng, shape, dtype=np.complex64):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def same(got, expected):
    return np.linalg.norm(got - expected) <= 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("axes", [-1, 0, 1, 2, (1, 2), (0, 1), None])
def test_fft_is_numpys_along_every_axis(device, rng, dtype, axes):
    shape = (5, 6, 7)
    if axes == 1:
        shape = (1, 6, 7)
    x = numbers(rng, shape, dtype)
    along = range(3) if axes is None else (axes,) if isinstance(axes, int) else axes
    assert same(fft(cuda.to_device(x), axes=axes).to_host(), np.fft.fftn(x, axes=tuple(along)))


def test_ifft_is_not_divided(device, rng):
    x = numbers(rng, (3, 8))
    assert same(ifft(fft(cuda.to_device(x))).to_host(), 8 * x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("last", [8, 9])
def test_rfft_and_irfft_are_numpys(device, rng, dtype, last):
    x = numbers(rng, (4, 6, last), dtype)
    spectrum = rfft(cuda.to_device(x), axes=(1, 2))
    assert same(spectrum.to_host(), np.fft.rfftn(x, axes=(1, 2)))
    assert same(irfft(spectrum, axes=(1, 2), length=last).to_host(), 6 * last * x)


def test_irfft_leaves_its_operand_alone_unless_told_otherwise(device, record, rng):
    spectrum = cuda.to_device(numbers(rng, (4, 5)))
    before = spectrum.pointer
    out = cuda.empty((4, 8), np.float32)
    calls = record("cufft", "exec_c2r")
    irfft(spectrum, out, axes=(0, 1))
    irfft(spectrum, out, axes=(0, 1))
    assert len(calls) == 2
    assert before not in [source for _, (_, source, _) in calls]


def test_axes_may_be_any_whole_numbers(device, rng):
    x = numbers(rng, (4, 6))
    array = cuda.to_device(x)
    assert same(fft(array, axes=np.int64(0)).to_host(), np.fft.fft(x, axis=0))
    assert same(fft(array, axes=[np.int32(0), 1]).to_host(), np.fft.fft2(x))
    assert same(fft(array, axes=np.arange(2)).to_host(), np.fft.fft2(x))


def test_a_bool_is_no_axis_though_its_equal_was_taken_before(device):
    x, out = zeros(4, 4), zeros(4, 4)
    fft(x, out, axes=1)
    with pytest.raises(TypeError, match="axes must be an int, not bool"):
        fft(x, out, axes=True)


def test_a_length_may_be_given_beside_an_out_that_has_it(device, rng):
    x = numbers(rng, (3, 9), np.float32)
    out = cuda.empty((3, 9), np.float32)
    assert irfft(rfft(cuda.to_device(x)), out, length=np.int64(9)) is out
    assert same(out.to_host(), 9 * x)


def test_fft_works_in_place(device, rng):
    x = numbers(rng, (4, 8))
    array = cuda.to_device(x)
    assert fft(array, array) is array
    assert same(array.to_host(), np.fft.fft(x))


def test_rfft_works_in_place_in_padded_rows(device, rng):
    x = numbers(rng, (6, 8), np.float32)
    padded = cuda.zeros((6, 10), np.float32)
    cuda.memcpy2d(padded, x)
    rfft(padded[:, :8], padded.view(np.complex64), axes=(0, 1))
    assert same(padded.view(np.complex64).to_host(), np.fft.rfft2(x))
    irfft(padded.view(np.complex64), padded[:, :8], axes=(0, 1))
    assert same(padded.to_host()[:, :8], 48 * x)


def test_fft_takes_windows_and_strides(device, rng):
    x = numbers(rng, (7, 20))
    array = cuda.to_device(x)
    assert same(fft(array[1:6, 3:19:2]).to_host(), np.fft.fft(x[1:6, 3:19:2]))
    assert same(fft(array[1:6, 4:12], axes=None).to_host(), np.fft.fft2(x[1:6, 4:12]))


def test_fft_of_halves(device, rng):
    x = np.zeros((3, 8), complex32)
    x["real"], x["imag"] = rng.standard_normal((2, 3, 8))
    got = fft(cuda.to_device(x)).to_host()
    expected = np.fft.fft(x["real"].astype(float) + 1j * x["imag"])
    assert np.linalg.norm(got["real"] + 1j * got["imag"] - expected) <= 1e-2 * np.linalg.norm(expected)


def test_rfft_of_halves_and_back(device, rng):
    x = rng.standard_normal((3, 16)).astype(np.float16)
    spectrum = rfft(cuda.to_device(x))
    found, expected = spectrum.to_host(), np.fft.rfft(x.astype(float))
    assert np.linalg.norm(found["real"] + 1j * found["imag"] - expected) <= 1e-2 * np.linalg.norm(expected)
    assert np.linalg.norm(irfft(spectrum).to_host().astype(float) - 16.0 * x) <= 1e-2 * np.linalg.norm(16.0 * x)


def test_a_second_call_makes_no_plan(device, record, rng):
    calls = record("cufft", "create", "make_plan_many", "exec_c2c")
    x = cuda.to_device(numbers(rng, (3, 8)))
    out = cuda.empty_like(x)
    for _ in range(2):
        fft(x, out)
    assert [name for name, _ in calls] == ["create", "make_plan_many", "exec_c2c", "exec_c2c"]


def test_plans_are_given_back_when_many_were_made(device, record):
    made, given_back = record("cufft", "create"), record("cufft", "destroy")
    for length in range(1, 80):
        fft(cuda.zeros(length, np.complex64))
    assert len(made) - len(given_back) == 64


def zeros(*shape, dtype=np.complex64):
    return cuda.zeros(shape, dtype)


BAD = {
    "length": (lambda: fft(zeros(3, 0)), ValueError, r"x has shape \(3, 0\): there is no transform of length 0"),
    "irfft's length": (lambda: irfft(zeros(1)), ValueError, "there is no transform of length 0"),
    "dtype": (lambda: fft(zeros(8, dtype=np.float32)), TypeError, "x has dtype float32; fft takes complex64"),
    "rfft's dtype": (lambda: rfft(zeros(8)), TypeError, "x has dtype complex64; rfft takes float32"),
    "out's dtype": (lambda: fft(zeros(8), zeros(8, dtype=np.complex128)), TypeError, "out has dtype complex128"),
    "out's shape": (lambda: fft(zeros(8), zeros(9)), ValueError, r"out has shape \(9,\); fft of x \(8,\) makes it"),
    "spectrum": (lambda: irfft(zeros(5), length=7), ValueError, "argument .length. is 7, of 4 complex numbers"),
    "axis": (lambda: fft(zeros(4, 4), axes=2), ValueError, "axes has the int 2, and x has 2 dimensions"),
    "axes": (lambda: fft(zeros(4, 4, 4), axes=(0, 2)), ValueError, "1, 2 or 3 axes that follow one another"),
    "middle": (lambda: fft(zeros(4, 4, 4), axes=1), ValueError, "x of shape .4, 4, 4. has axes before and behind"),
    "batch": (lambda: fft(zeros(4, 5, 6)[:, 1:3, :]), ValueError, "x has 30 elements from one index of axis 0"),
    "out's length": (
        lambda: irfft(zeros(8), zeros(14, dtype=np.float32), length=15),
        ValueError,
        r"length=15, and out of shape \(14,\) has 14 numbers along that axis",
    ),
    "length's type": (lambda: irfft(zeros(8), length="a"), TypeError, "'length' must be an int"),
    "length as a bool": (lambda: irfft(zeros(1), length=True), TypeError, "'length' must be an int"),
    "overwrite": (lambda: irfft(zeros(8), overwrite="no"), TypeError, "overwrite must be a bool, not str"),
    "axes' type": (lambda: fft(zeros(8), axes="x"), TypeError, "axes must be an int, not str"),
    "an axis's type": (lambda: fft(zeros(8, 8), axes=(0, 1.0)), TypeError, "each of axes must be an int, not float"),
    "axes as a bool": (lambda: fft(zeros(8, 8), axes=True), TypeError, "axes must be an int, not bool"),
    "axes with a bool": (lambda: fft(zeros(8, 8), axes=(0, True)), TypeError, "each of axes must be an int, not bool"),
    "complex32": (lambda: rfft(zeros(8, dtype=complex32)), TypeError, "x has dtype complex32; rfft takes float32"),
    "out's complex32": (
        lambda: fft(zeros(8), zeros(8, dtype=complex32)),
        TypeError,
        "out has dtype complex32; fft of complex64",
    ),
    "host": (lambda: fft(np.zeros(8, np.complex64)), TypeError, "x must be a DeviceArray, not ndarray"),
    "halves": (lambda: fft(zeros(6, dtype=complex32)), ValueError, "lengths that are powers of two"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named_before_anything_is_queued(device, record, case):
    calls = record("cufft", "exec_c2c", "exec_r2c", "exec_c2r", "xt_exec")
    call, kind, text = BAD[case]
    with pytest.raises(kind, match=text):
        call()
    assert calls == []


def test_a_shifted_overlap_is_refused(device):
    whole = zeros(12)
    with pytest.raises(ValueError, match="out overlaps x in a way that is not in place"):
        fft(whole[:8], whole[4:])


def test_a_closed_operand_is_named(device):
    x, out = zeros(8), zeros(8)
    fft(x, out)
    out.close()
    with pytest.raises(ValueError, match="out is closed"):
        fft(x, out)


@settings(max_examples=60)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    gaps=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    data=st.data(),
)
def test_a_layout_finds_every_element(shape, gaps, data):
    """Where a layout is given at all, its formula gives the address of each element."""
    strides, step = [], 1
    for size, gap in zip(reversed(shape), gaps, strict=False):
        strides.insert(0, step)
        step *= size + gap
    first = data.draw(st.integers(0, len(shape) - 1))
    axes = tuple(range(first, data.draw(st.integers(first, min(first + 2, len(shape) - 1))) + 1))
    try:
        layout = describe("x", shape, [8 * step for step in strides], 8, axes)
    except ValueError:
        return
    lengths = [shape[axis] for axis in axes]
    inner = [layout.stride]
    for size in reversed(layout.embed[1:]):
        inner.insert(0, inner[0] * size)
    found = {
        number * layout.distance + sum(i * step for i, step in zip(index, inner, strict=True))
        for number in range(layout.batch)
        for index in np.ndindex(*lengths)
    }
    assert found == {sum(i * step for i, step in zip(index, strides, strict=True)) for index in np.ndindex(*shape)}
