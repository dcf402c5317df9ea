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
BYTES = N * N * 8
FLOAT, DOUBLE = 0, 1


def offered(module: ModuleType, bindings: ModuleType) -> Iterator[str]:
    """Yield the functions of a library, which are those that nvmath's bindings have too."""
    for name, ours in vars(module).items():
        theirs = getattr(bindings, name, None)
        if not name.startswith("_") and all(callable(one) and not isinstance(one, type) for one in (ours, theirs)):
            yield name


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_enums_are_those_of_nvmath(name: str) -> None:
    module, bindings = libraries.find(name), importlib.import_module(f"nvmath.bindings.{name}")
    names = list(offered(module, bindings))
    assert len(names) > 10
    ours, theirs = (
        {each: list(inspect.signature(getattr(one, each)).parameters) for each in names} for one in (module, bindings)
    )
    assert ours == theirs
    enums = [key for key, value in vars(bindings).items() if isinstance(value, type) and hasattr(value, "__members__")]
    assert [enum for enum in enums if getattr(module, enum) is not getattr(bindings, enum)] == []


def test_what_is_not_there_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cublas = libraries.find("cublas")
    with pytest.raises(functions.LibraryError, match=r"NOT_SUPPORTED \(15\): srotg"):
        cublas.srotg(1, 2, 3, 4, 5)
    with pytest.raises(AttributeError, match="sgemmm"):
        cublas.sgemmm  # noqa: B018  # the attribute is what is tested
    with pytest.raises(cuda.NotSupportedError, match="has no cudss"):
        libraries.find("cudss")
    monkeypatch.setattr(loading, "_has_scipy", lambda: False)
    assert not libraries.available()
    with pytest.raises(cuda.NotSupportedError, match=r"SciPy.*'cudart-py\[cpu\]'"):
        libraries.find("cufft")


class Gemm:
    """A product of 4 x 4 matrices of doubles by the software cuBLAS, with its factors."""

    def __init__(self, stream: Any = 0) -> None:
        self.cublas = libraries.find("cublas")
        self.handle = self.cublas.create()
        self.factors = np.array([1.0, 0.0])
        self.cublas.set_stream(self.handle, int(stream))

    def __call__(self, a: int, b: int, out: int, *, beta: float = 0.0) -> None:
        self.factors[1] = beta
        one, zero = self.factors.ctypes.data, self.factors.ctypes.data + 8
        compute = int(self.cublas.ComputeType.COMPUTE_64F)
        self.cublas.gemm_ex(
            self.handle, 0, 0, N, N, N, one, a, DOUBLE, N, b, DOUBLE, N, zero, out, DOUBLE, N, compute, -1
        )  # fmt: skip  # grouped by meaning


