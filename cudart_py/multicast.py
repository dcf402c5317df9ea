"""Multicast objects, `cudart_py.multicast`: one address whose stores go to memory on several devices.

The devices must be connected by NVSwitch. Programs allocate and map the memory with the driver's functions for virtual
memory (`cuMemCreate`, `cuMemMap`), and kernels use it with the `multimem` instructions. A program that leaves devices
in a faulty state can make them unavailable to all programs on the machine.
"""

from __future__ import annotations

from typing import Any

from .base import arguments
from .base.set_once import SetOnce
from .context.device import Device
from .context.lifetimes import Handle
from .driver import enums
from .driver.calls import api, raw
from .driver.capabilities import require_capability
from .driver.unwrap import failure
from .memory.allocation import MOST_BYTES

__all__ = ["MulticastObject", "granularity"]
__dir__ = __all__.copy  # without private names and imports

_REASON = "no device is connected by NVSwitch, as multicast objects need"
_MOST_DEVICES = 2**32 - 1


def granularity(nbytes: int, device_count: int, *, minimum: bool = False) -> int:
    """Return the granularity of multicast objects in bytes: sizes and offsets should be multiples of it.

    `nbytes` is the size of the object in bytes, and `device_count` the number of its devices. The result is the
    recommended granularity or, with `minimum`, the smallest one that is allowed (cuMulticastGetGranularity). Raises
    NotSupportedError if the driver lacks the capability `multicast`.
    """
    call = "multicast.granularity"
    properties = _properties(call, nbytes, device_count)
    options = enums.CUmulticastGranularity_flags
    return _granularity(
        properties,
        options.CU_MULTICAST_GRANULARITY_MINIMUM
        if arguments.flag(call, "minimum", minimum)
        else options.CU_MULTICAST_GRANULARITY_RECOMMENDED,
    )


def _granularity(properties: Any, option: Any) -> int:
    return int(api.cuMulticastGetGranularity(properties, option))


def _properties(call: str, nbytes: int, device_count: int) -> Any:
    """Return the properties of a multicast object, after checking a call's arguments."""
    size = arguments.integer(call, "nbytes", nbytes, 1, MOST_BYTES)
    count = arguments.integer(call, "device_count", device_count, 1, _MOST_DEVICES)
    require_capability(call, "multicast", _REASON)
    properties = enums.CUmulticastObjectProp()
    properties.size, properties.numDevices, properties.handleTypes = size, count, 0
    return properties


class MulticastObject(SetOnce, Handle):
    """A multicast object (cuMulticastCreate), to which memory of `device_count` devices can be bound.

        team = multicast.MulticastObject(nbytes, len(devices))
        for device, memory in zip(devices, memories):
            team.add_device(device)
        for memory in memories:  # from cuMemCreate
            team.bind(memory, nbytes)
        cuda.check(driver.cuMemMap(address, nbytes, 0, team.handle, 0))

    - `nbytes`: the size in bytes of the memory that can be bound on each device, a multiple of `granularity`.
    - `device_count`: the number of devices.

    First add all devices, then bind memory, and then map the object. Mappings and bound memory keep the driver's
    object alive after `close()` (cuMemRelease). Raises ValueError for a size that is not such a multiple, and
    NotSupportedError if the driver lacks the capability `multicast`: the simulator lacks it, and so do devices without
    NVSwitch.
    """

    __slots__ = ("_devices", "_granularity", "device_count", "nbytes")

    def __init__(self, nbytes: int, device_count: int) -> None:
        call = "MulticastObject"
        self._value = None
        self._owned = True
        properties = _properties(call, nbytes, device_count)
        self.nbytes = int(properties.size)
        self.device_count = int(properties.numDevices)
        self._devices: list[Device] = []
        smallest = enums.CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_MINIMUM
        self._granularity = _granularity(properties, smallest)
        self._check_multiple(call, "nbytes", self.nbytes)
        self._value = int(api.cuMulticastCreate(properties))

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that have been added."""
        return tuple(self._devices)

    def add_device(self, device: Device) -> None:
        """Add a device, for as long as the object exists (cuMulticastAddDevice).

        Raises ValueError for a device that has been added before, or if all `device_count` devices have been added, and
        CudaError for one that NVSwitch does not connect with the others.
        """
        call = "MulticastObject.add_device"
        arguments.instance(call, "device", device, Device)
        if device in self._devices:
            raise arguments.wrong_value(call, "device", "a device that has not been added yet", device)
        if len(self._devices) == self.device_count:
            rule = f"be one of the {self.device_count} devices of the object, which have all been added"
            raise arguments.unusable(call, "device", rule, f"device {device.ordinal}")
        (status,) = raw.cuMulticastAddDevice(self.handle, device.handle)
        if status:
            raise failure(status, "cuMulticastAddDevice", "NVSwitch must connect the device with those added before")
        self._devices.append(device)

    def bind(self, memory: int, nbytes: int, *, offset: int = 0, memory_offset: int = 0) -> None:
        """Bind physical memory of a device, so that stores to the object also go there (cuMulticastBindMem).

        `memory` is a handle from cuMemCreate, as an int. The `nbytes` bytes from `memory_offset` on are bound at
        `offset` within the object. All three are multiples of `granularity`. Raises ValueError if they are not, if the
        object has no such bytes, or if devices have not been added yet, because the driver would wait for that.
        """
        call = "MulticastObject.bind"
        native = arguments.integer(call, "memory", memory, 1, 2**64 - 1)
        size, start = self._checked_range(call, nbytes, offset)
        source = arguments.integer(call, "memory_offset", memory_offset, 0, MOST_BYTES)
        self._check_multiple(call, "memory_offset", source)
        missing = self.device_count - len(self._devices)
        if missing:
            raise ValueError(f"{call}: {missing} of {self.device_count} devices have not been added: call add_device")
        api.cuMulticastBindMem(self.handle, start, native, source, size, 0)

    def unbind(self, device: Device, nbytes: int, *, offset: int = 0) -> None:
        """End the binding of a device's memory (cuMulticastUnbind), with the size and offset that `bind` was given.

        Raises ValueError for a device that is not part of the object, and in the same cases as `bind`.
        """
        call = "MulticastObject.unbind"
        arguments.instance(call, "device", device, Device)
        if device not in self._devices:
            raise arguments.wrong_value(call, "device", "a device that has been added", device)
        size, start = self._checked_range(call, nbytes, offset)
        api.cuMulticastUnbind(self.handle, device.handle, start, size)

    def _checked_range(self, call: str, nbytes: int, offset: int) -> tuple[int, int]:
        """Return a call's arguments, the size and the offset of a range of the object."""
        size = arguments.integer(call, "nbytes", nbytes, 1, self.nbytes)
        start = arguments.integer(call, "offset", offset, 0, self.nbytes - size)
        self._check_multiple(call, "nbytes", size)
        self._check_multiple(call, "offset", start)
        return size, start

    def _check_multiple(self, call: str, name: str, value: int) -> None:
        if value % self._granularity:
            rule = f"be a multiple of the granularity, {self._granularity} bytes"
            raise arguments.unusable(call, name, rule, None, f"got {value}")

    def _release(self, value: Any) -> None:
        api.cuMemRelease(value)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"of {self.nbytes:,} bytes on {len(self._devices)} devices"
        return f"<MulticastObject {state}>"
