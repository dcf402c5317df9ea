"""Code shared by the functions of all libraries: objects with handles, and errors with statuses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Generic, TypeVar

from ...calls.entry import alone, refusal
from ...state.errors import StatusError
from ...state.handles import next_handle
from ...state.progress import progress

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")


class LibraryError(Exception):
    """A status other than success, in the wording of nvmath's bindings, and the reason if it is known."""

    def __init__(self, status: Any, reason: str = "") -> None:
        super().__init__(f"{status.name} ({int(status)}){': ' + reason if reason else ''}")
        self.status = int(status)


class Objects(Generic[Value]):
    """A library's objects, keyed by handle; an unknown handle raises LibraryError with the status `missing`."""

    def __init__(self, missing: Any) -> None:
        self._values: dict[int, Value] = {}
        self._missing = missing

    def add(self, value: Value) -> int:
        """Add an object and return its handle."""
        handle = next_handle()
        self._values[handle] = value
        return handle

    def find(self, handle: int) -> Value:
        """Return the object that a handle refers to."""
        value = self._values.get(int(handle))
        if value is None:
            raise LibraryError(self._missing, f"no object has the handle {int(handle):#x}")
        return value

    def remove(self, handle: int) -> None:
        """Forget an object."""
        self.find(handle)
        del self._values[int(handle)]


def entry(failed: Any) -> Callable[[Function], Function]:
    """Return a decorator for a library's functions that turns the driver's StatusError into the status `failed`."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                if progress.here:
                    raise refusal(function.__name__)
                return alone(function, arguments, named)
            except StatusError as error:
                raise LibraryError(failed, f"the driver returned {error.status.name}") from error

        return call  # type: ignore[return-value]  # functools.wraps keeps the parameters, but mypy can't see that

    return decorate


def missing(bindings: ModuleType, not_supported: Any, name: str) -> Any:
    """Return nvmath's own enum or dtype for a name, or a function that raises LibraryError for a missing function."""
    value = getattr(bindings, name)
    if isinstance(value, type) or not callable(value):
        return value

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise LibraryError(not_supported, f"{name} of {bindings.__name__} is not available on the simulator")

    return refuse
