"""Copies and fills as the work of nodes."""

from __future__ import annotations

from typing import Any

from ..base import arguments
from ..context.capture import RetainedObjects
from ..context.device import Device
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.unwrap import failure
from ..memory.array import DeviceArray, region_of
from ..memory.fills import as_element, pattern_of, row_of
from ..memory.host_memory import pinned_owner
from ..memory.transfers import check_same, set_regions
from ..streams.graphs.nodes import NodeWork

_INSTEAD = "capture the work again and call ExecutableGraph.update"


class NodeCopy(NodeWork):
    """A copy for a node of the kind "memcpy" (cuGraphAddMemcpyNode, cuGraphExecMemcpyNodeSetParams).

        node = graph.add(cuda.graphs.NodeCopy(dst, src))
        executable.set_node(node, cuda.graphs.NodeCopy(dst, other))

    `dst` and `src` are device arrays or page-locked host arrays with the same dtype and number of elements,
    contiguous and not empty. In an executable graph, they must be in the same kinds of memory as the node's arrays,
    which must also be contiguous; the number of elements may differ from the node's. Raises TypeError for other types
    or if the dtypes differ, and ValueError for arrays that cannot be copied in this way.
    """

    __slots__ = ("_dst", "_owners", "_src")

    _kind = "memcpy"

    def __init__(self, dst: Any, src: Any) -> None:
        call = "NodeCopy"
        self._dst, self._src = region_of(call, "dst", dst, writes=True), region_of(call, "src", src)
        check_same(call, self._dst, self._src)
        self._owners: tuple[Any, ...] = ()
        for name, region in (("dst", self._dst), ("src", self._src)):
            if 0 in region.shape:
                raise arguments.unusable(call, name, "have at least one element", f"the shape {region.shape}")
            arguments.contiguous(call, name, region, _INSTEAD)
            if not region.on_device:
                owner = pinned_owner(region.array)
                if owner is None:
                    remedy = "use an array from pinned_empty"
                    raise arguments.unusable(call, name, "be page-locked for a graph to copy it", "pageable", remedy)
                self._owners += (owner,)

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError if an array was closed."""
        self._retained_by(0).check()

    def _parameters(self) -> Any:
        """Return the parameters of a node that copies between these arrays."""
        copy = enums.CUDA_MEMCPY3D()
        set_regions(copy, self._dst, self._src, enums.CUmemorytype)
        nbytes = self._dst.array.nbytes
        copy.WidthInBytes, copy.Height, copy.Depth = nbytes, 1, 1
        copy.dstPitch = copy.srcPitch = nbytes
        copy.dstHeight = copy.srcHeight = 1
        return copy

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node with this copy to a graph, and return it."""
        return api.cuGraphAddMemcpyNode(graph, before, len(before), self._parameters(), device.context)

    def _set_node(self, node: int, device: Device) -> None:
        """Make a node of a graph copy between these arrays."""
        api.cuGraphMemcpyNodeSetParams(node, self._parameters())

    def _change_node(self, executable: int, node: int, device: Device) -> None:
        """Make a node of an executable graph copy between these arrays."""
        (status,) = raw.cuGraphExecMemcpyNodeSetParams(executable, node, self._parameters(), device.context)
        if status:
            raise failure(
                status,
                "cuGraphExecMemcpyNodeSetParams",
                "A node's copy can be replaced only by one between the same kinds of memory and devices, and only if "
                f"the arrays of both are contiguous: otherwise {_INSTEAD}",
            )

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the objects that the copy uses, for the node to keep alive."""
        return RetainedObjects("a copy", (self._dst.array, self._src.array, *self._owners), node)

    def __repr__(self) -> str:
        return f"<NodeCopy of {self._dst.array.nbytes} bytes>"


class NodeFill(NodeWork):
    """A fill for a node of the kind "memset" (cuGraphAddMemsetNode, cuGraphExecMemsetNodeSetParams).

        node = graph.add(cuda.graphs.NodeFill(x, 1.0))
        executable.set_node(node, cuda.graphs.NodeFill(x, 2.0))

    `dst` is a device array that the driver can set with a single fill: not empty, and contiguous or with evenly
    spaced rows. `value` is as for `memset`. In an executable graph, a node that fills padded rows can change neither
    their shape nor their pitch. Raises TypeError for other types, and ValueError for a value that does not fit the
    dtype or is not a repetition of 8, 16 or 32 bits.
    """

    __slots__ = ("_dst", "_layout")

    _kind = "memset"

    def __init__(self, dst: DeviceArray, value: Any) -> None:
        call = "NodeFill"
        self._dst = arguments.opened(call, "dst", dst, DeviceArray)
        word, width = pattern_of(as_element(call, value, dst.dtype))
        if word is None:
            raise ValueError(
                f"{call}: argument 'value' must repeat a pattern of 8, 16 or 32 bits, and {value!r} as {dst.dtype} "
                f"does not; {_INSTEAD}"
            )
        if not dst.nbytes:
            raise arguments.unusable(call, "dst", "have at least one element", f"the shape {dst.shape}")
        dst = self._dst = dst._forward  # the elements are set in any order
        columns, shape, strides = row_of(dst, width)
        if len(shape) > 1:
            several = f"several, with shape {dst.shape} and strides {dst.strides}"
            raise arguments.unusable(call, "dst", "need only one fill of the driver", several, _INSTEAD)
        height, pitch = (shape[0], strides[0]) if shape else (1, 0)
        self._layout = (word, width, columns, height, pitch)

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError if the array was closed or is on another device."""
        self._retained_by(0).check()
        if self._dst.device is not device:
            rule = f"fill an array on device {device.ordinal}, like the graph"
            raise arguments.unusable(call, "work", rule, f"one on device {self._dst.device.ordinal}")

    def _parameters(self) -> Any:
        """Return the parameters of a node that fills this array."""
        fill = enums.CUDA_MEMSET_NODE_PARAMS()
        fill.dst = enums.CUdeviceptr(self._dst.pointer)
        fill.value, fill.elementSize, fill.width, fill.height, fill.pitch = self._layout
        return fill

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node with this fill to a graph, and return it."""
        return api.cuGraphAddMemsetNode(graph, before, len(before), self._parameters(), device.context)

    def _set_node(self, node: int, device: Device) -> None:
        """Make a node of a graph fill this array."""
        api.cuGraphMemsetNodeSetParams(node, self._parameters())

    def _change_node(self, executable: int, node: int, device: Device) -> None:
        """Make a node of an executable graph fill this array."""
        (status,) = raw.cuGraphExecMemsetNodeSetParams(executable, node, self._parameters(), device.context)
        if status:
            raise failure(
                status,
                "cuGraphExecMemsetNodeSetParams",
                "A node's fill can be replaced only by one of the same kind of memory, and a fill of rows with a pitch "
                f"only by one with the same rows and pitch: otherwise {_INSTEAD}",
            )

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the objects that the fill uses, for the node to keep alive."""
        return RetainedObjects("a fill", (self._dst,), node)

    def __repr__(self) -> str:
        return f"<NodeFill of {self._dst.nbytes} bytes>"
