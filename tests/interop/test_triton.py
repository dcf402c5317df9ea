"""Kernels of Triton. The tests that compile one need Triton."""

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import interop
from tests.forks import own_environment


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("triton", reason="Triton is not installed (the group bridges)")
    from tests.interop import triton_kernels  # imports Triton

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield triton_kernels


def line_of(function: Any, text: str) -> str:
    """Return the place of the only line of a function that contains a text."""
    lines, first = inspect.getsourcelines(function.fn)
    (number,) = [first + index for index, line in enumerate(lines) if text in line]
    return f"{inspect.getsourcefile(function.fn)}:{number}"


@pytest.mark.parametrize("multiple", ["", ":16"])
def test_a_kernel_adds_arrays(kernels, device, rng, multiple):
    x, y = rng.normal(size=(2, 1000)).astype(np.float32)
    out = cuda.full(1000, np.nan, np.float32)
    pointer = f"*fp32{multiple}"
    kernel = interop.triton.kernel(kernels.add, f"{pointer}, {pointer}, {pointer}, i32", {"block": 256}, num_warps=2)
    kernel[4](cuda.to_device(x), cuda.to_device(y), out, 1000)
    np.testing.assert_array_equal(out.to_host(), x + y)
    assert kernel.block == 64
    assert str(kernel.signature) == f"void add({pointer}, {pointer}, {pointer}, i32)"


@pytest.mark.needs("profile")
def test_multiples_of_16_let_triton_load_several_elements_at_a_time(kernels, device):
    def requests(suffix):
        signature = ", ".join([f"*fp32{suffix}"] * 3 + [f"i32{suffix}"])
        x = cuda.zeros(1024, np.float32)
        with cuda.profile() as profile:
            interop.triton.kernel(kernels.add, signature, {"block": 256}, num_warps=2)[4](x, x, x, 1024)
        return profile.launches[0].metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]

    assert requests("") == 4 * requests(":16") == 2 * 1024 / 32


def test_a_launch_checks_that_addresses_are_multiples_of_16(kernels, device):
    kernel = interop.triton.kernel(kernels.add, "*fp32:16, *fp32:16, *fp32:16, i32", {"block": 256})
    x = cuda.zeros(1001, np.float32)
    with pytest.raises(ValueError, match=r"argument 1 of add \(\*fp32:16\) takes an address that is a multiple of 16"):
        kernel[4](x[:1000], x[1:], cuda.zeros(1000, np.float32), 1000)


def test_a_kernel_with_shared_memory_gets_as_much_as_triton_says(kernels, device, rng):
    x = rng.normal(size=(7, 181)).astype(np.float32)
    out = cuda.full((7, 181), np.nan, np.float32)
    kernel = interop.triton.kernel(kernels.softmax, ["*fp32", "*fp32", "i32"], {"width": 256}, num_warps=8)
    with cuda.Stream() as stream:
        kernel.configure(7, stream=stream)(out, cuda.to_device(x), 181)
        stream.synchronize()
    assert kernel.shared_bytes > 0
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(out.to_host(), powers / powers.sum(axis=1, keepdims=True), rtol=3e-6)


def test_a_grid_may_have_three_dimensions(kernels, device):
    kernel = interop.triton.kernel(kernels.number, "*i32")
    for launch in (kernel[4, 3, 2], lambda out: kernel.launch((4, 3, 2), None, out)):
        out = cuda.full(24, -7, np.int32)
        launch(out)
        np.testing.assert_array_equal(out.to_host(), np.arange(24))


def test_a_program_may_be_a_cluster(kernels, device, rng):
    pytest.importorskip("triton", "3.9", reason="older versions of Triton cannot compile this kernel")
    x = rng.normal(size=(5, 512)).astype(np.float32)
    out = cuda.full((5, 512), np.nan, np.float32)
    kernel = interop.triton.kernel(kernels.softmax, "*fp32, *fp32, i32", {"width": 512}, num_ctas=2)
    kernel[5](out, cuda.to_device(x), 512)
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(out.to_host(), powers / powers.sum(axis=1, keepdims=True), rtol=3e-6)


@pytest.fixture
def double(kernels, device):
    if device.compute_capability < (9, 0):
        pytest.skip("tensor descriptors need compute capability 9.0")
    signature = "*{0}:16, *{0}:16, i32, i32:16"
    return lambda name: interop.triton.kernel(kernels.double, signature.format(name), {"height": 16, "width": 32})


