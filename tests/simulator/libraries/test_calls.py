"""The libraries in software: their names, when their calls run, what the checks see of them, and what goes wrong."""

from __future__ import annotations

import ctypes
import importlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda.bindings.driver import CUgraphNodeType

import cudart_py as cuda
from cudart_py.simulator import driver, libraries
from cudart_py.simulator.checks import findings
from cudart_py.simulator.libraries import functions, loading
from tests.simulator.support import Status, download, ok, upload

pytest.importorskip("scipy", reason="SciPy is not installed (the extra cpu)")

NAMES = ("cublas", "cublasLt", "cufft", "cusolverDn", "cusparse")
N = 4
FLOAT, DOUBLE = 0, 1


def offered(module: ModuleType) -> Iterator[str]:
    """Yield the functions of a library, which are those that nvmath's bindings have too."""
    bindings = importlib.import_module(f"nvmath.bindings.{NAMES[MODULES.index(module)]}")
    for name in vars(module):
        if not name.startswith("_") and callable(getattr(module, name)) and not isinstance(getattr(module, name), type):
            theirs = getattr(bindings, name, None)
            if theirs is not None and not isinstance(theirs, type):
                yield name


MODULES = [libraries.find(name) for name in NAMES]
FUNCTIONS = [(number, name) for number, module in enumerate(MODULES) for name in offered(module)]


@pytest.mark.parametrize(("number", "name"), FUNCTIONS)
def test_parameters_are_those_of_nvmath(number: int, name: str) -> None:
    bindings = importlib.import_module(f"nvmath.bindings.{NAMES[number]}")
    ours = inspect.signature(getattr(MODULES[number], name)).parameters
    assert list(ours) == list(inspect.signature(getattr(bindings, name)).parameters)


def test_every_library_is_there() -> None:
    counts = [sum(number == where for where, _ in FUNCTIONS) for number in range(len(NAMES))]
    assert min(counts) > 10


@pytest.mark.parametrize("name", NAMES)
def test_enums_are_those_of_nvmath(name: str) -> None:
    bindings = importlib.import_module(f"nvmath.bindings.{name}")
    enums = [key for key, value in vars(bindings).items() if isinstance(value, type) and hasattr(value, "__members__")]
    assert all(getattr(libraries.find(name), enum) is getattr(bindings, enum) for enum in enums)


def test_a_function_without_a_software_version_is_refused_by_name() -> None:
    cublas = libraries.find("cublas")
    with pytest.raises(functions.LibraryError, match=r"NOT_SUPPORTED \(15\): srotg is none of the functions"):
        cublas.srotg(1, 2, 3, 4, 5)


def test_a_name_that_the_bindings_have_not_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="sgemmm"):
        libraries.find("cublas").sgemmm  # noqa: B018  # the attribute is what is tested


def test_a_library_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(cuda.NotSupportedError, match="the simulator has no cudss"):
        libraries.find("cudss")


def test_without_scipy_the_error_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_has_scipy", lambda: False)
    assert not libraries.available()
    with pytest.raises(cuda.NotSupportedError, match=r"SciPy.*pip install 'cudart-py\[cpu\]'"):
        libraries.find("cufft")


# -- products of matrices in the simulator's streams -----------------------------------------------


class Gemm:
    """A product of 4 x 4 matrices of doubles by the software cuBLAS, with its factors."""

    def __init__(self, stream: int = 0) -> None:
        self.cublas = libraries.find("cublas")
        self.handle = self.cublas.create()
        self.factors = np.array([1.0, 0.0])
        self.cublas.set_stream(self.handle, stream)

    def __call__(self, a: int, b: int, out: int, *, beta: float = 0.0) -> None:
        self.factors[1] = beta
        one, zero = self.factors.ctypes.data, self.factors.ctypes.data + 8
        compute = int(self.cublas.ComputeType.COMPUTE_64F)
        self.cublas.gemm_ex(
            self.handle, 0, 0, N, N, N, one, a, DOUBLE, N, b, DOUBLE, N, zero, out, DOUBLE, N, compute, -1
        )  # fmt: skip  # grouped by meaning


def matrix(rng: np.random.Generator) -> tuple[int, np.ndarray[Any, Any]]:
    """Upload a matrix that lies column by column; return its address and itself."""
    host = rng.standard_normal((N, N))
    return upload(np.ascontiguousarray(host.T)), host


def stream() -> int:
    return int(ok(driver.cuStreamCreate(1)))


def result_at(address: int) -> np.ndarray[Any, Any]:
    return download(address, N * N, np.float64).reshape(N, N).T


def finding(run: Callable[[], Any]) -> str:
    """Return what the checks say of work."""
    before = findings.set_checks("error")
    try:
        run()
        with pytest.raises(cuda.SimulatorWarning) as caught:
            driver.cuCtxSynchronize()
    finally:
        findings.set_checks(before)
    return str(caught.value)


def test_a_call_runs_when_its_stream_gets_there(context: Any, rng: np.random.Generator) -> None:
    (a, host_a), (b, host_b), out = matrix(rng), matrix(rng), upload(np.zeros((N, N)))
    queue = stream()
    Gemm(queue)(a, b, out)
    assert not any(ctypes.string_at(out, N * N * 8))
    ok(driver.cuStreamSynchronize(queue))
    assert np.allclose(result_at(out), host_a @ host_b)


def test_factors_of_the_host_are_read_at_the_call(context: Any, rng: np.random.Generator) -> None:
    (a, host_a), (b, host_b), out = matrix(rng), matrix(rng), upload(np.zeros((N, N)))
    gemm = Gemm()
    gemm(a, b, out)
    gemm.factors[...] = np.nan
    assert np.allclose(result_at(out), host_a @ host_b)


