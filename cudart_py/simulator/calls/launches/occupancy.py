"""Occupancy: the number of resident blocks per multiprocessor, from the toolkit's own calculator."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

from cuda.bindings.driver import CUlaunchAttributeID, CUoccupancy_flags, CUresult

from ....context.occupancy import MULTIPROCESSORS, compute
from ...state.arguments import number
from ...state.attributes import attribute
from ...state.errors import StatusError
from ..entry import entry
from ..modules.functions import LoadedFunction, find_launchable

_WARP = 32
_MULTIPROCESSOR = MULTIPROCESSORS[9, 0]
# A cluster stays within a group of multiprocessors. The 132 multiprocessors of an H200 are in groups of 16 and 18. The
# groups differ from device to device; these are typical.
_GROUPS = (18, 18, 16, 16, 16, 16, 16, 16)
_LARGEST_CLUSTER = 16
_LARGEST_PORTABLE_CLUSTER = 8
# The number of blocks in clusters that the driver counts on a multiprocessor at most.
_MOST_CLUSTERED_BLOCKS = 8


def blocks_per_multiprocessor(function: LoadedFunction, threads: int, dynamic_shared: int) -> int:
    """Return how many blocks of this many threads and bytes of dynamic shared memory fit on a multiprocessor.

    Like the driver, ignore the kernel's launch bounds.
    """
    if threads > attribute("MAX_THREADS_PER_BLOCK") or dynamic_shared > function.dynamic_shared:
        return 0
    shared = function.shared_bytes + dynamic_shared
    return compute(_MULTIPROCESSOR, threads, function.registers, shared).blocks


def _blocks(func: Any, blockSize: Any, dynamicSMemSize: Any) -> int:
    function = find_launchable(func)
    threads, dynamic = number(blockSize), number(dynamicSMemSize)
    if threads <= 0 or dynamic < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return blocks_per_multiprocessor(function, threads, dynamic)


@entry(values=1)
def cuOccupancyMaxActiveBlocksPerMultiprocessor(func: Any, blockSize: Any, dynamicSMemSize: Any) -> int:
    """Return how many blocks fit on a multiprocessor (cuOccupancyMaxActiveBlocksPerMultiprocessor)."""
    return _blocks(func, blockSize, dynamicSMemSize)


@entry(values=1)
def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    func: Any, blockSize: Any, dynamicSMemSize: Any, flags: Any
) -> int:
    """Return how many blocks fit on a multiprocessor (cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)."""
    if number(flags) & ~CUoccupancy_flags.CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return _blocks(func, blockSize, dynamicSMemSize)


@entry(values=2)
def cuOccupancyMaxPotentialBlockSize(
    func: Any, blockSizeToDynamicSMemSize: Any, dynamicSMemSize: Any, blockSizeLimit: Any
) -> tuple[int, int]:
    """Return the number of blocks that fill the device and their size (cuOccupancyMaxPotentialBlockSize)."""
    function = find_launchable(func)
    limit = number(blockSizeLimit) or function.max_threads
    if limit < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    by_block = number(blockSizeToDynamicSMemSize)
    shared_of = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(by_block) if by_block else None
    best = best_threads = best_blocks = 0
    largest = min(limit, function.max_threads)
    for threads in sorted({largest, *range(largest // _WARP * _WARP, 0, -_WARP)}, reverse=True):
        dynamic = int(shared_of(threads)) if shared_of else number(dynamicSMemSize)
        blocks = blocks_per_multiprocessor(function, threads, dynamic)
        # Of the block sizes with equally many resident threads, the driver chooses the largest.
        if blocks * threads > best:
            best, best_threads, best_blocks = blocks * threads, threads, blocks
    return best_blocks * attribute("MULTIPROCESSOR_COUNT"), best_threads


@entry(values=1)
def cuOccupancyAvailableDynamicSMemPerBlock(func: Any, numBlocks: Any, blockSize: Any) -> int:
    """Return how much dynamic shared memory leaves room for the blocks (cuOccupancyAvailableDynamicSMemPerBlock)."""
    function = find_launchable(func)
    blocks, threads = number(numBlocks), number(blockSize)
    if blocks <= 0 or threads <= 0 or blocks > blocks_per_multiprocessor(function, threads, 0):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    # Driver 580.159 does not subtract the shared memory that it reserves for itself in each block.
    unit = _MULTIPROCESSOR.shared_unit
    share = _MULTIPROCESSOR.shared_bytes // blocks // unit * unit
    return min(share - function.shared_bytes, function.dynamic_shared)


@entry(values=1)
def cuOccupancyMaxActiveClusters(func: Any, config: Any) -> int:
    """Return how many clusters the device holds at once (cuOccupancyMaxActiveClusters)."""
    function = find_launchable(func)
    blocks = _blocks_of(function, config)
    cluster = _cluster_of(function, config)
    if cluster is None:
        return 0
    grid = config.gridDimX, config.gridDimY, config.gridDimZ
    if not all(grid):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if (
        not 0 < prod(cluster) <= largest_cluster(function)
        or cluster != (function.required_cluster or cluster)
        or any(count % part for count, part in zip(grid, cluster, strict=True))
    ):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE)
    return _clusters(min(blocks, _MOST_CLUSTERED_BLOCKS), prod(cluster))


@entry(values=1)
def cuOccupancyMaxPotentialClusterSize(func: Any, config: Any) -> int:
    """Return the largest number of blocks in a cluster (cuOccupancyMaxPotentialClusterSize)."""
    function = find_launchable(func)
    return largest_cluster(function) if _blocks_of(function, config) else 0


def resident_blocks(function: LoadedFunction, threads: int, dynamic_shared: int, cluster: int) -> int:
    """Return how many blocks the device holds at once, in clusters of `cluster` blocks."""
    blocks = blocks_per_multiprocessor(function, threads, dynamic_shared)
    return blocks * attribute("MULTIPROCESSOR_COUNT") if cluster == 1 else _clusters(blocks, cluster) * cluster


def _clusters(blocks: int, size: int) -> int:
    return sum(group * blocks // size for group in _GROUPS)


def largest_cluster(function: LoadedFunction) -> int:
    """Return the largest number of blocks that a kernel's cluster may have."""
    return _LARGEST_CLUSTER if function.non_portable_cluster else _LARGEST_PORTABLE_CLUSTER


def _blocks_of(function: LoadedFunction, config: Any) -> int:
    threads = 0 if config is None else config.blockDimX * config.blockDimY * config.blockDimZ
    if not threads:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return blocks_per_multiprocessor(function, threads, config.sharedMemBytes)


def _cluster_of(function: LoadedFunction, config: Any) -> tuple[int, int, int] | None:
    """Return the cluster extents of a configuration or, if it has none, those that the kernel requires."""
    for item in config.attrs[: config.numAttrs]:
        if item.id == CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            extents = item.value.clusterDim
            return extents.x, extents.y, extents.z
    return function.required_cluster
