"""The memory that a device keeps for the allocations of graphs: its size, and its release."""

from __future__ import annotations

from typing import Any

from ..base import arguments
from ..context.device import Device, current_device
from ..driver import enums
from ..driver.calls import api
from ..memory.pools import MemoryCounts


class GraphMemory(MemoryCounts):
    """The memory that the nodes of graphs allocate on a device, by default the current one.

        memory = cuda.graphs.GraphMemory()
        print(memory.used, memory.reserved)
        memory.trim()

    It is separate from the device's memory pools. Graphs share it, and the driver keeps it for later launches. Its
    sizes are in bytes (cuDeviceGetGraphMemAttribute, cuDeviceSetGraphMemAttribute).
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

    def trim(self) -> None:
        """Return unused memory to the device (cuDeviceGraphMemTrim)."""
        api.cuDeviceGraphMemTrim(self._device._device)

    def _get(self, name: str) -> int:
        return int(api.cuDeviceGetGraphMemAttribute(self._device._device, _attribute(name)))

    def _set(self, name: str, value: int) -> None:
        api.cuDeviceSetGraphMemAttribute(self._device._device, _attribute(name), enums.cuuint64_t(value))

    def __repr__(self) -> str:
        return f"<GraphMemory of device {self._device.ordinal}>"


def _attribute(name: str) -> Any:
    return getattr(enums.CUgraphMem_attribute, f"CU_GRAPH_MEM_ATTR_{name}")
