"""The simulated libraries: their names, when their calls run, how they are checked, and their errors."""

import ctypes
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda.bindings.driver import CUgraphNodeType

import cudart_py as cuda
from cudart_py.simulator import driver, libraries
from cudart_py.simulator.libraries import loading
from cudart_py.simulator.libraries.common import functions
from tests.simulator.support import Status, download, ok, upload

pytest.importorskip("scipy", reason="SciPy is not installed (the extra cpu)")

NAMES = ("cublas", "cublasLt", "cudss", "cufft", "cusolverDn", "cusparse")
N = 4
BYTES = N * N * 8


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_enums_are_those_of_nvmath(name: str) -> None:
    """Only the functions that exist in both are compared."""
    module, bindings = libraries.find(name), importlib.import_module(f"nvmath.bindings.{name}")
    enums = [key for key, value in vars(bindings).items() if isinstance(value, type) and hasattr(value, "__members__")]
    assert [enum for enum in enums if getattr(module, enum) is not getattr(bindings, enum)] == []
    names = []
    for key, ours in vars(module).items():
        both = (ours, getattr(bindings, key, None))
        if key[0] != "_" and all(callable(one) and not isinstance(one, type) for one in both):
            names.append(key)
            assert len({tuple(inspect.signature(one).parameters) for one in both}) == 1, key
    assert len(names) > 10


def test_what_is_not_there_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cublas = libraries.find("cublas")
    with pytest.raises(functions.LibraryError, match=r"NOT_SUPPORTED \(15\): srotg"):
        cublas.srotg(1, 2, 3, 4, 5)
    with pytest.raises(AttributeError, match="sgemmm"):
        cublas.sgemmm  # noqa: B018  # the attribute is what is tested
    with pytest.raises(cuda.errors.NotSupportedError, match="has no cutensor"):
        libraries.find("cutensor")
    monkeypatch.setattr(loading, "_has_scipy", lambda: False)
    assert not libraries.available()
    with pytest.raises(cuda.errors.NotSupportedError, match=r"SciPy.*'cudart-py\[cpu\]'"):
        libraries.find("cufft")


class Gemm:
    """A product of two 4 x 4 matrices of doubles by the simulated cuBLAS, with the factors alpha and beta."""

    def __init__(self, stream: Any = 0) -> None:
        self.cublas = libraries.find("cublas")
        self.handle = self.cublas.create()
        self.factors = np.array([1.0, 0.0])
        self.cublas.set_stream(self.handle, int(stream))

    def __call__(self, a: int, b: int, out: int, *, beta: float = 0.0, kinds: str = "ddd") -> None:
        self.factors[1] = beta
        one, zero = self.factors.ctypes.data, self.factors.ctypes.data + 8
        left, right, result = ((at, "fd".index(kind), N) for at, kind in zip((a, b, out), kinds, strict=True))
        compute = int(self.cublas.ComputeType.COMPUTE_64F)
        self.cublas.gemm_ex(self.handle, 0, 0, N, N, N, one, *left, *right, zero, *result, compute, -1)


@pytest.fixture
def hosts(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.standard_normal((3, N, N))


@pytest.fixture
def matrices(context: Any, hosts: np.ndarray[Any, Any]) -> list[int]:
    """Return the device addresses of three matrices, in column-major order."""
    return [upload(np.ascontiguousarray(host.T)) for host in hosts]


def blank() -> int:
    return int(ok(driver.cuMemAlloc(BYTES)))


def finding(*works: Callable[[], Any]) -> str:
    """Run functions that enqueue work, and return the finding of the checks."""
    with cuda.sanitizer("error"):
        for work in works:
            work()
        with pytest.raises(cuda.errors.SimulatorWarning) as caught:
            driver.cuCtxSynchronize()
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
    assert np.allclose(download(out, N * N, np.float64).reshape(N, N).T, hosts[0] @ hosts[1])


def test_a_captured_call_is_a_kernel_node(matrices: list[int], stream: Any) -> None:
    gemm = Gemm(stream)
    ok(driver.cuStreamBeginCapture(stream, 0))
    gemm(*matrices)
    [node], _ = ok(driver.cuGraphGetNodes(ok(driver.cuStreamEndCapture(stream)), 1))
    assert ok(driver.cuGraphNodeGetType(node)) == CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL


def test_bytes_that_no_call_has_written_are_reported_where_they_are_read(matrices: list[int]) -> None:
    a, b, out = matrices
    gemm, written = Gemm(), blank()
    gemm(a, b, written)
    gemm(written, b, out)
    ok(driver.cuCtxSynchronize())
    assert "cublasGemmEx reads an uninitialised value" in finding(lambda: gemm(a, blank(), out))
    assert "uninitialised" in finding(lambda: gemm(a, b, blank(), beta=1.0))


def test_calls_of_two_streams_race_unless_they_only_read_the_same_memory(matrices: list[int]) -> None:
    a, b, out = matrices
    first, second = (Gemm(ok(driver.cuStreamCreate(1))) for _ in range(2))
    first(a, b, out)
    second(a, b, blank())
    ok(driver.cuCtxSynchronize())
    assert "race: cublasGemmEx" in finding(lambda: first(a, b, out), lambda: second(out, b, a))


@pytest.mark.parametrize("where", ["beyond an allocation", "on a device without access"])
def test_memory_that_a_call_may_not_touch_ends_the_context(
    two_devices: list[Any], matrices: list[int], where: str
) -> None:
    a, b, out = matrices
    ok(driver.cuCtxPushCurrent(two_devices[1]))
    wrong = out + 64 if where == "beyond an allocation" else blank()
    ok(driver.cuCtxPopCurrent())
    gemm = Gemm()
    gemm(a, b, wrong)
    assert driver.cuCtxSynchronize()[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "cublasGemmEx touches" in (driver.take_report() or "")
    with pytest.raises(functions.LibraryError, match="EXECUTION_FAILED .*returned CUDA_ERROR_ILLEGAL_ADDRESS"):
        gemm(a, b, out)


def test_wrong_handles_types_and_plans_are_refused(context: Any) -> None:
    gemm, cufft = Gemm(), libraries.find("cufft")
    with pytest.raises(functions.LibraryError, match=r"NOT_SUPPORTED \(15\): cublasGemmEx"):
        gemm(1, 2, 3, kinds="fdf")
    gemm.cublas.destroy(gemm.handle)
    with pytest.raises(functions.LibraryError, match=r"NOT_INITIALIZED \(1\): no object has"):
        gemm(1, 2, 3)
    plan = cufft.create()
    cufft.set_auto_allocation(plan, 0)
    cufft.make_plan_many(plan, 1, (8,), 0, 1, 8, 0, 1, 8, int(cufft.Type.C2C), 1)
    with pytest.raises(functions.LibraryError, match="NO_WORKSPACE"):
        cufft.exec_c2c(plan, 1, 2, -1)
