"""Devices: cards like an H200 that exist only here, and what they say of themselves.

`CUDART_PY_SIMULATOR_DEVICES` is how many there are (default 1), `CUDART_PY_SIMULATOR_MEMORY` the bytes of memory
of each (default 16 GiB).
"""

from __future__ import annotations

import ctypes
import os
import uuid
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUdevice, CUdevice_attribute, CUdevice_P2PAttribute, CUresult, CUuuid

from .errors import StatusError, entry, number

if TYPE_CHECKING:
    from .contexts import Context
    from .pools import Pool

__all__ = [
    "ATTRIBUTES",
    "Device",
    "attribute",
    "cuDeviceCanAccessPeer",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetByPCIBusId",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetP2PAttribute",
    "cuDeviceGetPCIBusId",
    "cuDeviceGetUuid",
    "cuDeviceTotalMem",
    "cuDriverGetVersion",
    "cuInit",
    "find_device",
    "require_initialised",
    "whole_number",
]

DRIVER_VERSION = 13000
NAME = b"cudart-py simulator (sm_90)"
DEVICES_VARIABLE = "CUDART_PY_SIMULATOR_DEVICES"
MEMORY_VARIABLE = "CUDART_PY_SIMULATOR_MEMORY"
_MOST_DEVICES = 64

# What an H200 answers, by the attribute's name without its prefix; what is left out is 0. What this driver has no
# function for (interprocess handles, virtual memory, stream memory operations, CUDA arrays) is 0 as well.
_ANSWERS = {
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64,
    "MAX_GRID_DIM_X": 2**31 - 1,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
    "TOTAL_CONSTANT_MEMORY": 64 << 10,
    "WARP_SIZE": 32,
    "MAX_PITCH": 2**31 - 1,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "CLOCK_RATE": 1_980_000,
    "TEXTURE_ALIGNMENT": 512,
    "GPU_OVERLAP": 1,
    "MULTIPROCESSOR_COUNT": 132,
    "CAN_MAP_HOST_MEMORY": 1,
    "MAXIMUM_TEXTURE1D_WIDTH": 131072,
    "MAXIMUM_TEXTURE2D_WIDTH": 131072,
    "MAXIMUM_TEXTURE2D_HEIGHT": 65536,
    "MAXIMUM_TEXTURE3D_WIDTH": 16384,
    "MAXIMUM_TEXTURE3D_HEIGHT": 16384,
    "MAXIMUM_TEXTURE3D_DEPTH": 16384,
    "MAXIMUM_TEXTURE2D_LAYERED_WIDTH": 32768,
    "MAXIMUM_TEXTURE2D_LAYERED_HEIGHT": 32768,
    "MAXIMUM_TEXTURE2D_LAYERED_LAYERS": 2048,
    "SURFACE_ALIGNMENT": 512,
    "CONCURRENT_KERNELS": 1,
    "ECC_ENABLED": 1,
    "MEMORY_CLOCK_RATE": 3_201_000,
    "GLOBAL_MEMORY_BUS_WIDTH": 6144,
    "L2_CACHE_SIZE": 60 << 20,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "ASYNC_ENGINE_COUNT": 3,
    "UNIFIED_ADDRESSING": 1,
    "MAXIMUM_TEXTURE1D_LAYERED_WIDTH": 32768,
    "MAXIMUM_TEXTURE1D_LAYERED_LAYERS": 2048,
    "MAXIMUM_TEXTURE2D_GATHER_WIDTH": 32768,
    "MAXIMUM_TEXTURE2D_GATHER_HEIGHT": 32768,
    "MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE": 8192,
    "MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE": 8192,
    "MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE": 32768,
    "TEXTURE_PITCH_ALIGNMENT": 32,
    "MAXIMUM_TEXTURECUBEMAP_WIDTH": 32768,
    "MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH": 32768,
    "MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS": 2046,
    "MAXIMUM_SURFACE1D_WIDTH": 32768,
    "MAXIMUM_SURFACE2D_WIDTH": 131072,
    "MAXIMUM_SURFACE2D_HEIGHT": 65536,
    "MAXIMUM_SURFACE3D_WIDTH": 16384,
    "MAXIMUM_SURFACE3D_HEIGHT": 16384,
    "MAXIMUM_SURFACE3D_DEPTH": 16384,
    "MAXIMUM_SURFACE1D_LAYERED_WIDTH": 32768,
    "MAXIMUM_SURFACE1D_LAYERED_LAYERS": 2048,
    "MAXIMUM_SURFACE2D_LAYERED_WIDTH": 32768,
    "MAXIMUM_SURFACE2D_LAYERED_HEIGHT": 32768,
    "MAXIMUM_SURFACE2D_LAYERED_LAYERS": 2048,
    "MAXIMUM_SURFACECUBEMAP_WIDTH": 32768,
    "MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH": 32768,
    "MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS": 2046,
    "MAXIMUM_TEXTURE1D_LINEAR_WIDTH": 2**28,
    "MAXIMUM_TEXTURE2D_LINEAR_WIDTH": 131072,
    "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT": 65000,
    "MAXIMUM_TEXTURE2D_LINEAR_PITCH": 2097120,
    "MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH": 32768,
    "MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT": 32768,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH": 32768,
    "STREAM_PRIORITIES_SUPPORTED": 1,
    "GLOBAL_L1_CACHE_SUPPORTED": 1,
    "LOCAL_L1_CACHE_SUPPORTED": 1,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "MANAGED_MEMORY": 1,
    "HOST_NATIVE_ATOMIC_SUPPORTED": 0,
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": 2,
    "CONCURRENT_MANAGED_ACCESS": 1,
    "COMPUTE_PREEMPTION_SUPPORTED": 1,
    "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM": 1,
    "COOPERATIVE_LAUNCH": 1,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10,
    "HOST_REGISTER_SUPPORTED": 1,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
    "MAX_PERSISTING_L2_CACHE_SIZE": 37_748_736,
    "MAX_ACCESS_POLICY_WINDOW_SIZE": 128 << 20,
    "RESERVED_SHARED_MEMORY_PER_BLOCK": 1024,
    "READ_ONLY_HOST_REGISTER_SUPPORTED": 0,
    "MEMORY_POOLS_SUPPORTED": 1,
    "CLUSTER_LAUNCH": 1,
    "MEM_SYNC_DOMAIN_COUNT": 4,
    "UNIFIED_FUNCTION_POINTERS": 1,
    "NUMA_ID": -1,
    "HOST_NUMA_ID": -1,
}
_PREFIX = "CU_DEVICE_ATTRIBUTE_"


