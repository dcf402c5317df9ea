"""Streams and events without flags, and the entry points of the driver."""

from __future__ import annotations

from typing import Any

from .calls import driver

_VERSION = 13000


def create_stream(stream: int) -> int:
    """Create a stream (cudaStreamCreate)."""
    return driver("cuStreamCreate")(stream, 0)


def create_event(event: int) -> int:
    """Create an event (cudaEventCreate)."""
    return driver("cuEventCreate")(event, 0)


def driver_entry_point(symbol: int, place: int, flags: int, outcome: int) -> int:
    """Write the address of a function of the driver (cudaGetDriverEntryPoint)."""
    return driver_entry_point_by_version(symbol, place, _VERSION, flags, outcome)


def driver_entry_point_by_version(symbol: int, place: int, version: int, flags: int, outcome: int) -> int:
    """Write the address of a function of the driver (cudaGetDriverEntryPointByVersion)."""
    driver("cuGetProcAddress_v2")(symbol, place, version, flags, outcome)
    return 0  # the outcome says whether there is such a function


FUNCTIONS: dict[str, Any] = {
    "cudaEventCreate": create_event,
    "cudaGetDriverEntryPoint": driver_entry_point,
    "cudaGetDriverEntryPointByVersion": driver_entry_point_by_version,
    "cudaStreamCreate": create_stream,
}