@pytest.fixture
def hosts(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.standard_normal((3, N, N))


@pytest.fixture
def matrices(context: Any, hosts: np.ndarray[Any, Any]) -> list[int]:
    """The addresses of three matrices, which lie column by column."""
    return [upload(np.ascontiguousarray(host.T)) for host in hosts]


def blank() -> int:
    return int(ok(driver.cuMemAlloc(BYTES)))


def new_stream() -> Any:
    return ok(driver.cuStreamCreate(1))


def result_at(address: int) -> np.ndarray[Any, Any]:
    return download(address, N * N, np.float64).reshape(N, N).T


def finding(*works: Callable[[], Any]) -> str:
    """Return what the checks say of work."""
    before = findings.set_checks("error")
    try:
        for work in works:
            work()
        with pytest.raises(cuda.SimulatorWarning) as caught:
            driver.cuCtxSynchronize()
    finally:
        findings.set_checks(before)
    return str(caught.value)


def test_a_call_runs_when_its_stream_gets_there_with_the_factors_of_the_call(
    matrices: list[int], hosts: np.ndarray[Any, Any], stream: Any
) -> None:
    a, b, out = matrices
    gemm = Gemm(stream)
    ok(driver.cuMemsetD8Async(out, 0, BYTES, stream))
    ok(driver.cuStreamSynchronize(stream))
    gemm(a, b, out)
    gemm.factors[...] = np.nan
    assert not any(ctypes.string_at(out, BYTES))
    assert np.allclose(result_at(out), hosts[0] @ hosts[1])


def test_a_captured_call_is_a_kernel_node(matrices: list[int], stream: Any) -> None:
    gemm = Gemm(stream)
    ok(driver.cuStreamBeginCapture(stream, 0))
    gemm(*matrices)
    [node], _ = ok(driver.cuGraphGetNodes(ok(driver.cuStreamEndCapture(stream)), 1))
    assert ok(driver.cuGraphNodeGetType(node)) == CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL


def test_bytes_that_nothing_has_written_are_reported_where_they_are_read(matrices: list[int]) -> None:
    a, b, out = matrices
    gemm, empty = Gemm(), blank()
    assert "cublasGemmEx reads an uninitialised value" in finding(lambda: gemm(a, empty, out))
    assert "uninitialised" in finding(lambda: gemm(a, b, empty, beta=1.0))


def test_what_a_call_writes_counts_as_written(matrices: list[int], hosts: np.ndarray[Any, Any]) -> None:
    a, b, _ = matrices
    gemm, middle, out = Gemm(), blank(), blank()
    gemm(a, b, middle)
    gemm(middle, b, out)
    assert np.allclose(result_at(out), hosts[0] @ hosts[1] @ hosts[1])


def test_calls_of_two_streams_race_unless_they_only_read_the_same_memory(matrices: list[int]) -> None:
    a, b, out = matrices
    first, second = Gemm(new_stream()), Gemm(new_stream())
    first(a, b, out)
    second(a, b, blank())
    ok(driver.cuCtxSynchronize())
    assert "race: cublasGemmEx" in finding(lambda: first(a, b, out), lambda: second(out, b, a))


def test_a_call_that_goes_beyond_an_allocation_ends_the_context(matrices: list[int]) -> None:
    a, b, out = matrices
    gemm = Gemm()
    gemm(a, b, out + 64)
    assert driver.cuCtxSynchronize()[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "cublasGemmEx touches" in (driver.take_report() or "")
    with pytest.raises(functions.LibraryError, match="EXECUTION_FAILED .*answered CUDA_ERROR_ILLEGAL_ADDRESS"):
        gemm(a, b, out)


def test_memory_of_a_device_without_access_is_a_fault(two_devices: list[Any], matrices: list[int]) -> None:
    a, b, _ = matrices
    ok(driver.cuCtxPushCurrent(two_devices[1]))
    there = blank()
    ok(driver.cuCtxPopCurrent())
    Gemm()(a, b, there)
    assert driver.cuCtxSynchronize()[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS


def test_wrong_handles_types_and_plans_are_refused(context: Any) -> None:
    gemm, cufft = Gemm(), libraries.find("cufft")
    cublas, factors = gemm.cublas, gemm.factors.ctypes.data
    compute = int(cublas.ComputeType.COMPUTE_32F)
    first, second, out = (1, FLOAT, N), (2, DOUBLE, N), (3, FLOAT, N)
    with pytest.raises(functions.LibraryError, match=r"NOT_SUPPORTED \(15\): cublasGemmEx"):
        cublas.gemm_ex(gemm.handle, 0, 0, N, N, N, factors, *first, *second, factors, *out, compute, -1)
    cublas.destroy(gemm.handle)
    with pytest.raises(functions.LibraryError, match=r"NOT_INITIALIZED \(1\): no object has"):
        gemm(1, 2, 3)
    plan = cufft.create()
    cufft.set_auto_allocation(plan, 0)
    cufft.make_plan_many(plan, 1, (8,), 0, 1, 8, 0, 1, 8, int(cufft.Type.C2C), 1)
    with pytest.raises(functions.LibraryError, match="NO_WORKSPACE"):
        cufft.exec_c2c(plan, 1, 2, -1)
