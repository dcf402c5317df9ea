"""Parameters of kernels that were not compiled from C++, with PTX that needs neither Numba nor Triton."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.compilation.names.signatures import Parameter
from cudart_py.interop.loading import load_kernel
from cudart_py.interop.parameters import make_signature, pointer, scalar
from cudart_py.launch.kernel import Kernel

RECORDED = Path(__file__).parents[1] / "launch" / "data"
ADD_MANY = """
extern "C" __global__ void add_many(int* x, int n, void* first, void* second)
{
    for (int i = 0; i < n; i++)
        x[i] += (first == nullptr) + 2 * (second == nullptr);
}
"""

ARRAY_FIELDS = """
extern "C" __global__ void array_fields(
    void* meminfo, void* parent, long nitems, long itemsize, int* data, long rows, long columns, long row_stride,
    long column_stride, long* fields)
{
    long found[] = {
        (long)meminfo, (long)parent, nitems, itemsize, (long)data, rows, columns, row_stride, column_stride};
    for (int i = 0; i < 9; i++)
        fields[i] = found[i];
}
"""


def kernel_of(image: str | cuda.Module, *parameters: Parameter) -> Kernel:
    ptx, cubin = (image, b"") if isinstance(image, str) else (image.ptx.decode(), image.cubin)
    signature = make_signature("load_kernel", "test", ptx, "tested", parameters)
    return load_kernel("load_kernel", ptx, cubin, signature, kernel_of.__code__)


def described(dtype: str, dimensions: int, layout: str = "A") -> Parameter:
    size = 8 * (5 + 2 * dimensions)
    type = f"{dtype}{dimensions}{layout}"
    return Parameter(type, "array", size, 8, 0, dtype=dtype, dimensions=dimensions, layout=layout)


def scaled_sum(layout: str = "A") -> Kernel:
    ptx = (RECORDED / "numba_scaled_sum.ptx").read_text()
    return kernel_of(ptx, scalar("float32", "float32"), *[described("float32", 1, layout)] * 2)


def fields_of(array: object, layout: str = "A") -> list[int]:
    """Return the fields that a kernel gets for an int32 array with two dimensions."""
    fields = cuda.full(9, -7, np.int64)
    kernel_of(cuda.compile(ARRAY_FIELDS), described("int32", 2, layout), pointer("*i64", "int64"))[1, 1](array, fields)
    return fields.to_host().tolist()


def add_many(**divisors: int) -> Kernel:
    x = pointer("*i32", "int32", divisor=divisors.get("x", 1))
    return kernel_of(cuda.compile(ADD_MANY), x, scalar("i32", "int32", divisor=divisors.get("n", 1)))


def test_a_recorded_kernel_of_numba_gets_arrays(device, rng):
    x, y = rng.normal(size=(2, 1000)).astype(np.float32)
    out = cuda.to_device(y)
    scaled_sum()[8, 128](0.5, cuda.to_device(x), out)
    # The product with a power of two is exact, so it does not matter whether it is fused.
    np.testing.assert_array_equal(out.to_host(), np.float32(0.5) * x + y)


def test_an_array_is_passed_with_its_shape_and_strides(device, rng):
    rows, columns, first, step = rng.integers(2, 9, 4).tolist()
    whole = cuda.zeros((rows, first + step * columns), np.int32)
    for view in (whole, whole[:, first::step], whole[1:].T):
        fields = [0, 0, view.size, 4, int(view.pointer), *view.shape, *view.strides]
        assert fields_of(view) == fields


def test_a_kernel_gets_a_mapped_host_array(device, rng):
    host = cuda.pinned_empty(500, np.float32, mapped=True)
    host[:] = x = rng.normal(size=500).astype(np.float32)
    out = cuda.zeros(500, np.float32)
    scaled_sum()[4, 128](2.0, host, out)
    np.testing.assert_array_equal(out.to_host(), 2 * x)


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        (lambda: cuda.zeros((5, 6), np.float32), TypeError, "takes an array with 1 dimension, not one of shape (5, 6)"),
        (lambda: cuda.zeros(5), TypeError, "takes an array of float32, not of float64"),
        (lambda: cuda.zeros(10, np.float32)[::2], ValueError, "takes a contiguous array in C order"),
        (lambda: np.zeros(5, np.float32), TypeError, "not a host array"),
        (lambda: None, TypeError, "takes a device array, not None"),
        (lambda: 4096, TypeError, "takes an array, not the int 4096"),
        (lambda: cuda.Pointer(4096), TypeError, "takes a device array, not"),
    ],
)
def test_an_array_that_the_kernel_was_not_compiled_for_is_refused(device, argument, error, message):
    with pytest.raises(error) as raised:
        scaled_sum("C")[1, 32](1.0, argument(), cuda.zeros(5, np.float32))
    assert str(raised.value).startswith("argument 1 of tested (float321C) ")
    assert message in str(raised.value)


def test_a_closed_array_is_refused(device):
    x = cuda.zeros(5, np.float32)
    x.close()
    with pytest.raises(ValueError, match=r"argument 2 of tested \(float321A\): the array is closed"):
        scaled_sum()[1, 32](1.0, cuda.zeros(5, np.float32), x)


def test_fortran_order_is_that_of_a_transposed_array(device):
    array = cuda.zeros((5, 6), np.int32)
    assert fields_of(array.T, "F")[5:] == [6, 5, 4, 24]
    with pytest.raises(ValueError, match="in F order, not one of shape"):
        fields_of(array, "F")
    with pytest.raises(ValueError, match="in C order, not one of shape"):
        fields_of(array.T, "C")


def test_parameters_without_arguments_are_zero(device, rng):
    x = rng.integers(-1000, 1000, 7, np.int32)
    array = cuda.to_device(x)
    kernel = add_many()
    kernel[1, 1](array, 7)
    kernel[1, 1].bind(array, 6)()
    np.testing.assert_array_equal(array.to_host(), x + np.where(np.arange(7) < 6, 6, 3))


@pytest.mark.parametrize("integer", [int, np.int64])
def test_an_integer_that_is_not_a_multiple_of_what_the_compiler_assumed_is_refused(device, integer):
    array = cuda.zeros(32, np.int32)
    kernel = add_many(n=16)
    kernel[1, 1](array, integer(16))
    with pytest.raises(ValueError, match=r"argument 1 of tested \(i32\) takes multiples of 16, not"):
        kernel[1, 1](array, integer(24))
    np.testing.assert_array_equal(array.to_host(), 3 * (np.arange(32) < 16))


def test_an_address_that_is_not_a_multiple_of_what_the_compiler_assumed_is_refused(device):
    array = cuda.zeros(32, np.int32)
    kernel = add_many(x=16)
    kernel[1, 1](array[4:], 2)
    with pytest.raises(ValueError, match=r"argument 0 of tested \(\*i32\) takes an address that is a multiple of 16"):
        kernel[1, 1](array[5:], 2)
    np.testing.assert_array_equal(np.flatnonzero(array.to_host()), [4, 5])


@pytest.mark.parametrize("change", [{"size": 4, "alignment": 4}, {"size": 16}], ids=["smaller", "larger"])
def test_ptx_with_parameters_of_other_sizes_is_refused(device, change):
    wrong = replace(pointer("*i32", "int32"), **change)
    with pytest.raises(
        cuda.errors.NotSupportedError, match="load_kernel: test compiled tested to a kernel with 4 param"
    ):
        make_signature("load_kernel", "test", cuda.compile(ADD_MANY).ptx.decode(), "tested", [wrong])


def test_ptx_with_further_parameters_other_than_pointers_is_refused(device):
    with pytest.raises(cuda.errors.NotSupportedError, match="do not correspond to its signature"):
        make_signature("load_kernel", "test", cuda.compile(ADD_MANY).ptx.decode(), "tested", [pointer("*i32", "int32")])
