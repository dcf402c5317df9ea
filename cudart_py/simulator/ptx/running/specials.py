"""The values of special registers for the lanes of a chunk."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..syntax.special_names import dtype
from ..windows import RESERVED_SHARED, RUNTIME_SHARED, WORKSPACE_WINDOW

if TYPE_CHECKING:
    from .launch import LaunchState
    from .scheduler import Chunk

_AXES = {"x": 0, "y": 1, "z": 2}


class Geometry:
    """Thread coordinates, shared by all chunks with the same block shape and number of blocks and never modified."""

    def __init__(self, count: int, block: tuple[int, int, int]) -> None:
        threads = math.prod(block)
        self._block = block
        self.lane_numbers: NDArray[np.int64] = np.arange(count * threads, dtype=np.int64)
        self.block_of_lane: NDArray[np.int64] = np.repeat(np.arange(count, dtype=np.int64), threads)
        # Each lane's linear thread index in its block.
        self._thread = self.lane_numbers % threads

    @cached_property
    def tid(self) -> tuple[Any, ...]:
        """Each lane's thread coordinates in its block."""
        return tuple(_coordinate(self._thread, self._block, axis) for axis in range(3))

    @cached_property
    def lane(self) -> Any:
        """Each lane's index in its warp."""
        return (self._thread % 32).astype(np.uint32)

    @cached_property
    def warp(self) -> Any:
        """The index of each lane's warp in its block."""
        return (self._thread // 32).astype(np.uint32)


@lru_cache(maxsize=16)
def geometry(count: int, block: tuple[int, int, int]) -> Geometry:
    """Return the geometry of chunks with `count` blocks of shape `block`."""
    return Geometry(count, block)


def special_value(chunk: Chunk, name: str) -> Any:
    """Return a special register's value: an array over the chunk's lanes, or a scalar if all lanes share it."""
    state = chunk.state
    base, _, axis = name[1:].partition(".")
    if axis:
        # The fourth coordinate is always 0.
        return np.uint32(0) if axis == "w" else _axis_value(chunk, base, _AXES[axis])
    if base == "laneid":
        return chunk.geometry.lane
    if base == "warpid":
        return chunk.geometry.warp
    if base == "smid":
        numbers = state.plan.multiprocessors
        return numbers[(chunk.block_of_lane + chunk.first) % len(numbers)]
    if base.startswith("lanemask_"):
        return lane_mask(chunk.geometry.lane, base[9:])
    if base == "cluster_ctarank":
        x, y, z = (_axis_value(chunk, "cluster_ctaid", place) for place in range(3))
        width, height, _ = map(np.uint32, state.launch.cluster)
        return x + width * (y + height * z)
    # The other registers belong to the driver, to performance monitors and to graphs that kernels launch. None of these
    # exist here.
    return np.dtype(dtype(name)).type(_shared_values(state).get(base, 0))


def _shared_values(state: LaunchState) -> dict[str, int]:
    """Return the special registers that all lanes of a launch share and that are not 0."""
    launch, cluster = state.launch, math.prod(state.launch.cluster)
    # A cooperative launch passes the address of its grid barrier's workspace in two registers.
    workspace = WORKSPACE_WINDOW if launch.cooperative else 0
    return {
        "nwarpid": state.properties.get("warps", 64),
        "nsmid": state.properties.get("sm_count", 1),
        "gridid": 1,
        "envreg1": workspace >> 32,
        "envreg2": workspace & 0xFFFFFFFF,
        "dynamic_smem_size": launch.shared_bytes,
        "total_smem_size": state.shared_limit - RESERVED_SHARED,
        "aggr_smem_size": RESERVED_SHARED + state.shared_size,
        "reserved_smem_offset_end": RUNTIME_SHARED,
        "reserved_smem_offset_cap": RESERVED_SHARED,
        "cluster_nctarank": cluster,
        "is_explicit_cluster": cluster > 1,
    }


def _axis_value(chunk: Chunk, base: str, axis: int) -> Any:
    launch = chunk.state.launch
    match base:
        case "tid":
            return chunk.geometry.tid[axis]
        case "ntid":
            return np.uint32(launch.block[axis])
        case "nctaid":
            return np.uint32(launch.grid[axis])
    extent = np.uint32(launch.cluster[axis])
    match base:
        case "cluster_nctaid":
            return extent
        case "nclusterid":
            return np.uint32(launch.grid[axis]) // extent
        case "clusterid":
            return _axis_value(chunk, "ctaid", axis) // extent
        case "cluster_ctaid":
            return _axis_value(chunk, "ctaid", axis) % extent
    numbers = np.arange(chunk.first, chunk.first + chunk.blocks)
    found = block_coordinate(numbers, launch.grid, launch.cluster, axis)
    return found if found.ndim == 0 else np.repeat(found, chunk.threads)


def coordinates(index: Any, shape: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """Return the coordinates of the thread with an index in a block of this shape, or those of several threads."""
    return index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1])


def block_coordinate(number: Any, grid: tuple[int, int, int], cluster: tuple[int, int, int], axis: int) -> Any:
    """Return the coordinate along an axis of the blocks with numbers, which are counted cluster by cluster."""
    size = math.prod(cluster)
    if size == 1:
        return _coordinate(number, grid, axis)
    x, y, z = (extent // part for extent, part in zip(grid, cluster, strict=True))
    extent = np.uint32(cluster[axis])
    return _coordinate(number // size, (x, y, z), axis) * extent + _coordinate(number % size, cluster, axis)


def _coordinate(index: Any, shape: tuple[int, int, int], axis: int) -> Any:
    return coordinates(index, shape)[axis].astype(np.uint32) if shape[axis] > 1 else np.uint32(0)


def lane_mask(lane: Any, kind: str) -> Any:
    """Return ``%lanemask_KIND`` of lanes with these indices in their warps, as unsigned words."""
    equal = np.uint32(1) << lane
    below = equal - np.uint32(1)
    return {"eq": equal, "lt": below, "le": below | equal, "gt": ~(below | equal), "ge": ~below}[kind]