@pytest.mark.parametrize(("name", "dtype"), [("fp32", np.float32), ("fp16", np.float16)])
def test_a_kernel_can_make_tensor_descriptors(double, rng, name, dtype):
    x = rng.normal(size=(39, 80)).astype(dtype)
    out, kernel = cuda.full((39, 80), np.nan, dtype), double(name)
    kernel[3, 3](out, cuda.to_device(x), 39, 80)
    np.testing.assert_array_equal(out.to_host(), 2 * x)
    assert kernel.scratch_bytes == 256
    with pytest.raises(TypeError, match="takes 4 arguments plus scratch memory, not 3"):
        kernel[3, 3](out, out, 39)


def test_a_bound_launch_and_a_graph_have_scratch_memory_for_descriptors(double, rng):
    x = rng.integers(0, 100, (39, 80)).astype(np.float32)
    source, out = cuda.to_device(x), cuda.full((39, 80), np.nan, np.float32)
    with cuda.Stream() as stream:
        launch = double("fp32").configure((3, 3), stream=stream)
        bound = launch.bind(source, source, 39, 80)
        bound()
        bound()
        stream.synchronize()
        with stream.capture() as graph:
            launch(out, source, 39, 80)
        with graph.instantiate() as executable:
            executable.launch(stream)
            stream.synchronize()
    np.testing.assert_array_equal(out.to_host(), 8 * x)


def test_a_kernel_gets_numbers_of_each_type(kernels, device, rng):
    kernel = interop.triton.kernel(kernels.store, "i8, u64, fp16, bf16, fp64, i1, *fp64")
    out = cuda.full(6, np.nan)
    integer, real = int(rng.integers(-128, 128)), float(rng.normal())
    kernel[1](integer, 2**40, 0.25, -1.5, real, True, out)
    assert out.to_host().tolist() == [integer, 2**40, 0.25, -1.5, real, 1]
    with pytest.raises(ValueError, match=r"argument 0 of store \(i8\) takes integers from -128 to 127"):
        kernel[1](128, 0, 0.0, 0.0, 0.0, False, out)


def test_any_parameter_may_be_constant_and_constants_may_have_defaults(kernels, device):
    out = cuda.full(3, -7, np.int32)
    signature = {"out": "*i32"}
    interop.triton.kernel(kernels.fill, signature, {"count": 2})[1](out)
    assert out.to_host().tolist() == [5, 5, -7]
    interop.triton.kernel(kernels.fill, signature, {"count": 3, "value": 8})[1](out)
    assert out.to_host().tolist() == [8, 8, 8]


def read_beyond():
    """Print the error of an out-of-bounds read, and where the read is."""
    kernels = importlib.import_module("tests.interop.triton_kernels")
    kernel = interop.triton.kernel(kernels.add, "*fp32, *fp32, *fp32, i32", {"block": 256})
    x = cuda.zeros(1000, np.float32)
    kernel[4](x, cuda.zeros(999, np.float32), x, 1000)
    try:
        cuda.current_device().synchronize()
    except cuda.errors.IllegalAddressError as error:
        print(line_of(kernels.add, "tl.load(y"), error, sep="\n")


@pytest.mark.needs("reset")
def test_an_out_of_bounds_access_is_reported_with_the_python_line(kernels, forks):
    line, _, report = forks.run(f"{__name__}:read_beyond", [], own_environment()).stdout.partition("\n")
    assert f"kernel add at {line}: " in report
    assert re.search("0 bytes after the end of the 3,?996-byte", report)


@pytest.mark.needs("profile")
def test_a_race_between_programs_is_reported_with_the_python_line(kernels, device):
    kernel = interop.triton.kernel(kernels.add, "*fp32, *fp32, *fp32, i32", {"block": 256})
    x = cuda.full(1256, 1, np.float32)

    def launch():
        with cuda.sanitizer("error"):
            kernel[4](x[256:], x[256:], x[:1000], 1000)
            device.synchronize()

    with pytest.raises(cuda.errors.SimulatorWarning, match="race: it writes") as raised:
        launch()
    assert f"kernel add at {line_of(kernels.add, 'tl.store(')}: " in str(raised.value)


