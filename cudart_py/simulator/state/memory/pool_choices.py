"""The default pool and the current pool of each kind of memory and location.

A device has those of its own memory. The others, of pinned and of managed memory, are here.
"""

from __future__ import annotations

from ..devices import Device
from .allocations import DEVICE
from .pools import Location, Pool, current_pool, default_pool, enter_pool, pools

Choice = tuple[str, Location]

_defaults: dict[Choice, Pool] = {}
_current: dict[Choice, Pool] = {}


def default_pool_at(kind: str, location: Location, device: Device) -> Pool:
    """Return the default pool of a kind of memory at a location; the first call creates it, on a device."""
    if kind == DEVICE:
        return default_pool(device)
    found = _live(_defaults, (kind, location))
    if found is None:
        found = _defaults[kind, location] = enter_pool(Pool(device, kind=kind, location=location, is_default=True))
    return found


def current_pool_at(kind: str, location: Location, device: Device) -> Pool:
    """Return the current pool of a kind of memory at a location: the one that was chosen last, or the default pool."""
    if kind == DEVICE:
        return current_pool(device)
    return _live(_current, (kind, location)) or default_pool_at(kind, location, device)


def choose_pool(pool: Pool) -> None:
    """Make a pool the current one for its kind of memory and its location."""
    if pool.kind == DEVICE:
        pool.device.current_pool = pool
    else:
        _current[pool.kind, pool.location] = pool


def _live(chosen: dict[Choice, Pool], choice: Choice) -> Pool | None:
    """Return a pool unless it has been destroyed, for example by a reset of its device."""
    found = chosen.get(choice)
    return found if found is not None and pools.get(found.handle) is found else None
