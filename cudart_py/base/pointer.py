"""Device addresses as kernel arguments."""

from __future__ import annotations

from typing import Any

from . import arguments
from .set_once import SetOnce


class Pointer(SetOnce):
    """A device address (CUdeviceptr); the caller is responsible for its memory.

    A kernel's pointer parameter does not accept a plain int, because it might be a size in the wrong position.
    `Pointer(value)` states that the value is an address. `owner` is kept alive with it.
    """

    __slots__ = {
        "owner": "An object that is kept alive with the address.",
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
