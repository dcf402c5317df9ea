"""Launch arguments of less common types: ctypes scalars, structures, other libraries' arrays."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import enums

KERNELS = r"""
struct Four { float x, y, z, w; };
extern "C" __global__ void integer(int value, long long* out) { *out = value; }
extern "C" __global__ void number(double value, double* out) { *out = value; }
extern "C" __global__ void truth(bool value, long long* out) { *out = value ? 7 : 8; }
extern "C" __global__ void pair(float2 value, float* out) { out[0] = value.x; out[1] = value.y; }
extern "C" __global__ void four(Four value, float* out) { out[0] = value.x; out[3] = value.w; }
extern "C" __global__ void handle(unsigned long long value, long long* out) { *out = value; }
extern "C" __global__ void by_value(Four value) {}
__device__ long long triple(long long x) { return 3 * x; }
__device__ long long (*chosen)(long long) = triple;
extern "C" __global__ void calling(long long (*function)(long long), long long* out) { *out = function(7); }
extern "C" __global__ void add(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x] + 1; }
"""


def foreign(array, *, read_only=False, **changes):
    """Return another library's view of an array."""
    interface = {"version": 3, "shape": array.shape, "typestr": array.dtype.str, "strides": None}
    interface |= {"data": (array.pointer, read_only), **changes}
    return SimpleNamespace(__cuda_array_interface__=interface, array=array)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("integer", ctypes.c_int(-5), -5),
        ("integer", ctypes.c_short(7), 7),
        ("integer", np.True_, 1),
        ("truth", ctypes.c_bool(True), 7),
        ("number", ctypes.c_double(2.5), 2.5),
        ("pair", 3 - 4j, [3, -4]),
        ("pair", np.complex64(3 - 4j), [3, -4]),
        ("pair", np.array([3, -4], np.float32), [3, -4]),
        ("four", np.arange(1, 5, dtype=np.float32), [1, 0, 0, 4]),
    ],
)
def test_scalars_of_c_and_numpy_are_numbers_and_pairs_and_bytes_structures(kernels, name, value, expected):
    dtype = {"number": np.float64, "pair": np.float32, "four": np.float32}.get(name, np.int64)
    out = cuda.zeros(np.size(expected), dtype)
    kernels[name][1, 1](value, out)
    np.testing.assert_array_equal(out.to_host(), expected)


def test_a_scalar_of_c_that_does_not_fit_is_refused(kernels):
    with pytest.raises(ValueError, match=r"argument 0 of integer \(int\) takes integers from"):
        kernels["integer"][1, 1](ctypes.c_longlong(2**40), cuda.zeros(1, np.int64))
    with pytest.raises(TypeError, match=r"argument 0 of integer \(int\) takes an integer, not the float 1.5"):
        kernels["integer"][1, 1](ctypes.c_float(1.5), cuda.zeros(1, np.int64))


def test_a_class_whose_objects_are_integers_is_refused(kernels):
    with pytest.raises(TypeError, match=r"argument 0 of integer \(int\) takes an integer, not the class int"):
        kernels["integer"][1, 1](int, cuda.zeros(1, np.int64))


@pytest.mark.parametrize("name", ["handle", "integer", "add", "four"])
def test_a_cuda_array_is_refused_with_the_objects_by_which_kernels_use_it(kernels, name):
    array = cuda.textures.CudaArray((4, 4), np.float32)
    with pytest.raises(TypeError, match=r"argument 0 of .*textures\.Texture\(array\).*textures\.Surface\(array\)"):
        kernels[name][1, 1](array, cuda.zeros(1, np.int64))


@pytest.mark.parametrize("make", [lambda: cuda.zeros(4), lambda: np.zeros(4), lambda: None, cuda.Stream])
def test_what_is_not_a_number_is_refused_for_a_handle_with_the_objects_that_have_one(kernels, make):
    with pytest.raises(
        TypeError, match=r"argument 0 of handle .*textures\.Texture.*textures\.Surface.*graphs\.Condition"
    ):
        kernels["handle"][1, 1](make(), cuda.zeros(1, np.int64))
    with pytest.raises(TypeError, match="argument 0 of integer .* takes an integer, not "):
        kernels["integer"][1, 1](make(), cuda.zeros(1, np.int64))
    with pytest.raises(TypeError, match=r"argument 0 of handle .* takes an integer, not the float 1\.5\b"):
        kernels["handle"][1, 1](1.5, cuda.zeros(1, np.int64))


def test_what_is_not_of_a_structures_bytes_is_refused(kernels):
    out = cuda.zeros(4, np.float32)
    with pytest.raises(ValueError, match="has 16 bytes, but a host array of dtype float32 and shape .3,. has 12"):
        kernels["four"][1, 1](np.arange(3, dtype=np.float32), out)
    with pytest.raises(TypeError, match="is passed by value"):
        kernels["four"][1, 1](np.array([None, None]), out)
    with pytest.raises(TypeError, match="argument 0 of by_value .* is passed by value"):
        kernels["by_value"][1, 1]((1.0, 2.0, 3.0, 4.0))


