"""Devices: simulated GPUs like an H200, with their memory, primary contexts and pools."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUdevice_attribute, CUresult

from .arguments import number
from .attributes import ATTRIBUTES
from .errors import StatusError
from .graph_memory import GraphMemory

if TYPE_CHECKING:
    from .contexts import Context
    from .memory.pools import Pool


class Device:
    """One device: the size of its memory and how many bytes are in use, its primary context and its pools."""

    def __init__(self, ordinal: int, total: int) -> None:
        self.ordinal = ordinal
        self.total = total
        self.used = 0
        self.primary: Context | None = None
        self.pools: dict[int, Pool] = {}  # keyed by handle
        self.default_pool: Pool | None = None
        self.current_pool: Pool | None = None
        self.graph_memory = GraphMemory()
        self.bus = ordinal + 1
        self.uuid = uuid.uuid5(uuid.NAMESPACE_URL, f"cudart-py simulator device {ordinal}").bytes

    def take(self, size: int) -> None:
        """Count bytes as used; raise CUDA_ERROR_OUT_OF_MEMORY if there are not enough."""
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
        """Return the PCI address that the device would have."""
        return f"0000:{self.bus:02X}:00.0"


class _State:
    """The state that cuInit creates, which a forked child does not have."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.initialised = False
        self.forked = False


state = _State()


def find_device(dev: Any) -> Device:
    """Return the device that a CUdevice or an ordinal identifies, or raise CUDA_ERROR_INVALID_DEVICE."""
    ordinal = number(dev)
    if not 0 <= ordinal < len(state.devices):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_DEVICE)
    return state.devices[ordinal]
