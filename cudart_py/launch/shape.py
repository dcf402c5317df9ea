"""The shape of a launch: the grid, the block and the dynamic shared memory, within a kernel's limits."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..base.arguments import describe, integer, unusable, wrong_type
from ..context.occupancy import compute, multiprocessor_of
from .function import Function


class LaunchShape(NamedTuple):
    """A checked grid and block, three ints each, and the bytes of dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int

    @classmethod
    def checked(cls, function: Function, grid: Any, block: Any, shared_bytes: Any) -> LaunchShape:
        """Check a shape against the limits of the kernel and its device; raise TypeError or ValueError."""
        name, properties, attributes = function.name, function.device.properties, function.attributes
        grid3 = dimensions(name, "grid", grid, properties.max_grid_dim)
        block3 = dimensions(name, "block", block, properties.max_block_dim)
        threads = math.prod(block3)
        if threads > properties.max_threads_per_block:
            raise ValueError(
                f"{name}: a block of {block3} has {threads} threads, but "
                f"the device's limit is {properties.max_threads_per_block}"
            )
        if threads > _most_threads(function):
            raise ValueError(
                f"{name}: a block of {block3} has {threads} threads, but "
                f"this kernel's limit is {_most_threads(function)} ({_limits(function)})"
            )
        dynamic = integer(name, "shared_bytes", shared_bytes, 0, 2**64 - 1)
        limit = properties.shared_memory_per_block_optin - attributes.shared_bytes
        if dynamic > limit:
            raise ValueError(
                f"{name}: argument 'shared_bytes' must be at most {limit}, not {dynamic} "
                f"({properties.shared_memory_per_block_optin} bytes per block, less {attributes.shared_bytes} static)"
            )
        return cls(grid3, block3, dynamic)


def _most_threads(function: Function) -> int:
    """Return the kernel's own limit on threads per block, or the device's limit if the kernel's is unknown."""
    return function.attributes.max_threads_per_block or function.device.properties.max_threads_per_block


def _limits(function: Function) -> str:
    """Return a phrase for the possible reasons why the kernel's limit is lower than the device's."""
    bounds, attributes = "its __launch_bounds__", function.attributes
    one_more = _most_threads(function) + 1
    fitting = compute(multiprocessor_of(function.device.properties), one_more, attributes.registers, 0).limits
    return bounds if fitting["registers"] else f"{attributes.registers} registers per thread, or {bounds}"


def dimensions(call: str, name: str, value: Any, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a grid, block or cluster as three ints within limits; raise TypeError or ValueError naming the axis."""
    given = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(given) <= 3:
        raise unusable(call, name, "have one to three dimensions", f"{len(given)}, {describe(value)}")
    sizes = [
        _size(call, f"{name}.{axis}", size, limit) for axis, size, limit in zip("xyz", given, limits, strict=False)
    ]
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _size(call: str, name: str, size: Any, limit: int) -> int:
    """Return a size along one axis. The error for a float as a grid size says how to round a quotient up."""
    if isinstance(size, float) and name.startswith("grid."):
        raise wrong_type(call, name, "an int", size, "write -(-n // block) to round up")
    return integer(call, name, size, 1, limit)
