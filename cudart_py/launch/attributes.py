"""Launches with attributes: cooperative ones, and clusters of blocks."""

from __future__ import annotations

import math
from typing import Any

from .. import errors
from ..context.current import activated
from ..driver import enums
from ..driver.seam import api
from .function import Function
from .shape import LaunchShape, dimensions

__all__ = ["make_config"]

# Every device with clusters runs this many blocks in one; more only some, and the kernel must allow it.
_PORTABLE_CLUSTER = 8
_CLUSTER_CAPABILITY = (9, 0)


def make_config(function: Function, shape: LaunchShape, stream: int, cooperative: bool, cluster: Any) -> Any:
    """Return the CUlaunchConfig of a launch that has attributes, None for one that has none.

    Raises ValueError naming the kernel for a cluster that does not divide the grid, is too large or is not the
    one that the kernel was compiled for, and LaunchError for a cooperative grid that the device cannot hold at
    once, with the most blocks that it can. NotSupportedError for clusters before compute capability 9.0.
    """
    blocks = _checked_cluster(function, shape, cluster)
    if not cooperative and cluster is None:
        return None
    attributes = []
    if cluster is not None:
        attribute = enums.CUlaunchAttribute()
        attribute.id = enums.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = blocks
        attributes.append(attribute)
    if cooperative:
        attribute = enums.CUlaunchAttribute()
        attribute.id = enums.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    config = enums.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
    config.sharedMemBytes = shape.shared_bytes
    config.hStream = enums.CUstream(stream)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    with activated(function.device):
        if math.prod(blocks) > _PORTABLE_CLUSTER:
            _check_large_cluster(function, blocks, config)
        if cooperative:
            _check_resident(function, shape, blocks, config)
    return config


def _checked_cluster(function: Function, shape: LaunchShape, cluster: Any) -> tuple[int, int, int]:
    """Return the blocks of a cluster: those asked for, those that the kernel was compiled for, or one."""
    name, device = function.name, function.device
    if device.compute_capability < _CLUSTER_CAPABILITY:
        if cluster is not None:
            has = ".".join(map(str, device.compute_capability))
            raise errors.NotSupportedError(f"{name}: clusters need compute capability 9.0, and this device has {has}")
        return 1, 1, 1
    compiled = function.required_cluster if all(function.required_cluster) else None
    if cluster is None:
        blocks = compiled or (1, 1, 1)
    else:
        blocks = dimensions(name, "cluster", cluster, device.properties.max_grid_dim)
        if compiled is not None and blocks != compiled:
            raise ValueError(f"{name} was compiled for clusters of {compiled}, not of {blocks}")
    for axis, count, part in zip("xyz", shape.grid, blocks, strict=True):
        if count % part:
            raise ValueError(f"{name}: grid.{axis} = {count} does not divide into clusters of {part} blocks")
    return blocks


def _check_large_cluster(function: Function, blocks: tuple[int, int, int], config: Any) -> None:
    function._allow_large_clusters()
    most = int(api.cuOccupancyMaxPotentialClusterSize(function.handle, config))
    if math.prod(blocks) > most:
        raise ValueError(
            f"{function.name}: a cluster of {blocks} has {math.prod(blocks)} blocks, and {most} is the most here"
        )


def _check_resident(function: Function, shape: LaunchShape, blocks: tuple[int, int, int], config: Any) -> None:
    wanted, cluster = math.prod(shape.grid), math.prod(blocks)
    threads = math.prod(shape.block)
    if cluster > 1:
        most = int(api.cuOccupancyMaxActiveClusters(function.handle, config)) * cluster
        how = f"in clusters of {blocks}"
    else:
        each = int(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(function.handle, threads, shape.shared_bytes))
        most = each * function.device.sm_count
        how = f"{each} on each of {function.device.sm_count} multiprocessors"
    if wanted > most:
        raise errors.LaunchError(
            f"{function.name}: a cooperative grid of {shape.grid} has {wanted} blocks, and {most} blocks of {threads} "
            f"threads and {shape.shared_bytes} bytes of dynamic shared memory can be resident at once ({how})",
            status=enums.CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            call="cuLaunchKernelEx",
        )