def test_a_function_is_passed_by_its_address_not_by_the_array_that_contains_it(kernels):
    out, function = cuda.zeros(1, np.int64), kernels.symbol("chosen")
    kernels["calling"][1, 1](function.view(np.uint64).to_host()[0], out)
    assert out.to_host()[0] == 21
    with pytest.raises(TypeError, match=r"argument 0 of calling .* address of a function .*view\(np\.uint64\)"):
        kernels["calling"][1, 1](function, out)


def test_a_view_with_gaps_says_how_to_pass_its_address(kernels):
    managed, on_device, out = cuda.managed_empty(6, np.int32), cuda.to_device(np.arange(6, dtype=np.int32)), []
    managed[:] = range(6)
    for view in (managed[3::2], on_device[3::2]):
        with pytest.raises(ValueError, match=r"or its address: cudart_py") as raised:
            kernels["add"][1, 1](view, cuda.zeros(1, np.int32))
        out.append(cuda.zeros(1, np.int32))
        address = eval(str(raised.value).rpartition("address: ")[2], {"cudart_py": cuda, "view": view})
        kernels["add"][1, 1](address, out[-1])
    assert [x.item() for x in out] == [4, 4]


# One source for both precisions, since the header takes most of the time to compile.
COMPLEX = """#include <cuda/std/complex>
typedef cuda::std::complex<float> C;
typedef cuda::std::complex<double> Z;
extern "C" __global__ void conjugate_single(C* x) { x[threadIdx.x] = conj(x[threadIdx.x]); }
extern "C" __global__ void conjugate_double(Z* x) { x[threadIdx.x] = conj(x[threadIdx.x]); }
"""


@pytest.mark.parametrize(("precision", "dtype"), [("single", np.complex64), ("double", np.complex128)])
def test_a_pointer_to_complex_numbers_takes_an_array_of_that_precision(device, precision, dtype):
    kernel = cuda.compile(COMPLEX)[f"conjugate_{precision}"]
    values = np.array([1 + 2j, 3 - 4j, 5j], dtype)
    x = cuda.to_device(values)
    kernel[1, 3](x)
    np.testing.assert_array_equal(x.to_host(), values.conj())
    for other in ({np.complex64, np.complex128} - {dtype}, {np.float32}, {np.float64}):
        with pytest.raises(TypeError, match=f"takes an array of {np.dtype(dtype)}, not of"):
            kernel[1, 3](cuda.zeros(6, other.pop()))
    kernel[1, 3](x.view(values.real.dtype).view(dtype))


@pytest.mark.parametrize("address", [ctypes.c_void_p, enums.CUdeviceptr])
def test_the_pointers_of_c_and_of_the_bindings_are_addresses(kernels, address):
    out = cuda.zeros(1, np.int64)
    kernels["integer"][1, 1](9, address(out.pointer))
    assert out.to_host()[0] == 9


def test_an_array_of_another_library_is_checked_as_a_wrapped_one(kernels):
    x, out = cuda.full(8, 4, np.int32), cuda.zeros(8, np.int32)
    launch = kernels["add"][1, 8]
    launch(foreign(x, read_only=True), foreign(out))
    assert (out.to_host() == 5).all()
    theirs = foreign(x)
    del theirs.__cuda_array_interface__["data"]
    with pytest.raises(ValueError, match=r"add: argument 'arguments\[0\]' must have a __cuda_array_.* 'data'"):
        launch(theirs, out)
    with pytest.raises(ValueError, match=r"add: argument 'arguments\[1\]' is read-only; declare the parameter"):
        launch(x, foreign(out, read_only=True))


def test_a_launch_waits_for_the_stream_that_another_librarys_array_names(kernels, monkeypatch):
    waits = []
    wait = cuda.Stream.wait
    monkeypatch.setattr(cuda.Stream, "wait", lambda self, other: (waits.append((self, other)), wait(self, other))[1])
    with cuda.Stream(non_blocking=True) as theirs, cuda.Stream(non_blocking=True) as ours:
        x = cuda.full(8, 1, np.int32)
        out = cuda.zeros(8, np.int32, stream=ours)
        theirs.wait(cuda.legacy_default)
        x.fill(4, stream=theirs)
        waits.clear()
        kernels["add"][1, 8, 0, ours](foreign(x, stream=theirs.handle), out)
        assert [(a.handle, b.handle) for a, b in waits if isinstance(b, cuda.Stream)] == [(ours.handle, theirs.handle)]
        assert (out.to_host() == 5).all()