def test_a_captured_call_is_a_kernel_node_with_its_name(context: Any, rng: np.random.Generator) -> None:
    (a, _), (b, _), (out, _) = (matrix(rng) for _ in range(3))
    queue = stream()
    gemm = Gemm(queue)
    ok(driver.cuStreamBeginCapture(queue, 0))
    gemm(a, b, out)
    graph = ok(driver.cuStreamEndCapture(queue))
    [node], _ = ok(driver.cuGraphGetNodes(graph, 1))
    assert ok(driver.cuGraphNodeGetType(node)) == CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL


def test_bytes_that_nothing_has_written_are_reported(context: Any, rng: np.random.Generator) -> None:
    (a, _), out = matrix(rng), upload(np.zeros((N, N)))
    blank = int(ok(driver.cuMemAlloc(N * N * 8)))
    text = finding(lambda: Gemm()(a, blank, out))
    assert "cublasGemmEx reads an uninitialised value" in text


def test_an_output_that_is_not_read_may_be_uninitialised(context: Any, rng: np.random.Generator) -> None:
    (a, host_a), (b, host_b) = matrix(rng), matrix(rng)
    blank = int(ok(driver.cuMemAlloc(N * N * 8)))
    Gemm()(a, b, blank)
    assert np.allclose(result_at(blank), host_a @ host_b)


def test_an_output_that_is_added_to_is_read(context: Any, rng: np.random.Generator) -> None:
    (a, _), (b, _) = matrix(rng), matrix(rng)
    blank = int(ok(driver.cuMemAlloc(N * N * 8)))
    assert "uninitialised" in finding(lambda: Gemm()(a, b, blank, beta=1.0))


def test_what_a_call_writes_counts_as_written(context: Any, rng: np.random.Generator) -> None:
    (a, host_a), (b, host_b) = matrix(rng), matrix(rng)
    middle, out = int(ok(driver.cuMemAlloc(N * N * 8))), int(ok(driver.cuMemAlloc(N * N * 8)))
    gemm = Gemm()
    gemm(a, b, middle)
    gemm(middle, b, out)
    assert np.allclose(result_at(out), host_a @ host_b @ host_b)


def test_calls_of_two_streams_that_nothing_orders_are_a_race(context: Any, rng: np.random.Generator) -> None:
    (a, _), (b, _), (out, _) = (matrix(rng) for _ in range(3))
    first, second = Gemm(stream()), Gemm(stream())

    def run() -> None:
        first(a, b, out)
        second(out, b, a)

    assert "race: cublasGemmEx" in finding(run)


def test_calls_that_only_read_the_same_memory_are_no_race(context: Any, rng: np.random.Generator) -> None:
    (a, _), (b, _) = matrix(rng), matrix(rng)
    outs = [upload(np.zeros((N, N))) for _ in range(2)]
    for out in outs:
        Gemm(stream())(a, b, out)
    ok(driver.cuCtxSynchronize())


def test_a_call_that_goes_beyond_an_allocation_ends_the_context(context: Any, rng: np.random.Generator) -> None:
    (a, _), (b, _), (out, _) = (matrix(rng) for _ in range(3))
    Gemm(stream())(a, b, out + 64)
    assert driver.cuCtxSynchronize()[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "cublasGemmEx touches" in (driver.take_report() or "")


def test_a_call_after_a_fault_says_what_the_driver_answers(context: Any, rng: np.random.Generator) -> None:
    (a, _), (b, _), (out, _) = (matrix(rng) for _ in range(3))
    gemm = Gemm()
    gemm(a, b, out + 64)
    driver.cuCtxSynchronize()
    with pytest.raises(functions.LibraryError, match="EXECUTION_FAILED .*answered CUDA_ERROR_ILLEGAL_ADDRESS"):
        gemm(a, b, out)


def test_memory_of_a_device_without_access_is_a_fault(two_devices: list[Any], rng: np.random.Generator) -> None:
    (a, _), (b, _) = matrix(rng), matrix(rng)
    ok(driver.cuCtxPushCurrent(two_devices[1]))
    there = int(ok(driver.cuMemAlloc(N * N * 8)))
    ok(driver.cuCtxPopCurrent())
    Gemm()(a, b, there)
    assert driver.cuCtxSynchronize()[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS


def test_a_handle_that_is_none_is_refused(context: Any) -> None:
    gemm = Gemm()
    gemm.cublas.destroy(gemm.handle)
    with pytest.raises(functions.LibraryError, match=r"NOT_INITIALIZED \(1\): no object has the handle"):
        gemm(1, 2, 3)


def test_types_that_cublas_does_not_multiply_are_refused(context: Any) -> None:
    gemm = Gemm()
    cublas, factors = gemm.cublas, gemm.factors.ctypes.data
    compute = int(cublas.ComputeType.COMPUTE_32F)
    first, second, out = (1, FLOAT, N), (2, DOUBLE, N), (3, FLOAT, N)
    with pytest.raises(functions.LibraryError, match=r"NOT_SUPPORTED \(15\): cublasGemmEx has no product of these"):
        cublas.gemm_ex(gemm.handle, 0, 0, N, N, N, factors, *first, *second, factors, *out, compute, -1)


def test_a_plan_without_its_work_area_is_refused(context: Any) -> None:
    cufft = libraries.find("cufft")
    plan = cufft.create()
    cufft.set_auto_allocation(plan, 0)
    cufft.make_plan_many(plan, 1, (8,), 0, 1, 8, 0, 1, 8, int(cufft.Type.C2C), 1)
    with pytest.raises(functions.LibraryError, match="NO_WORKSPACE"):
        cufft.exec_c2c(plan, 1, 2, -1)
