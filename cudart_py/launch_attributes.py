"""Launches with attributes: cooperative ones, and clusters of blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import errors
from ._driver import api
from .device import activated

if TYPE_CHECKING:
    from .kernel import Kernel
    from .launch import LaunchShape

__all__ = ["make_config"]

# Every device with clusters runs this many blocks in one; more only some, and the kernel must allow it.
_PORTABLE_CLUSTER = 8
_CLUSTER_CAPABILITY = (9, 0)


def make_config(kernel: Kernel, shape: LaunchShape, stream: int, cooperative: bool, cluster: Any) -> Any:
    """Return the CUlaunchConfig of a launch that has attributes, None for one that has none.

    Raises ValueError naming the kernel for a cluster that does not divide the grid, is too large or is not the
    one that the kernel was compiled for, and LaunchError for a cooperative grid that the device cannot hold at
    once, with the most blocks that it can. NotSupportedError for clusters before compute capability 9.0.
    """
    fixed = _compiled_cluster(kernel)
    blocks = _checked_cluster(kernel, shape, cluster, fixed)
    if not cooperative and cluster is None:
        return None
    from cuda.bindings import driver as enums

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
    with activated(kernel.device):
        if math.prod(blocks) > _PORTABLE_CLUSTER:
            _allow_large_clusters(kernel, blocks, config)
        if cooperative:
            _check_resident(kernel, shape, blocks, config)
    return config


def _compiled_cluster(kernel: Kernel) -> tuple[int, int, int] | None:
    """Return the cluster that the kernel was compiled for by `__cluster_dims__`, or None."""
    if kernel.device.compute_capability < _CLUSTER_CAPABILITY:
        return None
    x, y, z = kernel.required_cluster
    return (x, y, z) if x and y and z else None


def _checked_cluster(
    kernel: Kernel, shape: LaunchShape, cluster: Any, fixed: tuple[int, int, int] | None
) -> tuple[int, int, int]:
    if cluster is None:
        blocks = fixed or (1, 1, 1)
    else:
        if kernel.device.compute_capability < _CLUSTER_CAPABILITY:
            raise errors.NotSupportedError(
                f"{kernel.name}: clusters need compute capability 9.0, and this device has "
                f"{'.'.join(map(str, kernel.device.compute_capability))}"
            )
        from .launch import dimensions

        blocks = dimensions(kernel, "cluster", cluster, kernel.device.properties.max_grid_dim)
        if fixed is not None and blocks != fixed:
            raise ValueError(f"{kernel.name} was compiled for clusters of {fixed}, not of {blocks}")
    for axis, count, part in zip("xyz", shape.grid, blocks, strict=True):
        if count % part:
            raise ValueError(f"{kernel.name}: grid.{axis} = {count} does not divide into clusters of {part} blocks")
    return blocks


def _allow_large_clusters(kernel: Kernel, blocks: tuple[int, int, int], config: Any) -> None:
    from cuda.bindings import driver as enums

    allowed = enums.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    if not api.cuFuncGetAttribute(allowed, kernel.handle):
        api.cuFuncSetAttribute(kernel.handle, allowed, 1)
    most = int(api.cuOccupancyMaxPotentialClusterSize(kernel.handle, config))
    if math.prod(blocks) > most:
        raise ValueError(
            f"{kernel.name}: a cluster of {blocks} has {math.prod(blocks)} blocks, and {most} is the most here"
        )


def _check_resident(kernel: Kernel, shape: LaunchShape, blocks: tuple[int, int, int], config: Any) -> None:
    wanted, cluster = math.prod(shape.grid), math.prod(blocks)
    threads = math.prod(shape.block)
    if cluster > 1:
        most = int(api.cuOccupancyMaxActiveClusters(kernel.handle, config)) * cluster
        how = f"in clusters of {blocks}"
    else:
        each = int(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel.handle, threads, shape.shared_bytes))
        most = each * kernel.device.sm_count
        how = f"{each} on each of {kernel.device.sm_count} multiprocessors"
    if wanted > most:
        raise errors.LaunchError(
            f"{kernel.name}: a cooperative grid of {shape.grid} has {wanted} blocks, and {most} blocks of {threads} "
            f"threads and {shape.shared_bytes} bytes of dynamic shared memory can be resident at once ({how})",
            status=_too_large(),
            call="cuLaunchKernelEx",
        )


def _too_large() -> Any:
    from cuda.bindings import driver as enums

    return enums.CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
