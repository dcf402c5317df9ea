"""Shapes of launches: the grids, blocks, clusters and sizes of shared memory that the driver accepts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cuda.bindings.driver import CUresult

from ... import ptx
from ...state.attributes import attribute
from ...state.errors import StatusError
from ...state.fault_reports import put_report
from ..modules.functions import LoadedFunction
from . import occupancy

_LARGEST_PARAMETERS = 32764
_MOST_SHAPES = 64
_BLOCK_LIMITS = (attribute("MAX_BLOCK_DIM_X"), attribute("MAX_BLOCK_DIM_Y"), attribute("MAX_BLOCK_DIM_Z"))
_GRID_LIMITS = (attribute("MAX_GRID_DIM_X"), attribute("MAX_GRID_DIM_Y"), attribute("MAX_GRID_DIM_Z"))
_MOST_THREADS = attribute("MAX_THREADS_PER_BLOCK")

Extents = tuple[int, int, int]


def checked_launch(
    function: LoadedFunction,
    extents: Sequence[int],
    shared: int,
    parameters: bytes,
    *,
    cooperative: bool = False,
    cluster: Extents | None = None,
) -> ptx.Launch:
    """Return the PTX machine's description of a launch; raise the status that the driver returns for an invalid one."""
    key = *extents, shared, cluster
    chosen = function.shapes.get(key)
    if chosen is None:
        chosen = _checked_shape(function, extents, shared, cluster, cooperative=cooperative)
        _refuse_unsupported(function)
        function.module.context.fixed_limits |= function.module.fixed_limits
        if len(function.shapes) >= _MOST_SHAPES:
            function.shapes.clear()
        function.shapes[key] = chosen
    gx, gy, gz, bx, by, bz = extents
    if cooperative and gx * gy * gz > occupancy.resident_blocks(function, bx * by * bz, shared, prod(chosen)):
        raise StatusError(CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    return ptx.Launch(function.entry, (gx, gy, gz), (bx, by, bz), shared, parameters, cooperative, chosen)


def _checked_shape(
    function: LoadedFunction, extents: Sequence[int], shared: int, cluster: Extents | None, *, cooperative: bool
) -> Extents:
    """Return the cluster extents of a launch; raise the status that the driver returns for an invalid shape."""
    gx, gy, gz, bx, by, bz = extents
    if not (
        0 < gx <= _GRID_LIMITS[0]
        and 0 < gy <= _GRID_LIMITS[1]
        and 0 < gz <= _GRID_LIMITS[2]
        and 0 < bx <= _BLOCK_LIMITS[0]
        and 0 < by <= _BLOCK_LIMITS[1]
        and 0 < bz <= _BLOCK_LIMITS[2]
        and shared >= 0
    ):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    threads = bx * by * bz
    kernel = function.entry
    if threads > function.max_threads:
        _refuse_threads(function, threads)
    if kernel.required_block is not None and (bx, by, bz) != tuple(kernel.required_block):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if kernel.parameter_bytes > _LARGEST_PARAMETERS:
        raise StatusError(CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    chosen = _checked_cluster(function, (gx, gy, gz), cluster or function.required_cluster or (1, 1, 1))
    if shared > function.dynamic_shared:
        too_large = CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE  # no block can be resident
        raise StatusError(too_large if cooperative else CUresult.CUDA_ERROR_INVALID_VALUE)
    return chosen


def _refuse_unsupported(function: LoadedFunction) -> None:
    try:
        ptx.refuse_unsupported(function.entry)
    except ptx.UnsupportedError as error:
        put_report(error.report)
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED) from None


def _refuse_threads(function: LoadedFunction, threads: int) -> None:
    stated = [prod(limit) for limit in (function.entry.max_threads, function.entry.required_block) if limit]
    # More threads than the device or the kernel's own directives allow are an invalid value; more than its registers
    # allow are a lack of resources.
    if threads > min([_MOST_THREADS, *stated]):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    raise StatusError(CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)


def _checked_cluster(function: LoadedFunction, grid: Extents, cluster: Extents) -> Extents:
    if (
        min(cluster) <= 0
        or prod(cluster) > occupancy.largest_cluster(function)
        or cluster != (function.required_cluster or cluster)
        or any(count % part for count, part in zip(grid, cluster, strict=True))
    ):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE)
    return cluster