def _by_number() -> dict[int, int]:
    # Names of the enumeration share numbers; the answer may stand under any of them.
    answers = dict.fromkeys((member.value for member in CUdevice_attribute.__members__.values()), 0)
    for name, value in _ANSWERS.items():
        answers[getattr(CUdevice_attribute, _PREFIX + name).value] = value
    del answers[CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX.value]
    return answers


ATTRIBUTES = _by_number()


def attribute(name: str) -> int:
    """Return an attribute that every device has the same, by its name without the prefix."""
    return _ANSWERS[name]


class Device:
    """One card: its memory's count, its primary context, its pools."""

    def __init__(self, ordinal: int, total: int) -> None:
        self.ordinal = ordinal
        self.total = total
        self.used = 0
        self.primary: Context | None = None
        self.default_pool: Pool | None = None
        self.current_pool: Pool | None = None
        self.bus = ordinal + 1
        self.uuid = uuid.uuid5(uuid.NAMESPACE_URL, f"cudart-py simulator device {ordinal}").bytes

    def take(self, size: int) -> None:
        """Count bytes as used; raise CUDA_ERROR_OUT_OF_MEMORY when there are not so many."""
        if self.used + size > self.total:
            raise StatusError(CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        self.used += size

    def give(self, size: int) -> None:
        """Count bytes as free again."""
        self.used -= size

    def answer(self, attrib: int) -> int:
        """Return the value of an attribute by its number, or raise CUDA_ERROR_INVALID_VALUE."""
        try:
            value = ATTRIBUTES[attrib]
        except KeyError:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None
        if attrib == CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID.value:
            return self.bus
        if attrib == CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID.value:
            return self.ordinal
        return value

    @property
    def bus_id(self) -> str:
        """Return the address on the bus that the card would have."""
        return f"0000:{self.bus:02X}:00.0"


class _State:
    """What cuInit makes."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.initialised = False
        self.forked = False


state = _State()


def _after_fork() -> None:
    # A child of a process with a driver has none, as with the real one.
    state.initialised = False
    state.forked = True


def whole_number(variable: str, default: int, least: int, most: int) -> int:
    """Return the number in an environment variable, or raise ValueError that names it."""
    text = os.environ.get(variable)
    if not text:
        return default
    try:
        value = int(text, 0)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ValueError(f"{variable}={text!r} is not a whole number from {least} to {most}")
    return value


@entry()
def cuInit(Flags: Any) -> None:
    """Make the devices that the environment names, once, as cuInit."""
    if number(Flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if state.forked:
        raise StatusError(CUresult.CUDA_ERROR_NOT_INITIALIZED)
    if state.initialised:
        return
    count = whole_number(DEVICES_VARIABLE, 1, 0, _MOST_DEVICES)
    total = whole_number(MEMORY_VARIABLE, 16 << 30, 1 << 20, 1 << 40)
    if not count:
        raise StatusError(CUresult.CUDA_ERROR_NO_DEVICE)
    state.devices = [Device(ordinal, total) for ordinal in range(count)]
    state.initialised = True
    os.register_at_fork(after_in_child=_after_fork)


def require_initialised() -> None:
    """Raise CUDA_ERROR_NOT_INITIALIZED before cuInit, and in a forked child."""
    if not state.initialised:
        raise StatusError(CUresult.CUDA_ERROR_NOT_INITIALIZED)


def find_device(dev: Any) -> Device:
    """Return the device of a CUdevice or ordinal, or raise CUDA_ERROR_INVALID_DEVICE."""
    require_initialised()
    ordinal = number(dev)
    if not 0 <= ordinal < len(state.devices):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_DEVICE)
    return state.devices[ordinal]


@entry(values=1)
def cuDriverGetVersion() -> int:
    """Return the CUDA version that the driver stands for, as cuDriverGetVersion."""
    return DRIVER_VERSION


@entry(values=1)
def cuDeviceGetCount() -> int:
    """Return the number of devices, as cuDeviceGetCount."""
    require_initialised()
    return len(state.devices)


@entry(values=1)
def cuDeviceGet(ordinal: Any) -> Any:
    """Return the device with an ordinal, as cuDeviceGet."""
    return CUdevice(find_device(ordinal).ordinal)


@entry(values=1)
def cuDeviceGetName(length: Any, dev: Any) -> bytes:
    """Return the device's name, cut to `length` with the final zero, as cuDeviceGetName."""
    find_device(dev)
    return _cut(NAME, number(length))


def _cut(text: bytes, length: int) -> bytes:
    # The bindings hand the whole buffer back, zeros after the text.
    if length <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return text[: length - 1].ljust(length, b"\0")


@entry(values=1)
def cuDeviceGetUuid(dev: Any) -> Any:
    """Return the device's 16 identifying bytes, as cuDeviceGetUuid."""
    device = find_device(dev)
    result = CUuuid()
    # The bindings' own attribute cannot be written in every version.
    ctypes.memmove(result.getPtr(), bytes(device.uuid), 16)
    return result


@entry(values=1)
def cuDeviceGetAttribute(attrib: Any, dev: Any) -> int:
    """Return an attribute of a device, as cuDeviceGetAttribute."""
    return find_device(dev).answer(number(attrib))


@entry(values=1)
def cuDeviceTotalMem(dev: Any) -> int:
    """Return the bytes of memory of a device, as cuDeviceTotalMem."""
    return find_device(dev).total


@entry(values=1)
def cuDeviceGetPCIBusId(length: Any, dev: Any) -> bytes:
    """Return the device's place on the bus, as cuDeviceGetPCIBusId."""
    device = find_device(dev)
    if number(length) <= len(device.bus_id):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return _cut(device.bus_id.encode(), number(length))


@entry(values=1)
def cuDeviceGetByPCIBusId(pciBusId: Any) -> Any:
    """Return the device at a place on the bus, as cuDeviceGetByPCIBusId."""
    require_initialised()
    text = pciBusId.split(b"\0")[0].decode("ascii", "replace").upper()
    parts = text.split(":")
    wanted = text if len(parts) == 3 else f"0000:{text}"
    for device in state.devices:
        if wanted in (device.bus_id, device.bus_id.removesuffix(".0")):
            return CUdevice(device.ordinal)
    raise StatusError(CUresult.CUDA_ERROR_INVALID_DEVICE)


@entry(values=1)
def cuDeviceCanAccessPeer(dev: Any, peerDev: Any) -> int:
    """Return 1 for two different devices, as cuDeviceCanAccessPeer."""
    return int(find_device(dev) is not find_device(peerDev))


@entry(values=1)
def cuDeviceGetP2PAttribute(attrib: Any, srcDevice: Any, dstDevice: Any) -> int:
    """Return an attribute of the link between two devices, as cuDeviceGetP2PAttribute."""
    source, destination = find_device(srcDevice), find_device(dstDevice)
    if source is destination:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_DEVICE)
    names = CUdevice_P2PAttribute
    answers = {
        names.CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK.value: 0,
        names.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED.value: 1,
        names.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED.value: 1,
        names.CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED.value: 0,
    }
    try:
        return answers[number(attrib)]
    except KeyError:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None
