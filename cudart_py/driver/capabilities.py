"""The capabilities of the driver in use, and the errors for missing ones."""

from __future__ import annotations

import functools
from typing import Any

from .. import errors
from . import enums
from .backend import chosen
from .calls import api


def capabilities() -> frozenset[str]:
    """Return the names of the driver's capabilities, in addition to running kernels.

    | name | meaning |
    |---|---|
    | `checkpoint` | the state of processes can be saved and restored (`cuda.checkpoints`) |
    | `concurrent_host` | a running kernel and the host see each other's writes |
    | `coredump` | a kernel that fails can leave a file for the debugger (`cuda.coredumps`) |
    | `cudss` | `libraries.SparseSolver` can be used |
    | `debugger` | `cuda.debugger()` stops kernels |
    | `fused_callbacks` | cuFFT itself calls the callbacks of transforms (`libraries.Callback`) |
    | `gpu_timing` | event times are the device's times |
    | `in_process` | kernels run in this process: signals interrupt them, and they print to `sys.stdout` |
    | `interop` | other GPU libraries and this package can use each other's addresses |
    | `ipc` | processes can share memory and events (`cuda.ipc.handle`) |
    | `libraries` | cuBLAS, cuFFT, cuSPARSE, cuSOLVER and cuRAND run on this device |
    | `multicast` | at least one device can be part of a multicast object (`cudart_py.multicast`) |
    | `peer` | at least one pair of devices can access each other's memory |
    | `profile` | `cuda.profile()` counts what a launch does |
    | `reset` | `cuda.reset()` resets all devices, so that this process can continue after a fault |
    """
    found = set(chosen().abilities())
    count, attributes = api.cuDeviceGetCount(), enums.CUdevice_attribute
    ipc, multicast = (
        [api.cuDeviceGetAttribute(attribute, device) for device in range(count)]
        for attribute in (
            attributes.CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
            attributes.CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
        )
    )
    if all(ipc):
        found.add("ipc")
    if any(multicast):
        found.add("multicast")
    if any(api.cuDeviceCanAccessPeer(a, b) for a in range(count) for b in range(count) if a != b):
        found.add("peer")
    return frozenset(found)


@functools.cache
def _has_interop() -> bool:
    return "interop" in chosen().abilities()


def require_interop(thing: Any, attribute: str) -> None:
    """Raise AttributeError if other libraries cannot use this driver's addresses (the capability `interop`).

    This is for attributes of the protocols through which libraries share arrays and streams. Libraries look for these
    attributes with `hasattr`.
    """
    if not _has_interop():
        raise AttributeError(
            f"{type(thing).__name__!r} object has no attribute {attribute!r}: this driver lacks the capability "
            "'interop', since other libraries cannot use its addresses"
        )


def require_capability(call: str, name: str, meaning: str = "") -> None:
    """Raise NotSupportedError that names `call` if the driver lacks a capability; `meaning` explains the lack."""
    if name not in capabilities():
        detail = f": {meaning}" if meaning else ""
        raise errors.NotSupportedError(f"{call}: this driver lacks the capability {name!r}{detail}", call=call)


def require_ipc(call: str) -> None:
    """Raise NotSupportedError that names `call` if other processes cannot open the driver's memory and events."""
    require_capability(call, "ipc", "other processes cannot open its memory and events")
