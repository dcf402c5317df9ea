"""Names from other packages raise an error that says what to write here instead."""

import functools
import importlib
import inspect
import operator
import pydoc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.hints import HINTS, KERNEL, KEYWORDS, OPERATORS, POSITIONAL
from tests.tables import quoted


def captured() -> cuda.graphs.Graph:
    with cuda.Stream().capture() as graph:
        pass
    return graph


@pytest.fixture
def things(device: cuda.Device) -> dict[str, Any]:
    module = cuda.compile('extern "C" __global__ void k() {}')
    return {
        "module": cuda,
        "DeviceArray": cuda.zeros(3),
        "Device": device,
        "DeviceProperties": device.properties,
        "Module": module,
        "Kernel": module["k"],
        "Stream": cuda.legacy_default,
        "Event": cuda.Event(),
        "Graph": captured(),
        "MemoryPool": cuda.MemoryPool.current(),
        "libraries": libraries,
    }


@pytest.fixture
def sparse_matrix(device: cuda.Device) -> libraries.SparseMatrix:
    """Return the sparse identity of order 4."""
    indices, offsets = (cuda.to_device(np.arange(size, dtype=np.int32)) for size in (4, 5))
    return libraries.SparseMatrix("csr", (4, 4), cuda.full(4, 1.0), indices, offsets)


@pytest.mark.needs("libraries")
def test_a_sparse_matrix_answers_scipys_names(sparse_matrix: libraries.SparseMatrix) -> None:
    check_names("SparseMatrix", sparse_matrix)
    assert (sparse_matrix.dtype, sparse_matrix.nnz) == (np.float64, 4)


@pytest.mark.needs("libraries")
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_the_hint_for_a_conversion_converts_to_the_format_that_was_asked_for(
    sparse_matrix: libraries.SparseMatrix, format: str
) -> None:
    names = {"libraries": libraries, "s": sparse_matrix, "format": format}
    for name in (f"to{format}", "asformat"):
        with pytest.raises(AttributeError) as raised:
            getattr(sparse_matrix, name)
        assert eval(str(raised.value).rpartition("write ")[2], names).format == format


@pytest.mark.needs("libraries")
def test_a_generator_answers_numpys_names(device: cuda.Device) -> None:
    check_names("Generator", libraries.Generator())


@pytest.mark.parametrize("kind", [kind for kind in HINTS if kind not in ("Generator", "SparseMatrix")])
def test_a_name_of_another_package_says_what_to_write(things: dict[str, Any], kind: str) -> None:
    check_names(kind, things[kind])


def check_names(kind: str, thing: Any) -> None:
    for name, (_, write) in HINTS[kind].items():
        with pytest.raises(AttributeError) as raised:
            getattr(thing, name)
        assert write in str(raised.value)
        assert name in str(raised.value)
        assert not hasattr(thing, name)
        assert name not in dir(thing)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'$"):
        thing.no_such_name  # noqa: B018  # accessed for its error


@pytest.mark.parametrize("cls", [cuda.DeviceArray, libraries.SparseMatrix])
def test_help_says_of_names_that_do_not_exist_what_to_write(cls: type) -> None:
    lines = [line.strip(" |") for line in pydoc.plain(pydoc.render_doc(cls)).splitlines()]
    operators = {f"{name}(...)": write for name, write in OPERATORS[cls.__name__].items()}
    names = {name: write for name, (_, write) in HINTS[cls.__name__].items()}
    for heading, write in (operators | names).items():
        assert lines[lines.index(heading) + 1] == f"Does not exist: write {write}"


@pytest.mark.needs("libraries")
@pytest.mark.parametrize("kind", OPERATORS)
def test_an_operator_says_what_to_write(sparse_matrix: libraries.SparseMatrix, kind: str) -> None:
    thing = sparse_matrix if kind == "SparseMatrix" else cuda.zeros(3)
    for name, write in OPERATORS[kind].items():
        for call in (getattr(thing, name), functools.partial(getattr(type(thing), name), thing)):
            with pytest.raises(TypeError, match=f"^a {kind} has no ") as raised:
                call(2)
            assert write in str(raised.value)
    for compute, symbol in ((lambda: thing >= 2, ">="), (lambda: 2 - thing, "-"), (lambda: thing @ thing, "@")):
        with pytest.raises(TypeError, match=f"^a {kind} has no operator {symbol}: write "):
            compute()


