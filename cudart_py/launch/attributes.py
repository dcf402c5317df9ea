"""Launches with attributes: cooperative launches, clusters, programmatic dependent launches, and preferences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..base import arguments
from ..context.current import activated
from ..driver import enums
from ..driver.calls import api
from .function import Function
from .shape import LaunchShape, dimensions

# The portable cluster size: every device with clusters runs clusters of this many blocks. Some devices run larger ones
# if the kernel allows them.
_PORTABLE_CLUSTER = 8
# The compute capability required for clusters, programmatic dependent launches and memory domains.
_HOPPER = (9, 0)
_SCHEDULINGS = ("default", "spread", "load_balancing")
_DOMAINS = ("default", "remote")


@dataclass(frozen=True)
class LaunchOptions:
    """The options of `Kernel.configure` other than the shape and the stream, not yet checked."""

    cooperative: Any = False
    cluster: Any = None
    programmatic: Any = False
    priority: Any = None
    carveout: Any = None
    cluster_scheduling: Any = None
    memory_domain: Any = None


# The keywords that `Kernel.launch` accepts.
NAMES = frozenset({"shared_bytes", "stream", *LaunchOptions.__dataclass_fields__})


def make_config(function: Function, shape: LaunchShape, stream: int, options: LaunchOptions) -> Any:
    """Return the CUlaunchConfig of a launch with attributes, or None for a launch without.

    Raises NotSupportedError first, for options that need compute capability 9.0. Raises ValueError naming the kernel
    for a cluster that does not divide the grid, is too large or is not the one that the kernel was compiled for. Raises
    LaunchError for a cooperative grid that cannot be resident at once, with the maximum number of blocks that can.
    """
    cooperative = arguments.flag(function.name, "cooperative", options.cooperative)
    blocks = _checked_cluster(function, shape.grid, options.cluster)
    attributes = [*_preferences(function, options)]
    if options.cluster is not None:
        attributes.append(_cluster_attribute(blocks))
    if cooperative:
        attributes.append(_attribute("COOPERATIVE", cooperative=1))
    if not attributes:
        return None
    config = _config(shape, attributes)
    config.hStream = enums.CUstream(stream)
    with activated(function.device):
        if math.prod(blocks) > _PORTABLE_CLUSTER:
            _check_large_cluster(function, blocks, config)
        if cooperative:
            _check_resident(function, shape, blocks, config)
    return config


def _preferences(function: Function, options: LaunchOptions) -> list[Any]:
    """Return the attributes other than clusters and cooperative launch: scheduling, priority, cache and fences."""
    name, found = function.name, []
    if arguments.flag(name, "programmatic", options.programmatic):
        _require_hopper(function, "programmatic dependent launches")
        found.append(_attribute("PROGRAMMATIC_STREAM_SERIALIZATION", programmaticStreamSerializationAllowed=1))
    if options.priority is not None:
        least, greatest = function.device.stream_priorities
        priority = arguments.integer(name, "priority", options.priority, greatest, least)
        found.append(_attribute("PRIORITY", priority=priority))
    if options.carveout is not None:
        carveout = arguments.integer(name, "carveout", options.carveout, 0, 100)
        found.append(_attribute("PREFERRED_SHARED_MEMORY_CARVEOUT", sharedMemCarveout=carveout))
    if options.cluster_scheduling is not None:
        word = arguments.choice(name, "cluster_scheduling", options.cluster_scheduling, _SCHEDULINGS)
        _require_hopper(function, "clusters")
        policy = getattr(enums.CUclusterSchedulingPolicy, f"CU_CLUSTER_SCHEDULING_POLICY_{word.upper()}")
        found.append(_attribute("CLUSTER_SCHEDULING_POLICY_PREFERENCE", clusterSchedulingPolicyPreference=policy))
    if options.memory_domain is not None:
        word = arguments.choice(name, "memory_domain", options.memory_domain, _DOMAINS)
        _require_hopper(function, "memory domains")
        domain = getattr(enums.CUlaunchMemSyncDomain, f"CU_LAUNCH_MEM_SYNC_DOMAIN_{word.upper()}")
        found.append(_attribute("MEM_SYNC_DOMAIN", memSyncDomain=domain))
    return found


def _attribute(kind: str, **value: Any) -> Any:
    """Return a CUlaunchAttribute.

    `kind` is the enumerator's name without its prefix, and the keyword is the field of the union that holds the value.
    """
    attribute = enums.CUlaunchAttribute()
    attribute.id = getattr(enums.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{kind}")
    for field, content in value.items():
        setattr(attribute.value, field, content)
    return attribute


def _cluster_attribute(blocks: tuple[int, int, int]) -> Any:
    attribute = _attribute("CLUSTER_DIMENSION")
    size = attribute.value.clusterDim
    size.x, size.y, size.z = blocks
    return attribute


def _config(shape: LaunchShape, attributes: list[Any]) -> Any:
    """Return the CUlaunchConfig of a shape on the legacy default stream."""
    config = enums.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
    config.sharedMemBytes = shape.shared_bytes
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _require_hopper(function: Function, what: str) -> None:
    capability = function.device.compute_capability
    if capability < _HOPPER:
        has = ".".join(map(str, capability))
        raise errors.NotSupportedError(
            f"{function.name}: {what} need compute capability 9.0 or later, and this device has {has}"
        )


def _checked_cluster(function: Function, grid: tuple[int, int, int] | None, cluster: Any) -> tuple[int, int, int]:
    """Return the cluster shape in blocks: the requested one, the one that the kernel was compiled for, or one block.

    The shape must divide `grid`, unless `grid` is None.
    """
    name, device = function.name, function.device
    if device.compute_capability < _HOPPER:
        if cluster is not None:
            _require_hopper(function, "clusters")
        return 1, 1, 1
    compiled = function.required_cluster if all(function.required_cluster) else None
    if cluster is None:
        blocks = compiled or (1, 1, 1)
    else:
        blocks = dimensions(name, "cluster", cluster, device.properties.max_grid_dim)
        if compiled is not None and blocks != compiled:
            rule = f"be {compiled}, as the kernel was compiled"
            raise arguments.unusable(name, "cluster", rule, blocks)
    for axis, count, part in zip("xyz", grid or blocks, blocks, strict=True):
        if count % part:
            rule = f"be a multiple of 'cluster.{axis}', {part}"
            raise arguments.unusable(name, f"grid.{axis}", rule, count)
    return blocks


def _check_large_cluster(function: Function, blocks: tuple[int, int, int], config: Any) -> None:
    function._allow_large_clusters()
    most = int(api.cuOccupancyMaxPotentialClusterSize(function.handle, config))
    if math.prod(blocks) > most:
        rule = f"have at most {most} blocks on this device"
        raise arguments.unusable(function.name, "cluster", rule, f"{math.prod(blocks)} in {blocks}")


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
            f"{function.name}: a cooperative grid of {shape.grid} has {wanted} blocks, but only {most} blocks of "
            f"{threads} threads and {shape.shared_bytes} bytes of dynamic shared memory can be resident at once "
            f"({how})",
            status=enums.CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            call="cuLaunchKernelEx",
        )


def active_clusters(function: Function, shape: LaunchShape, cluster: Any) -> int:
    """Return the maximum number of clusters of a shape that are resident at once; see `Kernel.max_active_clusters`."""
    _require_hopper(function, "clusters")
    blocks = _checked_cluster(function, None, cluster)
    config = _config(shape._replace(grid=blocks), [_cluster_attribute(blocks)])
    with activated(function.device):
        if math.prod(blocks) > _PORTABLE_CLUSTER:
            _check_large_cluster(function, blocks, config)
        return int(api.cuOccupancyMaxActiveClusters(function.handle, config))


def largest_cluster(function: Function, shape: LaunchShape) -> int:
    """Return the maximum number of blocks per cluster of the kernel; see `Kernel.max_cluster_size`."""
    _require_hopper(function, "clusters")
    function._allow_large_clusters()
    with activated(function.device):
        return int(api.cuOccupancyMaxPotentialClusterSize(function.handle, _config(shape, [])))
