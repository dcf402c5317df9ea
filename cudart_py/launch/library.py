"""Libraries: an image that is loaded once for all devices, without a context."""

from __future__ import annotations

from typing import Any

from ..context.lifetimes import Handle
from ..driver.calls import api


class Library(Handle):
    """An image that belongs to no device (cuLibraryLoadData). A `LazyModule` makes its modules."""

    __slots__ = ()

    def __init__(self, image: bytes) -> None:
        self._value = None
        self._owned = True
        self._value = int(api.cuLibraryLoadData(image, None, None, 0, None, None, 0))

    def _release(self, value: Any) -> None:
        api.cuLibraryUnload(value)
