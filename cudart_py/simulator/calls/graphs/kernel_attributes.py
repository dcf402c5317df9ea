"""The attributes of kernel nodes in graphs."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUkernelNodeAttrValue, CUlaunchAttributeID, CUresult

from ...state.arguments import number
from ...state.errors import StatusError, invalid_value
from ...state.queue.graphs import find_node
from ...state.streams import GREATEST_PRIORITY, LEAST_PRIORITY
from ..entry import entry
from ..launches.attributes import VALUE_BYTES, LaunchAttributes
from ..launches.launches import KernelLaunch, checked_kernel
from .node_parameters import require

if TYPE_CHECKING:
    from ...state.queue.graphs import Node

_ID = CUlaunchAttributeID


@entry(values=1)
def cuGraphKernelNodeGetAttribute(hNode: Any, attr: Any) -> Any:
    """Return an attribute of a kernel node (cuGraphKernelNodeGetAttribute)."""
    kernel = require(find_node(hNode).operation, KernelLaunch)
    made = CUkernelNodeAttrValue()
    ctypes.memmove(made.getPtr(), kernel.attributes.value(number(attr)).getPtr(), VALUE_BYTES)
    return made


@entry()
def cuGraphKernelNodeSetAttribute(hNode: Any, attr: Any, value: Any) -> None:
    """Set an attribute of a kernel node (cuGraphKernelNodeSetAttribute)."""
    node, identity = find_node(hNode), number(attr)
    kernel = require(node.operation, KernelLaunch)
    kernel.attributes.value(identity)  # raises for an attribute that nodes don't have
    if value is None:
        raise invalid_value()
    if identity == _ID.CU_LAUNCH_ATTRIBUTE_PRIORITY:
        limited = CUkernelNodeAttrValue()
        limited.priority = min(max(int(value.priority), GREATEST_PRIORITY), LEAST_PRIORITY)
        value = limited
    _set(node, kernel, kernel.attributes.changed(_ID(identity), value))


@entry()
def cuGraphKernelNodeCopyAttributes(dst: Any, src: Any) -> None:
    """Copy all attributes of a kernel node to another one (cuGraphKernelNodeCopyAttributes)."""
    node, source = find_node(dst), find_node(src)
    kernel = require(node.operation, KernelLaunch)
    _set(node, kernel, require(source.operation, KernelLaunch).attributes)


def _set(node: Node, kernel: KernelLaunch, attributes: LaunchAttributes) -> None:
    """Give a node's launch other attributes; raise CUDA_ERROR_INVALID_CLUSTER_SIZE if its grid rules them out."""
    launch, cluster = kernel.launch, attributes.cluster
    if cluster and (0 in cluster or any(count % part for count, part in zip(launch.grid, cluster, strict=True))):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE)
    extents = (*launch.grid, *launch.block)
    node.operation = checked_kernel(kernel.function, extents, launch.shared_bytes, launch.parameters, attributes)