def test_an_array_is_no_index_and_says_how_to_copy_its_element(device: cuda.Device) -> None:
    one = cuda.full(3, 2)[1]
    for use in (lambda: range(one), lambda: [1, 2, 3][one]):
        with pytest.raises(TypeError, match=r"write int\(x\)"):
            use()
    with pytest.raises(TypeError, match=r"argument 'value' must be an int, .* int\(value\) copies it"):
        cuda.Pointer(one)  # the element is not an address
    assert list(range(int(one))) == [0, 1]


def test_numbas_arrays_in_kernels_are_not_arrays_of_the_host(device: cuda.Device) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'shared\.array': write in the kernel: __shared__ float"):
        cuda.shared.array(256, np.float32)  # type: ignore[attr-defined]  # Numba's name


def test_an_address_plus_an_int_is_a_slice(device: cuda.Device) -> None:
    with pytest.raises(TypeError, match=r"no operator \+: write x\[n:\] .* n to each element, write x\.to_host\(\)"):
        _ = cuda.zeros(3) + 2  # type: ignore[operator]  # arrays have no arithmetic


def test_an_unknown_device_attribute_suggests_a_similar_one(device: cuda.Device) -> None:
    with pytest.raises(KeyError, match="did you mean 'warp_size'"):
        device.attributes["WarpSize"]
    assert device.attributes["warp_size"] == 32


def test_an_operator_or_function_on_one_element_says_float(device: cuda.Device) -> None:
    one = cuda.full(1, 2.0)
    for compute in (lambda: one < 1, lambda: one / one, lambda: -one, lambda: np.sqrt(one)):
        with pytest.raises(TypeError, match=r"write float\(x\), which copies the only element"):
            compute()


def called(function: str) -> Callable[..., Any]:
    """Return a function of `KEYWORDS` with the arguments that it requires."""
    owner, _, name = function.rpartition(".")
    x, host = cuda.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    owners = {
        "DeviceArray": lambda: x,
        "Event": cuda.Event,
        "Generator": libraries.Generator,
        "Kernel": lambda: cuda.compile('extern "C" __global__ void k() {}')["k"],
        "LuFactors": lambda: libraries.lu_factor(cuda.to_device(np.eye(4))),
    }
    thing = getattr(owners[owner]() if owner else cuda if name in cuda.__all__ else libraries, name)
    required = {
        "configure": (1, 32),
        "copy_from": (host,),
        "empty": (4,),
        "fill": (0,),
        "full": (4, 0),
        "memcpy": (x, host),
        "memset": (x, 0),
        "to_device": (host,),
        "zeros": (4,),
    }
    return functools.partial(thing, *required.get(name, ()))


@pytest.mark.needs("libraries")
@pytest.mark.parametrize("function", [name for name in KEYWORDS if name != "Kernel"])
def test_a_keyword_of_another_package_says_what_to_write(device: cuda.Device, function: str) -> None:
    call = called(function)
    for keyword, write in KEYWORDS[function].items():
        with pytest.raises(TypeError) as raised:
            call(**{keyword: None})
        assert f"{function}: there is no argument {keyword!r}: {write}" == str(raised.value)
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such_keyword'"):
        call(no_such_keyword=None)


@pytest.mark.needs("libraries")
def test_a_plan_answers_the_keywords_of_its_function(device: cuda.Device) -> None:
    for function in (libraries.fft, libraries.irfft, libraries.gemm):
        for keyword, write in KEYWORDS[function.__name__].items():
            with pytest.raises(TypeError) as raised:
                function.plan(cuda.zeros((4, 4)), **{keyword: None})  # type: ignore[arg-type]  # it has no such argument
            assert write in str(raised.value)


