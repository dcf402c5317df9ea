"""Addresses of the 16-byte units that the asynchronous proxy reads and writes for a thread."""

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
    """Return the Address of units; `base` is the difference between each place and the address that the kernel sees."""
    seen = places - base
    low, high = (int(seen.min()), int(seen.max())) if len(seen) else (0, 0)
    found = Address(space, group, places, low, high, int(np.bitwise_or.reduce(seen)))
    found.base = base
    return found