@pytest.mark.needs("profile")
def test_a_profile_has_the_lines_of_the_python_source(kernels, device):
    kernel = interop.triton.kernel(kernels.add, "*fp32, *fp32, *fp32, i32", {"block": 256})
    x = cuda.zeros(1000, np.float32)
    with cuda.profile() as profile:
        kernel[4](x, x, cuda.empty(1000, np.float32), 1000)
    (launch,) = profile.launches
    assert launch.kernel == "add"
    assert line_of(kernels.add, "tl.load(y") in {f"{line.file}:{line.line}" for line in launch.lines}


@pytest.mark.needs("profile")
def test_accesses_that_triton_writes_as_inline_assembly_belong_to_their_python_lines(kernels, device):
    kernel = interop.triton.kernel(kernels.copy, "*fp32, *fp32", {"block": 256})
    with cuda.profile() as profile:
        kernel[1](cuda.zeros(256, np.float32), cuda.zeros(256, np.float32))
    for access, text in (("ld", "tl.load("), ("st", "tl.store(")):
        metric = f"l1tex__t_requests_pipe_lsu_mem_global_op_{access}.sum"
        lines = [f"{line.file}:{line.line}" for line in profile.launches[0].lines if line.metrics.get(metric)]
        assert lines == [line_of(kernels.copy, text)]


@pytest.mark.needs("profile")
def test_the_lines_are_those_of_the_functions_own_file_and_not_of_a_copy_in_the_cache(kernels, device, tmp_path):
    for name in ("first", 'a "second"'):
        file = tmp_path / f"{name}.py"
        file.write_text(Path(kernels.__file__).read_text())
        spec = importlib.util.spec_from_file_location(file.stem, file)
        copy = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(copy)
        with cuda.profile() as profile:
            interop.triton.kernel(copy.number, "*i32")[4](cuda.zeros(4, np.int32))
        assert {line.file for line in profile.launches[0].lines} == {str(file)}


@pytest.mark.parametrize(
    ("signature", "constants", "error", "message"),
    [
        ("*fp32, *fp32, i32", {"block": 64}, ValueError, "'signature' must have 4 types, for x, y, out, count, not 3"),
        ({"x": "*fp32"}, {"block": 64}, ValueError, "'signature' must have a type for each of x, y, out, count"),
        ("*fp32, *fp32, *fp32, i32", {}, ValueError, "'constants' must have a value for 'block', a tl.constexpr"),
        ("*fp32, *fp32, *fp32, i32", {"BLOCK": 64}, ValueError, "'constants' must have names of parameters of add"),
        ("*fp32, *fp32, *fp32, i33", {"block": 64}, cuda.errors.NotSupportedError, "'count' has type 'i33'"),
        ("*fp32, *fp32, *fp32, fp32:16", {"block": 64}, ValueError, "a number of another type for 'count'"),
        (["*fp32", "*fp32", "*fp32", 32], {"block": 64}, TypeError, "argument 'signature' must be a str"),
        ("*fp32, *fp32, *fp32, i32", [64], TypeError, "argument 'constants' must be"),
    ],
)
def test_a_signature_that_does_not_match_the_function_is_refused(kernels, device, signature, constants, error, message):
    with pytest.raises(error, match="^interop.triton.kernel: ") as raised:
        interop.triton.kernel(kernels.add, signature, constants)
    assert message in str(raised.value)


def test_the_brackets_contain_the_grid_alone(kernels, device):
    kernel = interop.triton.kernel(kernels.number, "*i32")
    with pytest.raises(TypeError, match=r"launch number as number\[grid\].*number.configure\(grid, stream=stream\)"):
        kernel[(4, 3), 128]
    with pytest.raises(ValueError, match="number: argument 'block' must be 128, which Triton has chosen"):
        kernel.configure(4, 64)
    with pytest.raises(ValueError, match="number: argument 'shared_bytes' must be 0, which Triton has chosen"):
        kernel.configure(4, shared_bytes=64)


def test_a_function_that_was_not_decorated_is_refused(kernels, device):
    with pytest.raises(TypeError, match=r"argument 'function' must be a function with @triton\.jit"):
        interop.triton.kernel(kernels.add.fn, "*fp32, *fp32, *fp32, i32", {"block": 64})


def test_without_triton_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs Triton, .*: pip install triton$"):
        interop.triton.kernel(len, "*fp32")
