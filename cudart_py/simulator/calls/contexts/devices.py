"""Calls that concern devices: their number, and their properties.

`CUDART_PY_SIMULATOR_DEVICES` is the number of devices (default 1, at most 64), and `CUDART_PY_SIMULATOR_MEMORY` is the
memory of each in bytes (default 16 GiB).
"""

from __future__ import annotations

import ctypes
import os
import re
from typing import Any

from cuda.bindings.driver import CUdevice, CUdevice_P2PAttribute, CUresult, CUuuid

from ....host.environment import refuse_old_names, whole_number
from ...checks.findings import mode
from ...state.arguments import number
from ...state.attributes import DRIVER_VERSION, attribute
from ...state.devices import Device, find_device, state
from ...state.errors import StatusError
from ...state.memory.records.record_limit import limit
from ..entry import entry
from ..launches.launches import engine, launch_limits, threads
from ..memory.cuda_arrays import FORMATS, linear_width

NAME = b"cudart-py simulator (sm_90)"
DEVICES_VARIABLE = "CUDART_PY_SIMULATOR_DEVICES"
MEMORY_VARIABLE = "CUDART_PY_SIMULATOR_MEMORY"
_MOST_DEVICES = 64
# Either the domain or the function may be missing. As on an H200, further characters are ignored.
_PCI_BUS_ID = re.compile(
    rb"(?:(?P<domain>[\da-f]+):)?(?P<bus>[\da-f]+):(?P<device>[\da-f]+)(?:\.(?P<function>\d))?", re.I
)


def _after_fork() -> None:
    # A forked child can't use the driver of its parent, as with the real driver.
    state.initialised = False
    state.forked = True


@entry(before_init=True)
def cuInit(Flags: Any) -> None:
    """Create the devices that the environment specifies, once (cuInit).

    Raises ValueError for an invalid value of one of the simulator's environment variables.
    """
    if number(Flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if state.forked:
        raise StatusError(CUresult.CUDA_ERROR_NOT_INITIALIZED)
    if state.initialised:
        return
    # Check the environment variables that launches read before anything begins.
    refuse_old_names()
    launch_limits()
    engine()
    threads()
    mode()
    limit.most()
    count = whole_number(DEVICES_VARIABLE, 1, 0, _MOST_DEVICES)
    total = whole_number(MEMORY_VARIABLE, 16 << 30, 1 << 20, 1 << 40)
    if not count:
        raise StatusError(CUresult.CUDA_ERROR_NO_DEVICE)
    state.devices = [Device(ordinal, total) for ordinal in range(count)]
    state.initialised = True
    os.register_at_fork(after_in_child=_after_fork)


@entry(values=1, before_init=True)
def cuDriverGetVersion() -> int:
    """Return the CUDA version that the driver supports (cuDriverGetVersion)."""
    return DRIVER_VERSION


@entry(values=1)
def cuDeviceGetCount() -> int:
    """Return the number of devices (cuDeviceGetCount)."""
    return len(state.devices)


@entry(values=1)
def cuDeviceGet(ordinal: Any) -> Any:
    """Return the device with an ordinal (cuDeviceGet)."""
    return CUdevice(find_device(ordinal).ordinal)


@entry(values=1)
def cuDeviceGetName(length: Any, dev: Any) -> bytes:
    """Return the device's name, truncated to `length` bytes with the final zero (cuDeviceGetName)."""
    find_device(dev)
    return _cut(NAME, number(length))


def _cut(text: bytes, length: int) -> bytes:
    # The bindings return the whole buffer, with zeros after the text.
    if length <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return text[: length - 1].ljust(length, b"\0")


@entry(values=1)
def cuDeviceGetUuid(dev: Any) -> Any:
    """Return the device's 16 identifying bytes (cuDeviceGetUuid)."""
    device = find_device(dev)
    result = CUuuid()
    # The attribute of the bindings' object can't be written in every version.
    ctypes.memmove(result.getPtr(), bytes(device.uuid), 16)
    return result


@entry(values=2)
def cuDeviceComputeCapability(dev: Any) -> tuple[int, int]:
    """Return the major and the minor number of the compute capability (cuDeviceComputeCapability)."""
    find_device(dev)
    return attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")


@entry(values=1)
def cuDeviceGetAttribute(attrib: Any, dev: Any) -> int:
    """Return an attribute of a device (cuDeviceGetAttribute)."""
    return find_device(dev).answer(number(attrib))


@entry(values=1)
def cuDeviceGetTexture1DLinearMaxWidth(pformat: Any, numChannels: Any, dev: Any) -> int:
    """Return the largest number of elements of a linear texture (cuDeviceGetTexture1DLinearMaxWidth)."""
    find_device(dev)
    channels = number(numChannels)
    if channels not in (1, 2, 4) or pformat not in FORMATS:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return linear_width(int(FORMATS[pformat][1]) * channels)


@entry(values=1)
def cuDeviceTotalMem(dev: Any) -> int:
    """Return the size of a device's memory in bytes (cuDeviceTotalMem)."""
    return find_device(dev).total


@entry(values=1)
def cuDeviceGetPCIBusId(length: Any, dev: Any) -> bytes:
    """Return the device's PCI address (cuDeviceGetPCIBusId)."""
    device = find_device(dev)
    if number(length) <= len(device.bus_id):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return _cut(device.bus_id.encode(), number(length))


@entry(values=1)
def cuDeviceGetByPCIBusId(pciBusId: Any) -> Any:
    """Return the device with a PCI address (cuDeviceGetByPCIBusId)."""
    parts = _PCI_BUS_ID.match(pciBusId)
    if parts is None or parts["domain"] is parts["function"] is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    wanted = [int(parts[name] or b"0", 16) for name in ("domain", "bus", "device", "function")]
    for device in state.devices:
        if wanted == [0, device.bus, 0, 0]:
            return CUdevice(device.ordinal)
    raise StatusError(CUresult.CUDA_ERROR_INVALID_DEVICE)


@entry(values=1)
def cuDeviceCanAccessPeer(dev: Any, peerDev: Any) -> int:
    """Return 1 for two different devices (cuDeviceCanAccessPeer)."""
    return int(find_device(dev) is not find_device(peerDev))


@entry(values=1)
def cuDeviceGetP2PAttribute(attrib: Any, srcDevice: Any, dstDevice: Any) -> int:
    """Return an attribute of the link between two devices (cuDeviceGetP2PAttribute)."""
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
