"""Devices: which one a thread uses, and their properties."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from cuda.bindings import runtime as bindings
from cuda.bindings.driver import CUdevice_attribute

from ..foreign_memory import read_array, write
from .calls import (
    INVALID_DEVICE,
    INVALID_VALUE,
    SUCCESS,
    Out,
    driver,
    forget_contexts,
    primary_context,
    state,
    use_device,
)
from .registration import forget_context

_RUNTIME_VERSION = 13000
_NAME_BYTES = 256
# Members of cudaDeviceProp whose attributes have other names.
_ATTRIBUTES = {
    "ECCEnabled": "ECC_ENABLED",
    "accessPolicyMaxWindowSize": "MAX_ACCESS_POLICY_WINDOW_SIZE",
    "asyncEngineCount": "ASYNC_ENGINE_COUNT",
    "deferredMappingCudaArraySupported": "DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED",
    "globalL1CacheSupported": "GLOBAL_L1_CACHE_SUPPORTED",
    "isMultiGpuBoard": "MULTI_GPU_BOARD",
    "l2CacheSize": "L2_CACHE_SIZE",
    "localL1CacheSupported": "LOCAL_L1_CACHE_SUPPORTED",
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "maxBlocksPerMultiProcessor": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "maxThreadsPerMultiProcessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "memPitch": "MAX_PITCH",
    "memoryBusWidth": "GLOBAL_MEMORY_BUS_WIDTH",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "multiGpuBoardGroupID": "MULTI_GPU_BOARD_GROUP_ID",
    "multiProcessorCount": "MULTIPROCESSOR_COUNT",
    "pciBusID": "PCI_BUS_ID",
    "pciDeviceID": "PCI_DEVICE_ID",
    "pciDomainID": "PCI_DOMAIN_ID",
    "persistingL2CacheMaxSize": "MAX_PERSISTING_L2_CACHE_SIZE",
    "regsPerBlock": "MAX_REGISTERS_PER_BLOCK",
    "regsPerMultiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "reservedSharedMemPerBlock": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "sharedMemPerBlock": "MAX_SHARED_MEMORY_PER_BLOCK",
    "sharedMemPerBlockOptin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "sharedMemPerMultiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "totalConstMem": "TOTAL_CONSTANT_MEMORY",
    "streamPrioritiesSupported": "STREAM_PRIORITIES_SUPPORTED",
}
_EXTENTS = {
    "maxThreadsDim": ("MAX_BLOCK_DIM_X", "MAX_BLOCK_DIM_Y", "MAX_BLOCK_DIM_Z"),
    "maxGridSize": ("MAX_GRID_DIM_X", "MAX_GRID_DIM_Y", "MAX_GRID_DIM_Z"),
    "maxTexture2D": ("MAXIMUM_TEXTURE2D_WIDTH", "MAXIMUM_TEXTURE2D_HEIGHT"),
    "maxTexture3D": ("MAXIMUM_TEXTURE3D_WIDTH", "MAXIMUM_TEXTURE3D_HEIGHT", "MAXIMUM_TEXTURE3D_DEPTH"),
    "maxSurface2D": ("MAXIMUM_SURFACE2D_WIDTH", "MAXIMUM_SURFACE2D_HEIGHT"),
    "maxSurface3D": ("MAXIMUM_SURFACE3D_WIDTH", "MAXIMUM_SURFACE3D_HEIGHT", "MAXIMUM_SURFACE3D_DEPTH"),
}


def device_count(count: int) -> int:
    """Write the number of devices (cudaGetDeviceCount)."""
    return driver("cuInit")(0) or driver("cuDeviceGetCount")(count)


def set_device(ordinal: int) -> int:
    """Use a device in this thread (cudaSetDevice)."""
    return _known(ordinal) or use_device(ordinal)


def _known(ordinal: int) -> int:
    count = Out(ctypes.c_int)
    status = device_count(count.address)
    if status:
        return status
    return SUCCESS if 0 <= ordinal < count.value else INVALID_DEVICE


def set_valid_devices(ordinals: int, count: int) -> int:
    """Use the first device of a list in a thread that has not chosen one (cudaSetValidDevices).

    All devices can be used, so no other device of the list is ever tried.
    """
    devices = read_array(ordinals, count, ctypes.c_int) if count > 0 else [0]
    status = next(filter(None, map(_known, devices)), SUCCESS)
    if not status and not devices:
        status = INVALID_VALUE
    if not status:
        state.device = devices[0]
    return status


def get_device(ordinal: int) -> int:
    """Write the ordinal of the device that this thread uses (cudaGetDevice)."""
    current = Out(ctypes.c_int)
    if driver("cuCtxGetDevice")(current.address):
        write(ordinal, state.device, ctypes.c_int)
    else:
        write(ordinal, current.value, ctypes.c_int)
    return SUCCESS


def init_device(ordinal: int, _device_flags: int, _flags: int) -> int:
    """Create the device's context without using it (cudaInitDevice)."""
    return _known(ordinal) or primary_context(ordinal, Out())


