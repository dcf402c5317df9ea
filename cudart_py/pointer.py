"""A device address as a kernel's argument."""

from __future__ import annotations

from typing import Any

from . import arguments


class Pointer:
    """A device address (CUdeviceptr) for whose memory the caller is responsible.

    A bare int is refused where a kernel takes a pointer, because a size in the wrong place looks the
    same; `Pointer(value)` says that an address is meant. `owner` is kept alive with it.
    """

    __slots__ = {
        "owner": "What is kept alive with the address.",
        "value": "The address.",
    }

    def __init__(self, value: int, owner: Any = None) -> None:
        self.value = arguments.integer("Pointer", "value", value, 0, 2**64 - 1)
        self.owner = owner

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Pointer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Pointer({self.value:#x})"