def test_arguments_in_the_order_of_cudas_functions_say_what_to_write(device: cuda.Device) -> None:
    x, host = cuda.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    calls: dict[str, tuple[Any, ...]] = {
        "DeviceArray.copy_from": (x, host, cuda.legacy_default),
        "DeviceArray.to_host": (x, host, cuda.legacy_default),
        "compile": ("source", "saxpy"),
        "memcpy": (x, host, 64, 1),
        "memcpy2d": (x, 16, host, 16, 16, 4, 1),
        "memcpy3d": (x, host, (1, 4, 4), 1),
        "memset": (x, 0, 64),
        "empty": (4, np.float32, cuda.legacy_default),
        "full": (4, 1, np.float32, cuda.legacy_default),
        "to_device": (host, np.float32, cuda.legacy_default),
        "zeros": (4, np.float32, "C"),
    }
    of_libraries = {name for name in POSITIONAL if name.partition(".")[0] in libraries.__all__}
    assert calls.keys() == POSITIONAL.keys() - of_libraries
    for name, values in calls.items():
        with pytest.raises(TypeError) as raised:
            operator.attrgetter(name)(cuda)(*values)
        assert POSITIONAL[name] in str(raised.value)
    # A keyword argument that the function has is not what is wrong.
    with pytest.raises(TypeError, match="memcpy: there is 1 positional argument too many"):
        cuda.memcpy(x, host, 64, stream=cuda.Stream())  # type: ignore[arg-type]  # it has no such argument


@pytest.mark.needs("libraries")
@pytest.mark.parametrize("name", [name for name in POSITIONAL if name.partition(".")[0] in libraries.__all__])
def test_arguments_in_the_order_of_numpys_functions_say_what_to_write(device: cuda.Device, name: str) -> None:
    function = operator.attrgetter(name)(libraries)
    parameters = inspect.signature(function).parameters.values()
    count = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
    with pytest.raises(TypeError) as raised:
        function(*[None] * count, 1)
    assert str(raised.value) == f"{name}: there is 1 positional argument too many: {POSITIONAL[name]}"


def test_cupys_shared_mem_says_where_the_size_belongs(device: cuda.Device) -> None:
    kernel = cuda.compile('extern "C" __global__ void k(int n) {}')["k"]
    for launch in (kernel[1, 1], lambda *values, **named: kernel.launch(1, 1, *values, **named)):
        with pytest.raises(TypeError, match=r"'shared_mem'.* write kernel\[grid, block, shared_bytes\]"):
            launch(3, shared_mem=64)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("Graph", "cuda.graphs.Graph"),
        ("NotSupportedError", "cuda.errors.NotSupportedError"),
    ],
)
def test_a_name_of_a_submodule_is_answered(name: str, write: str) -> None:
    with pytest.raises(AttributeError, match=f"{name}.*{write}"):
        getattr(cuda, name)
    assert not hasattr(cuda, name)


@pytest.mark.parametrize("name", ["benchmark", "libraries"])
def test_a_submodule_that_is_not_imported_yet_says_how_to_import_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    importlib.import_module(f"cudart_py.{name}")
    monkeypatch.delattr(cuda, name)
    with pytest.raises(AttributeError, match=f"write from cudart_py import {name}$"):
        getattr(cuda, name)


def test_the_package_lists_its_public_names_alone() -> None:
    by_name = {"benchmark", "checkpoints", "coredumps", "green_contexts", "interop", "libraries", "multicast"}
    assert {*dir(cuda)} - by_name == {*cuda.__all__}
    assert all(hasattr(cuda, name) for name in dir(cuda))


SUBMODULES = (
    "batches",
    "benchmark",
    "checkpoints",
    "coredumps",
    "errors",
    "graphs",
    "images",
    "ipc",
    "libraries",
    "profiling",
    "tensor_maps",
    "textures",
    "virtual",
)


@pytest.mark.parametrize("name", SUBMODULES)
def test_a_public_submodule_lists_its_public_names_alone(name: str) -> None:
    submodule = importlib.import_module(f"cudart_py.{name}")
    assert {*dir(submodule)} == {*submodule.__all__}
    assert all(hasattr(submodule, public) for public in submodule.__all__)


