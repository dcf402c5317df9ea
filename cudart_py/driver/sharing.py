"""Whether other GPU libraries and other processes can use what this driver allocates and queues."""

from __future__ import annotations

import functools
from typing import Any

from .. import errors
from .seam import capabilities

__all__ = ["require_interop", "require_ipc"]


@functools.cache
def _available() -> bool:
    return "interop" in capabilities()


def require_interop(thing: Any, attribute: str) -> None:
    """Raise AttributeError where other libraries could not follow our addresses, without the capability `interop`.

    For the attributes of the protocols by which libraries share arrays and streams, which they look for with hasattr.
    """
    if not _available():
        raise AttributeError(
            f"{type(thing).__name__!r} object has no attribute {attribute!r} with this driver, whose addresses other "
            "libraries cannot use (the capability 'interop')"
        )


def require_ipc(call: str) -> None:
    """Raise NotSupportedError, in the name of a call, where other processes cannot open what the driver has."""
    if "ipc" not in capabilities():
        raise errors.NotSupportedError(
            f"{call}: this driver lacks the capability 'ipc': other processes cannot open its memory and its events"
        )
