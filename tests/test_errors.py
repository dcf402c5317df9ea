"""The tree of exceptions and the one unwrap."""

from __future__ import annotations

import inspect

import pytest
from cuda.bindings import driver, nvrtc, runtime

import cudart_py as cuda
from cudart_py import errors

# Statuses that name nothing a caller could act on by class; a new status shows up as a difference.
PLAIN = {
    "CUDA_ERROR_PROFILER_DISABLED",
    "CUDA_ERROR_PROFILER_NOT_INITIALIZED",
    "CUDA_ERROR_PROFILER_ALREADY_STARTED",
    "CUDA_ERROR_PROFILER_ALREADY_STOPPED",
    "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
    "CUDA_ERROR_MULTICAST_RESOURCE_FULL",
    "CUDA_ERROR_MAP_FAILED",
    "CUDA_ERROR_UNMAP_FAILED",
    "CUDA_ERROR_ARRAY_IS_MAPPED",
    "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT",
    "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION",
    "CUDA_ERROR_OPERATING_SYSTEM",
    "CUDA_ERROR_ILLEGAL_STATE",
    "CUDA_ERROR_LOSSY_QUERY",
    "CUDA_ERROR_MPS_CONNECTION_FAILED",
    "CUDA_ERROR_MPS_RPC_FAILURE",
    "CUDA_ERROR_MPS_SERVER_NOT_READY",
    "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
    "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED",
    "CUDA_ERROR_CDP_NOT_SUPPORTED",
    "CUDA_ERROR_CDP_VERSION_MISMATCH",
    "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
    "CUDA_ERROR_KEY_ROTATION",
    "CUDA_ERROR_STREAM_DETACHED",
    "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE",
    "CUDA_ERROR_FABRIC_NOT_READY",
    "CUDA_ERROR_UNKNOWN",
}


def test_every_driver_status_is_mapped_or_listed_as_plain():
    names = set(driver.CUresult.__members__) - {"CUDA_SUCCESS"}
    assert names - set(errors._BY_STATUS) - PLAIN == set()


def test_every_mapped_status_is_one_of_the_newest_bindings_or_of_none_twice():
    assert set(errors._BY_STATUS).isdisjoint(PLAIN)


@pytest.mark.parametrize("name", sorted(driver.CUresult.__members__))
def test_every_status_makes_an_exception_with_its_name(name):
    status = driver.CUresult.__members__[name]
    if not status:
        assert cuda.check((status,)) is None
        return
    with pytest.raises(cuda.CudaError, match=name) as caught:
        cuda.check((status,))
    assert caught.value.status is status
    assert type(caught.value) is errors._BY_STATUS.get(name, cuda.CudaError)


def test_check_returns_nothing_a_value_or_a_tuple():
    ok = driver.CUresult.CUDA_SUCCESS
    assert cuda.check((ok,)) is None
    assert cuda.check((ok, 5)) == 5
    assert cuda.check((ok, 5, 6)) == (5, 6)


def test_check_takes_the_runtime_and_nvrtc():
    with pytest.raises(cuda.OutOfMemoryError, match="cudaErrorMemoryAllocation"):
        cuda.check((runtime.cudaError_t.cudaErrorMemoryAllocation,))
    with pytest.raises(cuda.CudaError, match="cudaErrorMissingConfiguration"):
        cuda.check((runtime.cudaError_t.cudaErrorMissingConfiguration,))
    with pytest.raises(cuda.NvrtcError, match="NVRTC_ERROR_INVALID_INPUT"):
        cuda.check((nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_INPUT,))


def test_errors_are_builtins_where_natural():
    assert issubclass(cuda.OutOfMemoryError, MemoryError)
    assert issubclass(cuda.InvalidValueError, ValueError)
    assert issubclass(cuda.NotFoundError, LookupError)
    assert issubclass(cuda.NotSupportedError, NotImplementedError)


def test_the_tree_drawn_in_the_module_is_the_tree():
    drawn = {line.split("── ")[1].split()[0] for line in errors.__doc__.splitlines() if "── " in line}
    classes = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, cuda.CudaError)}
    assert drawn == classes - {"CudaError"}


def test_a_failed_call_names_itself(device):
    from cudart_py import _driver

    with pytest.raises(cuda.CudaError) as caught:
        _driver.api.cuMemFree(12345)
    assert caught.value.call == "cuMemFree"
    assert "cuMemFree" in str(caught.value)