def reset_device() -> int:
    """End the device's primary context (cudaDeviceReset)."""
    context = Out()
    ordinal = Out(ctypes.c_int)
    status = driver("cuCtxGetCurrent")(context.address) or driver("cuCtxGetDevice")(ordinal.address)
    status = status or driver("cuDevicePrimaryCtxReset_v2")(ordinal.value)
    if not status:
        forget_contexts(ordinal.value)
        forget_context(context.value)
        status = driver("cuCtxSetCurrent")(0)
    return status


def set_device_flags(flags: int) -> int:
    """Set the flags of the device's context (cudaSetDeviceFlags)."""
    return driver("cuDevicePrimaryCtxSetFlags_v2")(state.device, flags)


def device_flags(flags: int) -> int:
    """Write the flags of the device's context (cudaGetDeviceFlags)."""
    return driver("cuCtxGetFlags")(flags)


def enable_peer_access(peer: int, flags: int) -> int:
    """Let this device's kernels access another device's memory (cudaDeviceEnablePeerAccess)."""
    context = Out()
    return _known(peer) or primary_context(peer, context) or driver("cuCtxEnablePeerAccess")(context.value, flags)


def disable_peer_access(peer: int) -> int:
    """Revoke that access (cudaDeviceDisablePeerAccess)."""
    context = Out()
    return _known(peer) or primary_context(peer, context) or driver("cuCtxDisablePeerAccess")(context.value)


def choose_device(ordinal: int, _properties: int) -> int:
    """Choose the first device, since all are alike (cudaChooseDevice)."""
    write(ordinal, 0, ctypes.c_int)
    return SUCCESS


def runtime_version(version: int) -> int:
    """Write the version of the runtime (cudaRuntimeGetVersion)."""
    if not version:
        return INVALID_VALUE
    write(version, _RUNTIME_VERSION, ctypes.c_int)
    return SUCCESS


def device_properties(properties: int, ordinal: int) -> int:
    """Write all properties of a device (cudaGetDeviceProperties)."""
    if not properties:
        return INVALID_VALUE
    status = _known(ordinal)
    if status:
        return status
    # Written in place: the bindings' object for the address has the structure's members.
    target = bindings.cudaDeviceProp(_ptr=properties)
    for member in dir(type(target)):
        if member in _EXTENTS:
            setattr(target, member, [_attribute(name, ordinal) for name in _EXTENTS[member]])
        elif not member.startswith("_") and isinstance(getattr(target, member), int):
            setattr(target, member, _attribute(_ATTRIBUTES.get(member) or _attribute_name(member), ordinal))
    name = ctypes.create_string_buffer(_NAME_BYTES)
    size = Out()
    status = driver("cuDeviceGetName")(ctypes.addressof(name), _NAME_BYTES, ordinal) or driver("cuDeviceTotalMem_v2")(
        size.address, ordinal
    )
    target.name = name.raw
    target.totalGlobalMem = size.value
    return status or driver("cuDeviceGetUuid_v2")(target.uuid.getPtr(), ordinal)


def _attribute_name(member: str) -> str:
    """Return the driver's spelling of a member's name, such as WARP_SIZE for warpSize."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", member).upper()


def _attribute(name: str, ordinal: int) -> int:
    """Return an attribute of a device, 0 if the driver has none by that name."""
    attribute = CUdevice_attribute.__members__.get(f"CU_DEVICE_ATTRIBUTE_{name}")
    value = Out(ctypes.c_int)
    if attribute is not None:
        driver("cuDeviceGetAttribute")(value.address, attribute.value, ordinal)
    return int(value.value)


FUNCTIONS: dict[str, Any] = {
    "cudaChooseDevice": choose_device,
    "cudaDeviceDisablePeerAccess": disable_peer_access,
    "cudaDeviceEnablePeerAccess": enable_peer_access,
    "cudaDeviceReset": reset_device,
    "cudaGetDevice": get_device,
    "cudaGetDeviceCount": device_count,
    "cudaGetDeviceFlags": device_flags,
    "cudaGetDeviceProperties": device_properties,
    "cudaInitDevice": init_device,
    "cudaRuntimeGetVersion": runtime_version,
    "cudaSetDevice": set_device,
    "cudaSetDeviceFlags": set_device_flags,
    "cudaSetValidDevices": set_valid_devices,
}
