"""The memory that a device keeps for the allocations of graphs: its size, and its release."""

from __future__ import annotations

from typing import Any

from .. import arguments
from ..context.device import Device, current_device
from ..driver import enums
from ..driver.calls import api


class GraphMemory:
    """The memory of a device, by default the current one, that graphs allocate with their nodes.

        memory = cuda.graphs.GraphMemory()
        print(memory.used, memory.reserved)
        memory.trim()

    It is separate from the device's memory pools. Graphs share it, and the driver keeps it for later launches.
    """

    __slots__ = ("_device",)

    def __init__(self, device: Device | None = None) -> None:
        if device is not None:
            arguments.instance("GraphMemory", "device", device, Device, "a Device or None")
        self._device = device or current_device()

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._device

    @property
    def used(self) -> int:
        """The number of bytes that belong to graphs that have been launched (cuDeviceGetGraphMemAttribute)."""
        return self._get("USED_MEM_CURRENT")

    @property
    def used_high(self) -> int:
        """The maximum of `used` since `reset_high()`."""
        return self._get("USED_MEM_HIGH")

    @property
    def reserved(self) -> int:
        """The number of bytes of device memory that the driver holds for graphs."""
        return self._get("RESERVED_MEM_CURRENT")

    @property
    def reserved_high(self) -> int:
        """The maximum of `reserved` since `reset_high()`."""
        return self._get("RESERVED_MEM_HIGH")

    def reset_high(self) -> None:
        """Set `used_high` and `reserved_high` to the current values (cuDeviceSetGraphMemAttribute)."""
        for name in ("USED_MEM_HIGH", "RESERVED_MEM_HIGH"):
            api.cuDeviceSetGraphMemAttribute(self._device._device, _attribute(name), enums.cuuint64_t(0))

    def trim(self) -> None:
        """Return the memory that no launch uses to the device (cuDeviceGraphMemTrim)."""
        api.cuDeviceGraphMemTrim(self._device._device)

    def _get(self, name: str) -> int:
        return int(api.cuDeviceGetGraphMemAttribute(self._device._device, _attribute(name)))

    def __repr__(self) -> str:
        return f"<GraphMemory of device {self._device.ordinal}>"


def _attribute(name: str) -> Any:
    return getattr(enums.CUgraphMem_attribute, f"CU_GRAPH_MEM_ATTR_{name}")
