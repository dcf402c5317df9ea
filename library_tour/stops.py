"""The stops, in the order of the tour."""

from __future__ import annotations

import difflib
import importlib
from typing import cast

from . import path
from .stop import Stop

# The stops that the ranks of an MPI program can run together.
SEVERAL_DEVICES = path.SEVERAL_DEVICES.names

# Each is a module of library_tour/libraries.
LIBRARIES = path.LIBRARIES.names

# Each is a module of library_tour/course; its device code, if it has any, is kernels/<name>.cu.
COURSE = tuple(name for name in path.names() if name not in LIBRARIES)


class UnknownStopError(LookupError):
    """A name that no stop has; the message suggests similar names."""


def names() -> tuple[str, ...]:
    """Return every stop's name, in the tour's order."""
    return COURSE + LIBRARIES


def module_name(name: str) -> str:
    """Return the full module name of a stop; raise UnknownStopError for a name that no stop has."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.7)
        near += [stop for stop in names() if name and name in stop and stop not in near]
        hint = f"did you mean {' or '.join(near)}?" if near else "`library-tour list` lists all stops"
        raise UnknownStopError(f"there is no stop {name!r}: {hint}")
    return f"library_tour.{'course' if name in COURSE else 'libraries'}.{name}"


def load(name: str) -> Stop:
    """Import a stop's module; raise UnknownStopError for a name that no stop has."""
    return cast(Stop, importlib.import_module(module_name(name)))