# Hints whose code would close the array, change the process or its devices, or need another library, a capture,
# asyncio or another process. The hint for `polyfit` needs doubles; another test runs it.
NOT_RUN = (
    *(
        "as_cuda_array",
        "async_done",
        "checks",
        "destroy",
        "free",
        "get_ipc_handle",
        "graph_empty",
        "ipc_empty",
        "ipc_handle",
    ),
    *("memcpy_dtoh", "polyfit", "profile_start", "reset", "set_allocator", "start_profiler"),
)
NOT_PYTHON = ("in the kernel: ", "nothing: ", KERNEL, "a loop ", "a preconditioner ", "a product ")


def test_what_a_hint_says_runs(device: cuda.Device) -> None:
    host, out = np.arange(4, dtype=np.float32), np.empty(4, np.float32)
    x, y = cuda.to_device(host), cuda.zeros(4, np.float32)
    start, end = cuda.Event().record(), cuda.Event().record()
    source = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n) {}
__constant__ float weights[4];
"""
    module = cuda.compile(source)
    names = {
        "cuda": cuda, "libraries": libraries, "np": np, "host": host, "pinned": cuda.pinned_empty(4, np.float32),
        "x": x, "y": y, "n": 4, "nbytes": 16, "start": start, "end": end, "event": end, "device": device,
        "stream": cuda.Stream(), "other": cuda.Stream(), "source": source, "name": "saxpy", "module": module,
        "kernel": module["saxpy"], "a": cuda.to_device(np.eye(2)), "b": cuda.to_device(np.eye(2)),
        "ones": cuda.full(4, 1.0, np.float32), "shape": (2, 2), "axes": (0,), "symbol": "weights",
        "z": cuda.zeros(8, np.float32), "format": "csc", "graph": captured(), "pool": cuda.MemoryPool.current(),
    }  # fmt: skip  # names of a program
    device.synchronize()
    capabilities = cuda.capabilities()
    if "libraries" in capabilities:
        sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")
        matrix = sparse.eye_array(4, dtype=np.float32).tocsr()
        names |= {"matrix": matrix, "s": libraries.SparseMatrix.from_host(matrix), "generator": libraries.Generator()}
    for kind, hints in HINTS.items():
        for name, (_, write) in hints.items():
            needs = kind in ("Generator", "libraries", "SparseMatrix") or write.startswith("libraries.")
            missing = (needs and "libraries" not in capabilities) or (
                "SparseSolver" in write and "cudss" not in capabilities
            )
            if name not in NOT_RUN and not write.startswith(NOT_PYTHON) and not missing:
                exec("\n".join(quoted(write) or [write]), dict(names))
    x.copy_from(host)
    exec(HINTS["module"]["memcpy_dtoh"][1].replace("=host", "=out"), {**names, "out": out})
    np.testing.assert_array_equal(out, host)


@pytest.mark.needs("libraries")
@pytest.mark.parametrize("size", [5, 6])
def test_a_hint_for_a_function_of_numpy_gives_numpys_result(device: cuda.Device, rng: Any, size: int) -> None:
    x, y, square = rng.random(size), rng.random(size), rng.random((size, size))
    square += square.T
    names = {"cuda": cuda, "libraries": libraries, "np": np, "n": size}
    names |= {name: cuda.to_device(array) for name, array in (("x", x), ("y", y), ("a", square), ("b", square))}
    names |= {"ones": cuda.full(size, 1.0), "t": x, "degree": 2}
    expected = {
        "dot": np.dot(x, y),
        "eigvalsh": np.linalg.eigvalsh(square),
        "fft2": np.fft.fft2(square),
        "fftfreq": np.fft.fftfreq(size),
        "fftshift": np.fft.fftshift(x),
        "mean": np.mean(x),
        "outer": np.outer(x, y),
        "polyfit": np.polyfit(x, y, 2),
        "ifft2": np.fft.ifft2(square),
        "ifftshift": np.fft.ifftshift(x),
        "norm": np.linalg.norm(x),
        "rfft2": np.fft.rfft2(square),
        "rfftfreq": np.fft.rfftfreq(size),
        "vdot": np.vdot(x, y),
    }
    hints = HINTS["module"] | HINTS["libraries"]
    for name, result in expected.items():
        write = hints[name][1]
        value = eval((quoted(write) or [write])[0], names)
        actual = value.to_host() if isinstance(value, cuda.DeviceArray) else np.asarray(value)
        np.testing.assert_allclose(actual, np.reshape(result, actual.shape), rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(eval(quoted(hints["dot"][1])[1], names).to_host(), np.dot(square, square))
    np.testing.assert_allclose(eval(quoted(hints["norm"][1])[1], names).to_host()[0], np.linalg.norm(square))
    joined = dict(names)
    for name, result in (("concatenate", np.concatenate([x, y])), ("stack", np.stack([x, y]))):
        exec("\n".join(quoted(hints[name][1])), joined)
        np.testing.assert_array_equal(joined["z"].to_host(), result)


@pytest.mark.parametrize(
    ("path", "write"),
    [
        ("linalg.svd", "libraries.svd"),
        ("linalg.det", "np.linalg.det"),
        ("linalg.lu_solve", "libraries.lu_factor(a).solve(b)"),
        ("linalg.spilu", "symmetric Gauss-Seidel"),
        ("linalg.spsolve", ".solve(x)"),
        ("optimize.curve_fit", "libraries.lstsq"),
        ("stats.qmc", "sobol64"),
        ("fft.ifftshift", "np.fft.ifftshift"),
        ("random.random", "libraries.uniform"),
        ("cuda.Stream", "cuda.Stream"),
        ("cuda.Stream.null", "cuda.legacy_default"),
        ("cuda.get_elapsed_time", "end - start"),
        ("cuda.runtime.getDeviceCount", "cuda.devices()"),
        ("float32", "np.float32"),
        ("newaxis", "np.newaxis"),
        ("exp", KERNEL),
    ],
)
def test_the_most_specific_name_is_answered(path: str, write: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{path}': write ") as raised:
        eval(f"cp.{path}(3)", {"cp": cuda})
    assert write in str(raised.value)


@pytest.mark.needs("libraries")
def test_numpys_functions_are_answered_by_their_whole_names(device: cuda.Device) -> None:
    x: Any = cuda.zeros(3)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: np.fft.fft(x), "libraries.fft"),
        (lambda: np.linalg.svd(x), "libraries.svd"),
        (lambda: np.outer(x, x), "libraries.ger"),
        (lambda: np.polyfit(x, x, 1), "libraries.lstsq"),
        (lambda: np.sort(x), KERNEL),
    ]
    for call, write in calls:
        with pytest.raises(TypeError) as raised:
            call()
        assert write in str(raised.value)


@pytest.mark.parametrize(("name", "write"), [("det", "np.linalg.det"), ("hfft", "np.fft.hfft"), ("kron", KERNEL)])
def test_a_name_that_libraries_lacks_is_answered_by_numpys_function(name: str, write: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(libraries, name)
    assert f"write {write}" in str(raised.value)


@pytest.mark.parametrize(
    ("module", "name", "write"),
    [
        ("cudart_py", "RawKernel", "cuda.compile"),
        ("cudart_py", "ElementwiseKernel", KERNEL),
        ("cudart_py.libraries", "cg", "libraries.spmv"),
    ],
)
def test_an_import_of_another_packages_name_says_what_to_write(module: str, name: str, write: str) -> None:
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from '{module}': write ") as raised:
        exec(f"from {module} import {name}")
    assert write in str(raised.value)
    with pytest.raises(ImportError, match="cannot import name 'no_such_name' from"):
        exec(f"from {module} import no_such_name")


def test_a_hint_names_the_imports_that_its_code_lacks(device: cuda.Device) -> None:
    for names, lacking in (({"cuda": cuda}, ""), ({"cp": cuda}, "(after import cudart_py as cuda)")):
        with pytest.raises(AttributeError) as raised:
            eval(f"{next(iter(names))}.to_gpu", names)
        assert str(raised.value).endswith(f"write cuda.to_device(host) {lacking}".strip())
