"""The simulated libraries: their names, when their calls run, how they are checked, and their errors."""

import ctypes
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda.bindings.driver import CUgraphNodeType
from cuda.bindings.runtime import cudaDataType

import cudart_py as cuda
from cudart_py.simulator import driver, libraries
from cudart_py.simulator.libraries import loading
from cudart_py.simulator.libraries.common import functions
from cudart_py.simulator.libraries.common.calls import queue
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


@pytest.mark.parametrize(("function", "name"), [("dger", "cublasDger"), ("cgeru", "cublasCgeru")])
def test_a_finding_names_the_routine_of_the_dtype(matrices: list[int], function: str, name: str) -> None:
    gemm = Gemm()
    update, one = getattr(gemm.cublas, function), gemm.factors.ctypes.data
    a = matrices[0]
    assert f"{name} reads an" in finding(lambda: update(gemm.handle, 2, 2, one, a, 1, a, 1, blank(), 2))


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


@pytest.mark.parametrize("error", [ValueError("bad"), MemoryError("none left"), np.linalg.LinAlgError("bad")])
def test_an_exception_in_a_computation_is_the_error_of_that_call_alone(
    matrices: list[int], hosts: np.ndarray[Any, Any], stream: Any, error: Exception
) -> None:
    a, b, out = matrices

    def fail() -> None:
        raise error

    queue(int(stream), "cublasFails", fail)
    Gemm(stream)(a, b, out)
    memory = isinstance(error, MemoryError)
    status = Status.CUDA_ERROR_OUT_OF_MEMORY if memory else Status.CUDA_ERROR_UNKNOWN
    assert driver.cuStreamSynchronize(stream)[0] == status
    report = driver.take_report() or ""
    assert report.startswith(f"cublasFails: the simulator's computation raised {type(error).__name__}: {error}")
    assert "test_calls.py:" in report
    assert np.allclose(download(out, N * N, np.float64).reshape(N, N).T, hosts[0] @ hosts[1])


def test_numpys_error_settings_do_not_reach_a_call(matrices: list[int]) -> None:
    out = matrices[2]
    huge = upload(np.full((N, N), 1e308))
    with np.errstate(all="raise"):
        Gemm()(huge, huge, out)
        ok(driver.cuCtxSynchronize())
    assert np.isinf(download(out, N * N, np.float64)).all()


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "sell"])
@pytest.mark.parametrize("wrong", [4, -2, 2**30])
def test_an_index_outside_a_sparse_matrix_is_an_illegal_access(context: Any, format: str, wrong: int) -> None:
    indices = np.arange(N, dtype=np.int32)
    indices[2] = wrong
    assert multiplied(format, indices, np.arange(N + 1, dtype=np.int32)) == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert f"cusparseSpMV: index {wrong}, of element 2, is not from 0 to 3" in (driver.take_report() or "")


@pytest.mark.parametrize("offsets", [(1, 1, 2, 3, 4), (0, 3, 2, 3, 4), (0, 1, 2, 3, 5)])
def test_offsets_that_lead_out_of_a_sparse_matrix_are_an_illegal_access(context: Any, offsets: tuple[int, ...]) -> None:
    found = multiplied("csr", np.arange(N, dtype=np.int32), np.array(offsets, np.int32))
    assert found == Status.CUDA_ERROR_ILLEGAL_ADDRESS


def multiplied(format: str, indices: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> Any:
    """Return the status of a product of a sparse matrix with a value per row, and a vector."""
    cusparse, ones = libraries.find("cusparse"), np.ones(N)
    values, x, y = upload(ones), upload(ones), upload(ones)
    double, index = int(cudaDataType.CUDA_R_64F), int(cusparse.IndexType.INDEX_32I)
    if format == "coo":
        places = upload(np.arange(N, dtype=np.int32)), upload(indices)
        matrix = cusparse.create_coo(N, N, N, *places, values, index, 0, double)
    elif format == "sell":  # slices of one row
        matrix = cusparse.create_sliced_ell(
            N, N, N, N, 1, upload(offsets), upload(indices), values, index, index, 0, double
        )
    else:
        create = getattr(cusparse, f"create_{format}")
        matrix = create(N, N, N, upload(offsets), upload(indices), values, index, index, 0, double)
    vectors = cusparse.create_dn_vec(N, x, double), cusparse.create_dn_vec(N, y, double)
    factors = np.array([1.0, 0.0])
    one, zero = factors.ctypes.data, factors.ctypes.data + 8
    cusparse.sp_mv(cusparse.create(), 0, one, matrix, vectors[0], zero, vectors[1], double, 0, blank())
    return driver.cuCtxSynchronize()[0]


def test_wrong_handles_types_and_plans_are_refused(context: Any) -> None:
    gemm, cufft = Gemm(), libraries.find("cufft")
    with pytest.raises(functions.LibraryError, match=r"NOT_SUPPORTED \(15\): cublasGemmEx"):
        gemm(1, 2, 3, kinds="fdf")
    gemm.cublas.destroy(gemm.handle)
    with pytest.raises(functions.LibraryError, match=r"NOT_INITIALIZED \(1\): no object has"):
        gemm(1, 2, 3)
    plan = cufft.create()
    cufft.set_auto_allocation(plan, 0)
    cufft.make_plan_many(plan, 1, (512,), 0, 1, 512, 0, 1, 512, int(cufft.Type.C2C), 1)
    with pytest.raises(functions.LibraryError, match="NO_WORKSPACE"):
        cufft.exec_c2c(plan, 1, 2, -1)
