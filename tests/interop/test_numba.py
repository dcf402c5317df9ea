"""Kernels of Numba. The tests that compile one need numba-cuda."""

import importlib
import inspect
import linecache
import math
import sys
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import interop
from tests.forks import own_environment


@pytest.fixture(scope="module")
def nb():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed (the group bridges)")
    return importlib.import_module("numba.cuda")


def line_of(function: Any, text: str) -> str:
    """Return the place of the only line of a function that contains a text."""
    python = getattr(function, "py_func", function)
    lines, first = inspect.getsourcelines(python)
    (number,) = [first + index for index, line in enumerate(lines) if text in line]
    return f"{__file__}:{number}"


def scaled_sum(nb):
    @nb.jit
    def scaled_sum(a, x, y):
        i, j = nb.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            y[i, j] += a * x[i, j]

    return scaled_sum


def test_a_kernel_adds_views_of_arrays(nb, device, rng):
    x, y = rng.normal(size=(2, 70, 45)).astype(np.float32)
    kernel = interop.numba.kernel(scaled_sum(nb), "void(float32, float32[:, :], float32[:, ::1])")
    out = cuda.to_device(y)
    kernel[(5, 3), (16, 16)](0.5, cuda.to_device(np.ascontiguousarray(x.T)).T, out)
    # The product with a power of two is exact, so it does not matter whether it is fused.
    np.testing.assert_array_equal(out.to_host(), np.float32(0.5) * x + y)
    assert str(kernel.signature) == "void scaled_sum(float32, float32[:, :], float32[:, ::1])"


def test_a_kernel_gets_numbers_of_each_type(nb, device, rng):
    from numba import types  # after numba-cuda was found

    def store(i, u, h, f, flag, c, d, out):
        out[0], out[1], out[2], out[3] = i, u, h, f
        out[4], out[5], out[6] = flag, c.real - c.imag, d.real - d.imag

    numbers = (types.int8, types.uint64, types.float16, types.float64, types.boolean, types.complex64, types.complex128)
    kernel = interop.numba.kernel(store, (*numbers, types.float64[::1]))
    out = cuda.full(7, np.nan)
    integer, real, pair = int(rng.integers(-128, 128)), float(rng.normal()), complex(*rng.integers(-9, 9, 2))
    kernel[1, 1](integer, 2**40, 0.25, real, True, pair, np.complex128(pair), out)
    difference = pair.real - pair.imag
    assert out.to_host().tolist() == [integer, 2**40, 0.25, real, 1, difference, difference]
    with pytest.raises(
        ValueError, match=r"argument 0 of store \(int8\) takes integers from -128 to 127, not the int 128"
    ):
        kernel[1, 1](128, 1, 0.0, 0.0, False, 0j, 0j, out)


def test_a_kernel_gets_an_array_of_structures(nb, device, rng):
    from numba import from_dtype, void  # after numba-cuda was found

    point = np.dtype([("x", np.float32), ("y", np.int16)], align=True)

    def move(points):
        i = nb.grid(1)
        points[i].x += points[i].y

    host = np.zeros(32, point)
    host["x"], host["y"] = rng.integers(-1000, 1000, (2, 32))
    points = cuda.to_device(host)
    interop.numba.kernel(move, void(from_dtype(point)[:]))[1, 32](points)
    np.testing.assert_array_equal(points.to_host()["x"], host["x"] + host["y"])


def test_functions_that_a_kernel_calls_need_no_driver(nb, device, rng):
    @nb.jit(device=True)
    def falling(x, i):
        return math.exp(-abs(x[i]))

    def apply(x, y):
        i = nb.grid(1)
        y[i] = falling(x, i)

    x = rng.normal(size=64)
    out = cuda.full(64, np.nan)
    interop.numba.kernel(apply, "float64[:], float64[:]")[2, 32](cuda.to_device(x), out)
    np.testing.assert_allclose(out.to_host(), np.exp(-np.abs(x)), rtol=1e-15)


