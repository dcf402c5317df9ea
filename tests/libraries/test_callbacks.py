"""Callbacks: transforms that load and store each element through a device function, against NumPy in between."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries import Callback, fft, ifft, irfft, rfft
from cudart_py.libraries.fourier.row_kernels import row_function

pytestmark = pytest.mark.needs("libraries")

SOURCE = """
template <class Pair> __device__ Pair times(Pair x, double factor) { x.x *= factor; x.y *= factor; return x; }

struct Filter { double factor; int columns; };

// Multiplies by the column of the element.
__device__ TYPE load(void* x, unsigned long long i, void* data, void* shared)
{
    auto* filter = static_cast<Filter*>(data);
    return times(static_cast<TYPE*>(x)[i], filter->factor * (i % filter->columns));
}

__device__ void store(void* out, unsigned long long i, TYPE element, void* data, void* shared)
{
    static_cast<TYPE*>(out)[i] = times(element, 0.25 * (i % 7));
}

__device__ REAL load_real(void* x, unsigned long long i, void* data, void* shared)
{
    return static_cast<REAL*>(x)[i] + 3;
}

__device__ void store_real(void* out, unsigned long long i, REAL element, void* data, void* shared)
{
    static_cast<REAL*>(out)[i] = element * element;
}
"""
TYPES = {np.complex64: {"TYPE": "float2", "REAL": "float"}, np.complex128: {"TYPE": "double2", "REAL": "double"}}


def same(got, expected, dtype):
    """The bound is 16 rounding errors per factor of two in the length, and one for each callback."""
    bound = 80 * np.finfo(dtype).eps
    return np.linalg.norm(got - expected) <= bound * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("dtype", "columns", "axis"), [(np.complex64, 32, -1), (np.complex128, 251, -1), (np.complex64, 9, 0)]
)
def test_elements_pass_through_callbacks(device, numbers, dtype, columns, axis):
    """cuFFT itself has no callbacks for the length 251, a large prime."""
    x = numbers((5, columns), dtype)
    data = cuda.to_device(np.array([(0.5, columns, 0)], [("factor", "f8"), ("columns", "i4"), ("unused", "i4")]))
    load, store = Callback(SOURCE, "load", data, define=TYPES[dtype]), Callback(SOURCE, "store", define=TYPES[dtype])
    place = 0.25 * (np.arange(x.size).reshape(x.shape) % 7)
    loaded = 0.5 * np.arange(columns) * x.astype(complex)
    array = cuda.to_device(x)
    assert same(fft(array, axis=axis, load=load).to_host(), np.fft.fft(loaded, axis=axis), dtype)
    assert same(fft(array, axis=axis, store=store).to_host(), np.fft.fft(x, axis=axis) * place, dtype)
    both = ifft(array, axis=axis, load=load, store=store, norm="forward").to_host()
    assert same(both, np.fft.ifft(loaded, axis=axis, norm="forward") * place, dtype)
    fft(array, array, axis=axis, load=load)
    assert same(array.to_host(), np.fft.fft(loaded, axis=axis), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_real_elements_pass_through_callbacks_too(device, numbers, dtype):
    real = np.empty(0, dtype).real.dtype
    x, define = numbers((3, 6, 8), real), TYPES[dtype]
    load, store = Callback(SOURCE, "load_real", define=define), Callback(SOURCE, "store_real", define=define)
    spectrum = rfft(cuda.to_device(x), axes=(1, 2), load=load)
    expected = np.fft.rfft2(x.astype(float) + 3)
    assert same(spectrum.to_host(), expected, real)
    back = irfft(spectrum, axes=(1, 2), store=store, norm="forward").to_host()
    assert same(back, (48 * (x.astype(float) + 3)) ** 2, real)
    assert same(spectrum.to_host(), expected, real)


def test_offsets_count_from_the_beginning_of_a_window(device, numbers):
    """The middle axis of a window takes several calls of cuFFT, and strides are part of an offset."""
    host = numbers((4, 12, 10), complex)
    source = """
    __device__ double2 load(void* x, unsigned long long i, void* data, void* shared)
    {
        double2 element = static_cast<double2*>(x)[i];
        element.x += i;
        return element;
    }
    """
    whole = cuda.to_device(host)
    window, offsets = host[1:, ::2, :7], np.arange(host.size).reshape(host.shape)
    offsets = offsets[1:, ::2, :7] - offsets[1, 0, 0]
    found = fft(whole[1:, ::2, :7], axis=1, load=Callback(source, "load"))
    assert same(found.to_host(), np.fft.fft(window + offsets, axis=1), float)


def test_a_planned_transform_calls_its_callbacks_for_other_operands(device, numbers):
    x = cuda.to_device(numbers((2, 16), complex))
    store = Callback(SOURCE, "store", define=TYPES[np.complex128])
    place = 0.25 * (np.arange(32).reshape(2, 16) % 7)
    separate = Callback(SOURCE, "store", define=TYPES[np.complex128], fuse=False)
    with fft.plan(x, store=separate) as plan:
        assert not plan.fused
        expected = plan().to_host()
    with fft.plan(x, store=store) as plan:
        assert same(plan().to_host(), expected, float)
        assert same(plan().to_host(), np.fft.fft(x.to_host()) * place, float)
        other = numbers((2, 16), complex)
        assert same(plan(cuda.to_device(other)).to_host(), np.fft.fft(other) * place, float)


@pytest.mark.needs("fused_callbacks")
def test_cufft_itself_calls_both_callbacks_of_one_source_but_links_no_kernel(device):
    define = TYPES[np.complex64]
    data = cuda.to_device(np.array([(0.5, 32, 0)], [("factor", "f8"), ("columns", "i4"), ("unused", "i4")]))
    load, store = Callback(SOURCE, "load", data, define=define), Callback(SOURCE, "store", define=define)
    other = Callback(SOURCE + "__device__ int more;", "store", define=define)
    kernel = Callback(SOURCE + "__global__ void kernel() {}", "store", define=define)
    x = cuda.zeros((4, 32), np.complex64)
    given: tuple[tuple[dict[str, Callback], bool], ...] = (
        ({"load": load, "store": store}, True),
        ({"store": store}, True),
        ({"load": load, "store": other}, False),
        ({"store": kernel}, False),
    )
    for callbacks, fused in given:
        with fft.plan(x, **callbacks) as plan:
            assert plan.fused == fused


def test_data_that_has_been_closed_is_named_in_calls_and_plans(device, numbers):
    data = cuda.to_device(np.array([(0.5, 16, 0)], [("factor", "f8"), ("columns", "i4"), ("unused", "i4")]))
    load = Callback(SOURCE, "load", data, define=TYPES[np.complex128])
    x, other = (cuda.to_device(numbers(16, complex)) for _ in range(2))
    expected = fft(x, load=load).to_host()
    plan = fft.plan(x, load=load)
    assert same(plan().to_host(), expected, float)
    data.close()
    for call, name in ((lambda: fft(x, load=load), "fft"), (lambda: plan(other), r"fft\.plan\(\)")):
        with pytest.raises(ValueError, match=f"^{name}: argument 'load.data' must be open"):
            call()
    with pytest.raises(ValueError, match="the array is closed"):
        plan()


def test_a_function_that_is_no_callback_is_refused_by_the_compiler(device):
    """The linker would not notice another type of the result."""
    wrong = "__device__ double2 f(void* x, unsigned long long i, void* data, void* shared) { return {}; }"
    for source in ("__device__ float2 f(void* x, int i) { return {}; }", "__device__ int other;", wrong):
        with pytest.raises(cuda.CompileError, match="callback f does not compile") as error:
            fft(cuda.zeros(8, np.complex64), load=Callback(source, "f"))
    assert "a callback for load= takes (void* x, unsigned long long i, void* data, void* shared)" in str(error.value)
    with pytest.raises(cuda.CompileError, match="a callback for store= takes"):
        fft(cuda.zeros(8, np.complex64), store=Callback(wrong, "f"))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda f: fft(cuda.zeros(8, np.complex64), load="load"), "fft: argument 'load' must be a Callback or None"),
        (lambda f: fft(cuda.zeros(8, np.float32), load=f), "fft: argument 'load' must be None for 'x' of float32"),
        (lambda f: ifft(cuda.zeros(8, np.complex64), store=f), "ifft: argument 'store' must be None with norm='backw"),
        (lambda f: rfft(cuda.zeros(8, np.float16), load=f), "rfft: argument 'load' must be None for .* half precision"),
        (lambda f: Callback("source", "a b"), "Callback: argument 'name' must be the name of a function, not the str"),
        (lambda f: Callback("source", "f", 5), "Callback: argument 'data' must be a DeviceArray, not the int 5"),
    ],
)
def test_what_is_wrong_with_a_callback_is_named(device, call, error):
    with pytest.raises((TypeError, ValueError), match=error):
        call(Callback(SOURCE, "load", define=TYPES[np.complex64]))


@pytest.mark.needs("fused_callbacks")
@pytest.mark.parametrize(
    ("length", "dtype", "fuse", "fused"),
    [
        (512, np.complex64, None, True),
        (1024, np.complex64, None, False),
        (1024, np.complex64, True, True),
        (1000, np.complex64, None, False),
        (512, np.complex64, False, False),
        (1024, np.complex128, None, True),
    ],
)
def test_the_transform_calls_a_callback_itself_unless_a_kernel_is_known_to_be_faster(
    device, length, dtype, fuse, fused
):
    data = cuda.to_device(np.array([(0.5, length, 0)], [("factor", "f8"), ("columns", "i4"), ("unused", "i4")]))
    load = Callback(SOURCE, "load", data, define=TYPES[dtype], fuse=fuse)
    with_mathdx = dtype == np.complex64 and row_function(length, -1, device.compute_capability) is not None
    assert fft.plan(cuda.zeros((4, length), dtype), load=load).fused == (fused or (with_mathdx and fuse is None))
