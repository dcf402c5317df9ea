"""The function that unwraps driver results: every status raises its exception, every success returns its value."""

import pytest
from cuda.bindings import driver, nvrtc, runtime

import cudart_py as cuda
from cudart_py.driver import calls

# Each exception class and its statuses, repeated here so that the test fails if a status moves to another class.
CLASSES = {
    "InvalidValueError": """
        INVALID_VALUE INVALID_DEVICE INVALID_RESOURCE_TYPE INVALID_RESOURCE_CONFIGURATION
        HOST_MEMORY_ALREADY_REGISTERED HOST_MEMORY_NOT_REGISTERED ALREADY_MAPPED ALREADY_ACQUIRED NOT_MAPPED
        NOT_MAPPED_AS_ARRAY NOT_MAPPED_AS_POINTER
    """,
    "InvalidHandleError": "INVALID_HANDLE",
    "OutOfMemoryError": "OUT_OF_MEMORY",
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
    "NotFoundError": "NOT_FOUND FILE_NOT_FOUND SHARED_OBJECT_SYMBOL_NOT_FOUND",
    "ImageError": """
        INVALID_IMAGE INVALID_SOURCE INVALID_PTX NO_BINARY_FOR_GPU UNSUPPORTED_PTX_VERSION JIT_COMPILER_NOT_FOUND
        JIT_COMPILATION_DISABLED SHARED_OBJECT_INIT_FAILED FUNCTION_NOT_LOADED
    """,
    "NotReadyError": "NOT_READY",
    "CaptureError": """
        STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_MERGE STREAM_CAPTURE_UNMATCHED
        STREAM_CAPTURE_UNJOINED STREAM_CAPTURE_ISOLATION STREAM_CAPTURE_IMPLICIT STREAM_CAPTURE_WRONG_THREAD
        CAPTURED_EVENT
    """,
    "PeerAccessError": "PEER_ACCESS_UNSUPPORTED PEER_ACCESS_ALREADY_ENABLED PEER_ACCESS_NOT_ENABLED TOO_MANY_PEERS",
    "LaunchError": """
        LAUNCH_OUT_OF_RESOURCES LAUNCH_INCOMPATIBLE_TEXTURING COOPERATIVE_LAUNCH_TOO_LARGE INVALID_CLUSTER_SIZE
    """,
    "IllegalAddressError": "ILLEGAL_ADDRESS",
    "MisalignedAddressError": "MISALIGNED_ADDRESS",
    "KernelAssertError": "ASSERT",
    "KernelTimeoutError": "LAUNCH_TIMEOUT TIMEOUT",
    "KernelFaultError": """
        LAUNCH_FAILED ILLEGAL_INSTRUCTION INVALID_ADDRESS_SPACE INVALID_PC HARDWARE_STACK_ERROR ECC_UNCORRECTABLE
        NVLINK_UNCORRECTABLE CONTAINED TENSOR_MEMORY_LEAK MPS_CLIENT_TERMINATED EXTERNAL_DEVICE
    """,
    # Statuses that a caller has no reason to catch by class.
    "CudaError": """
        PROFILER_DISABLED PROFILER_NOT_INITIALIZED PROFILER_ALREADY_STARTED PROFILER_ALREADY_STOPPED
        CALL_REQUIRES_NEWER_DRIVER MULTICAST_RESOURCE_FULL MAP_FAILED UNMAP_FAILED ARRAY_IS_MAPPED
        INVALID_GRAPHICS_CONTEXT INSUFFICIENT_LOADER_VERSION OPERATING_SYSTEM ILLEGAL_STATE LOSSY_QUERY
        MPS_CONNECTION_FAILED MPS_RPC_FAILURE MPS_SERVER_NOT_READY MPS_MAX_CLIENTS_REACHED MPS_MAX_CONNECTIONS_REACHED
        CDP_NOT_SUPPORTED CDP_VERSION_MISMATCH GRAPH_EXEC_UPDATE_FAILURE KEY_ROTATION STREAM_DETACHED
        GRAPH_RECAPTURE_FAILURE FABRIC_NOT_READY UNKNOWN
    """,
}


EXPECTED = {f"CUDA_ERROR_{status}": kind for kind, statuses in CLASSES.items() for status in statuses.split()}


def test_ptx_that_is_too_new_for_the_driver_has_a_remedy():
    with pytest.raises(cuda.errors.ImageError, match=r"load machine code, .* or update the driver"):
        cuda.check((driver.CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION,))


@pytest.mark.parametrize("name", sorted(set(driver.CUresult.__members__) - {"CUDA_SUCCESS"}))
def test_every_status_makes_an_exception_with_its_name(name):
    status = driver.CUresult.__members__[name]
    with pytest.raises(cuda.CudaError, match=name) as caught:
        cuda.check((status,))
    assert caught.value.status is status
    assert type(caught.value).__name__ == EXPECTED[name]


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
    with pytest.raises(cuda.errors.NvrtcError, match="NVRTC_ERROR_INVALID_INPUT"):
        cuda.check((nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_INPUT,))


def test_a_failed_call_names_itself(device):
    with pytest.raises(cuda.CudaError) as caught:
        calls.api.cuMemFree(12345)
    assert caught.value.call == "cuMemFree"
    assert "cuMemFree" in str(caught.value)
