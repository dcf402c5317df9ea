"""Handles: numbers that identify the driver's objects, unique for the life of the process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from cuda.bindings.driver import CUresult

from .arguments import number
from .errors import StatusError

Value = TypeVar("Value")

# Far above 0, 1 and 2, which are the default streams. A number is never reused, so that a stale handle is detected.
_numbers = itertools.count(0x5000_0000, 0x10)


def next_handle() -> int:
    """Return a number that has never been a handle."""
    return next(_numbers)


class Handles(Generic[Value]):
    """The live objects of one kind, keyed by handle."""

    def __init__(self, missing: CUresult = CUresult.CUDA_ERROR_INVALID_HANDLE) -> None:
        self._values: dict[int, Value] = {}
        self._missing = missing

    def __iter__(self) -> Iterator[Value]:
        # A copy, because finalizers may remove objects during the iteration.
        return iter(list(self._values.values()))

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: Value, handle: int | None = None) -> int:
        """Add an object and return its handle."""
        if handle is None:
            handle = next(_numbers)
        self._values[handle] = value
        return handle

    def find(self, handle: Any) -> Value:
        """Return the object that a handle refers to, or raise the status for an unknown handle."""
        try:
            return self._values[int(handle)]
        except (KeyError, TypeError, ValueError):
            raise StatusError(self._missing) from None

    def get(self, handle: Any) -> Value | None:
        """Return the object that a handle refers to, or None for an unknown handle."""
        return self._values.get(number(handle))

    def handle_of(self, value: Value) -> int:
        """Return the handle of an object; raise StopIteration if it has none."""
        return next(handle for handle, other in self._values.items() if other is value)

    def remove(self, handle: int) -> None:
        """Forget a handle; it is never reused."""
        self._values.pop(handle, None)

    def remove_all(self, belongs: Callable[[Value], bool]) -> list[Value]:
        """Forget the handles of all objects for which `belongs` returns true; return the objects."""
        removed = {handle: value for handle, value in list(self._values.items()) if belongs(value)}
        for handle in removed:
            del self._values[handle]
        return list(removed.values())