def test_dynamic_shared_memory_is_the_third_value_in_the_brackets(nb, device, rng):
    def reverse(x):
        tile = nb.shared.array(0, np.int32)
        i = nb.threadIdx.x
        tile[i] = x[i]
        nb.syncthreads()
        x[i] = tile[nb.blockDim.x - 1 - i]

    x = rng.integers(-1000, 1000, 96, np.int32)
    array = cuda.to_device(x)
    interop.numba.kernel(reverse, "int32[::1],")[1, 96, 4 * 96](array)
    np.testing.assert_array_equal(array.to_host(), x[::-1])


def test_a_kernel_may_wait_for_the_whole_grid(nb, device, rng):
    def reverse(x, y):
        i = nb.grid(1)
        y[i] = 2 * x[i]
        nb.cg.this_grid().sync()
        x[i] = y[y.size - 1 - i]

    x = rng.integers(-1000, 1000, 96, np.int32)
    array = cuda.to_device(x)
    kernel = interop.numba.kernel(reverse, "void(int32[::1], int32[::1])")
    kernel.launch(3, 32, array, cuda.full(96, -7, np.int32), cooperative=True)
    np.testing.assert_array_equal(array.to_host(), 2 * x[::-1])


def test_a_kernel_may_change_the_shape_of_an_array(nb, device):
    def number(x):
        square = x.reshape((8, 8))
        i = nb.grid(1)
        square[i % 8, i // 8] = i

    x = cuda.full(64, -7, np.int32)
    interop.numba.kernel(number, "int32[::1],")[2, 32](x)
    np.testing.assert_array_equal(x.to_host().reshape(8, 8), np.arange(64).reshape(8, 8).T)


def test_the_options_of_jit_are_those_of_the_kernel(nb, device):
    @nb.jit(launch_bounds=96)
    def empty(x):
        pass

    assert interop.numba.kernel(empty, "void(int32[:])").attributes.max_threads_per_block == 96
    assert interop.numba.kernel(empty, "void(int32[:])", launch_bounds=64).attributes.max_threads_per_block == 64


def read_beyond():
    """Print the error of an out-of-bounds read, and where the read is."""
    nb = importlib.import_module("numba.cuda")

    @nb.jit(device=True, lineinfo=True)
    def following(x, i):
        return x[i + 1]  # beyond the end

    def shift(x, y):
        i = nb.grid(1)
        y[i] = following(x, i)

    x = cuda.zeros(64, np.float32)
    kernel = interop.numba.kernel(shift, "void(float32[::1], float32[::1])")
    kernel[2, 32](x, cuda.zeros(64, np.float32))
    try:
        cuda.current_device().synchronize()
    except cuda.errors.IllegalAddressError as error:
        print(line_of(following, "# beyond the end"), error, sep="\n")


@pytest.mark.needs("reset")
def test_an_out_of_bounds_access_is_reported_with_the_python_line(nb, forks):
    line, _, report = forks.run(f"{__name__}:read_beyond", [], own_environment()).stdout.partition("\n")
    assert line in report
    assert "kernel shift at " in report
    assert "0 bytes after the end of the 256-byte" in report


@pytest.mark.needs("profile")
def test_a_race_is_reported_with_the_python_line(nb, device):
    def rotate(x):
        tile = nb.shared.array(64, np.int32)
        i = nb.threadIdx.x
        tile[i] = x[i]
        x[i] = tile[(i + 32) % 64]  # no barrier

    kernel = interop.numba.kernel(rotate, "int32[::1],")

    def launch():
        with cuda.sanitizer("error"):
            kernel[1, 64](cuda.zeros(64, np.int32))
            device.synchronize()

    with pytest.raises(cuda.errors.SimulatorWarning, match="race: it reads") as raised:
        launch()
    assert f"kernel rotate at {line_of(rotate, '# no barrier')}: " in str(raised.value)


@pytest.mark.needs("profile")
def test_a_profile_has_the_lines_of_the_python_source(nb, device):
    function = scaled_sum(nb)
    kernel = interop.numba.kernel(function, "void(float32, float32[:, ::1], float32[:, ::1])")
    x, y = cuda.zeros((16, 32), np.float32), cuda.zeros((16, 32), np.float32)
    with cuda.profile() as profile:
        kernel[(1, 1), (16, 32)](2.0, x, y)
    (launch,) = profile.launches
    assert launch.kernel == "scaled_sum"
    assert line_of(function, "y[i, j] += a * x[i, j]") in {f"{line.file}:{line.line}" for line in launch.lines}


@pytest.mark.needs("profile")
def test_a_function_that_is_not_in_a_file_is_shown_with_its_text(nb, device):
    text = "def negate(x):\n    i = nb.grid(1)\n    x[i] = -x[i]\n"
    name = "/no folder/cell of a notebook.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"nb": nb}
    exec(compile(text, name, "exec"), space)
    x = cuda.full(32, 3, np.int32)
    with cuda.profile() as profile:
        interop.numba.kernel(space["negate"], "int32[:],")[1, 32](x)
    assert profile.launches[0].sources == {name: text.rstrip("\n")}


@pytest.mark.parametrize(
    ("signature", "error", "message"),
    [
        ("void(float33[:])", ValueError, "argument 'signature' must be a Numba signature"),
        ("int32(int32[:])", ValueError, "argument 'signature' must return void, not int32"),
        ("void(UniTuple(int32, 2))", cuda.errors.NotSupportedError, "argument 0 of empty has type UniTuple"),
    ],
)
def test_a_signature_that_cannot_be_used_is_refused(nb, device, signature, error, message):
    def empty(x):
        pass

    with pytest.raises(error, match="^interop.numba.kernel: ") as raised:
        interop.numba.kernel(empty, signature)
    assert message in str(raised.value)


def test_a_kernel_that_is_linked_with_other_code_is_refused(nb, device):
    @nb.jit(link=["other.cu"])
    def empty(x):
        pass

    with pytest.raises(cuda.errors.NotSupportedError, match="empty is linked with other code"):
        interop.numba.kernel(empty, "void(int32[:])")


SCALE = """
extern "C" __device__ int scale(float* result, float x) { *result = FACTOR * x; return 0; }
"""


@pytest.mark.parametrize("options", [["-rdc=true"], ["-rdc=true", "-dlto"]], ids=["PTX", "link-time code"])
def test_a_kernel_calls_a_device_function_in_other_code(nb, device, options):
    image = cuda.images.compile_image(SCALE, define={"FACTOR": 3}, arch=device.compute_capability, options=options)
    code = nb.LTOIR(image.ltoir) if image.ltoir else nb.PTXSource(image.ptx)
    scale = nb.declare_device("scale", "float32(float32)", link=code)

    def scale_all(x):
        i = nb.grid(1)
        if i < x.size:
            x[i] = scale(x[i])

    x = cuda.to_device(np.arange(100, dtype=np.float32))
    kernel = interop.numba.kernel(scale_all, "void(float32[::1])")
    kernel[1, 128](x)
    np.testing.assert_array_equal(x.to_host(), 3 * np.arange(100, dtype=np.float32))


def test_numbas_own_simulator_must_not_be_enabled(nb, device, monkeypatch):
    monkeypatch.setattr("numba.config.ENABLE_CUDASIM", 1)
    with pytest.raises(cuda.errors.NotSupportedError, match="unset NUMBA_ENABLE_CUDASIM$"):
        interop.numba.kernel(lambda x: None, "void(int32[:])")


def test_an_object_that_is_not_a_function_is_refused(nb, device):
    with pytest.raises(TypeError, match="interop.numba.kernel: argument 'function' must be a Python function"):
        interop.numba.kernel("axpy", "void(int32[:])")


def test_without_numba_cuda_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs numba-cuda, .*: pip install 'numba-cuda\[cu13\]'$"):
        interop.numba.kernel(len, "void(int32[:])")
