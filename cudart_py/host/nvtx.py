"""NVTX: named ranges of a program, which Nsight Systems and Nsight Compute show on their timelines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from ..base import arguments

# Functions that see each range: its name at its begin, and None at its end.
listeners: list[Callable[[str | None], None]] = []


@functools.cache
def _library() -> Any:
    """Return the package `nvtx`, or None if it is not installed."""
    try:
        import nvtx  # an optional package
    except ImportError:
        return None
    return nvtx


class nvtx_range(ContextDecorator):  # noqa: N801  # used as a context manager, as contextlib names them
    """Name a range of the program: `with nvtx_range("solve"):` or `@nvtx_range("solve")`.

    Ranges can be nested. `color` is a name such as "green" or a number 0xRRGGBB, and `domain` names a group of ranges
    that a profiler shows together. Profilers see the range only if the package `nvtx` (the extra of that name) is
    installed; a trace of `cuda.profile(trace=...)` always shows it.
    """

    def __init__(self, name: str, *, color: str | int | None = None, domain: str | None = None) -> None:
        self._name = arguments.text("nvtx_range", "name", name)
        self._color = None if color is None else _checked_color(color)
        self._domain = None if domain is None else arguments.text("nvtx_range", "domain", domain)

    def __repr__(self) -> str:
        options = {"color": self._color, "domain": self._domain}
        given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
        return f"nvtx_range({self._name!r}{given})"

    def __enter__(self) -> None:
        library = _library()
        if library is not None:
            # The library keeps the open ranges of each thread, so one object serves nested and concurrent uses.
            library.push_range(self._name, color=self._color, domain=self._domain)
        for listener in listeners:
            listener(self._name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for listener in listeners:
            listener(None)
        library = _library()
        if library is not None:
            library.pop_range(domain=self._domain)


def _checked_color(color: Any) -> str | int:
    if isinstance(color, str):
        return arguments.text("nvtx_range", "color", color)
    return arguments.integer("nvtx_range", "color", color, 0, 0xFFFFFF)
