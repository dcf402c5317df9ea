"""The one unwrap: every status has its exception, and every result its value."""

from __future__ import annotations

import pytest
from cuda.bindings import driver, nvrtc, runtime

import cudart_py as cuda
from cudart_py.driver import seam, unwrap

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

# Each class and the statuses that it stands for, written down here too: a status that moves is noticed.
CLASSES = {
    "InvalidValueError": """
        INVALID_VALUE INVALID_DEVICE INVALID_RESOURCE_TYPE INVALID_RESOURCE_CONFIGURATION
        HOST_MEMORY_ALREADY_REGISTERED HOST_MEMORY_NOT_REGISTERED ALREADY_MAPPED ALREADY_ACQUIRED NOT_MAPPED
        NOT_MAPPED_AS_ARRAY NOT_MAPPED_AS_POINTER
    """,
    "InvalidHandleError": """
        INVALID_HANDLE
    """,
    "OutOfMemoryError": """
        OUT_OF_MEMORY
    """,
    "NoDeviceError": """
        NOT_INITIALIZED DEINITIALIZED STUB_LIBRARY DEVICE_UNAVAILABLE NO_DEVICE DEVICE_NOT_LICENSED SYSTEM_NOT_READY
        SYSTEM_DRIVER_MISMATCH COMPAT_NOT_SUPPORTED_ON_DEVICE
    """,
    "InvalidContextError": """
        INVALID_CONTEXT CONTEXT_ALREADY_CURRENT CONTEXT_ALREADY_IN_USE CONTEXT_IS_DESTROYED PRIMARY_CONTEXT_ACTIVE
    """,
    "NotSupportedError": """
        NOT_SUPPORTED NOT_PERMITTED UNSUPPORTED_LIMIT UNSUPPORTED_DEVSIDE_SYNC UNSUPPORTED_EXEC_AFFINITY
    """,
    "NotFoundError": """
        NOT_FOUND FILE_NOT_FOUND SHARED_OBJECT_SYMBOL_NOT_FOUND
    """,
    "ImageError": """
        INVALID_IMAGE INVALID_SOURCE INVALID_PTX NO_BINARY_FOR_GPU UNSUPPORTED_PTX_VERSION JIT_COMPILER_NOT_FOUND
        JIT_COMPILATION_DISABLED SHARED_OBJECT_INIT_FAILED FUNCTION_NOT_LOADED
    """,
    "NotReadyError": """
        NOT_READY
    """,
    "CaptureError": """
        STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_MERGE STREAM_CAPTURE_UNMATCHED
        STREAM_CAPTURE_UNJOINED STREAM_CAPTURE_ISOLATION STREAM_CAPTURE_IMPLICIT STREAM_CAPTURE_WRONG_THREAD
        CAPTURED_EVENT
    """,
    "PeerAccessError": """
        PEER_ACCESS_UNSUPPORTED PEER_ACCESS_ALREADY_ENABLED PEER_ACCESS_NOT_ENABLED TOO_MANY_PEERS
    """,
    "LaunchError": """
        LAUNCH_OUT_OF_RESOURCES LAUNCH_INCOMPATIBLE_TEXTURING COOPERATIVE_LAUNCH_TOO_LARGE INVALID_CLUSTER_SIZE
    """,
    "IllegalAddressError": """
        ILLEGAL_ADDRESS
    """,
    "MisalignedAddressError": """
        MISALIGNED_ADDRESS
    """,
    "KernelAssertError": """
        ASSERT
    """,
    "KernelTimeoutError": """
        LAUNCH_TIMEOUT TIMEOUT
    """,
    "KernelFaultError": """
        LAUNCH_FAILED ILLEGAL_INSTRUCTION INVALID_ADDRESS_SPACE INVALID_PC HARDWARE_STACK_ERROR ECC_UNCORRECTABLE
        NVLINK_UNCORRECTABLE CONTAINED TENSOR_MEMORY_LEAK MPS_CLIENT_TERMINATED EXTERNAL_DEVICE
    """,
}


def test_every_driver_status_is_mapped_or_listed_as_plain():
    names = set(driver.CUresult.__members__) - {"CUDA_SUCCESS"}
    assert names - set(unwrap._BY_STATUS) - PLAIN == set()


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_stands_for_its_statuses(kind):
    found = {name.removeprefix("CUDA_ERROR_") for name, made in unwrap._BY_STATUS.items() if made.__name__ == kind}
    assert found == set(CLASSES[kind].split())


def test_no_status_has_a_class_of_which_nothing_is_written():
    assert {kind.__name__ for kind in unwrap._BY_STATUS.values()} == set(CLASSES)


def test_every_mapped_status_is_one_of_the_newest_bindings_or_of_none_twice():
    assert set(unwrap._BY_STATUS).isdisjoint(PLAIN)


@pytest.mark.parametrize("name", sorted(driver.CUresult.__members__))
def test_every_status_makes_an_exception_with_its_name(name):
    status = driver.CUresult.__members__[name]
    if not status:
        assert cuda.check((status,)) is None
        return
    with pytest.raises(cuda.CudaError, match=name) as caught:
        cuda.check((status,))
    assert caught.value.status is status
    assert type(caught.value) is unwrap._BY_STATUS.get(name, cuda.CudaError)


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


def test_a_failed_call_names_itself(device):
    with pytest.raises(cuda.CudaError) as caught:
        seam.api.cuMemFree(12345)
    assert caught.value.call == "cuMemFree"
    assert "cuMemFree" in str(caught.value)
