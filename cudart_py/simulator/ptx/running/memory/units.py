"""Addresses of the units of 16 bytes that the asynchronous proxy reads and writes for a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .addresses import Address

if TYPE_CHECKING:
    from ..groups import Group
    from .spaces import Space

Array = NDArray[Any]


def address_of_units(space: Space, group: Group, places: Array, base: Array) -> Address:
    """Return the Address of units; `base` is what each place has more than the address that the kernel sees."""
    seen = places - base
    low, high = (int(seen.min()), int(seen.max())) if len(seen) else (0, 0)
    found = Address(space, group, places, low, high, int(np.bitwise_or.reduce(seen)))
    found.base = base
    return found
