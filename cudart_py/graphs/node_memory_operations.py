"""Stream memory operations as the work of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base import arguments
from ..context.capture import RetainedObjects
from ..context.device import Device
from ..driver import enums
from ..driver.calls import raw
from ..driver.unwrap import failure
from ..streams.graphs.nodes import NodeWork
from ..streams.memory_operations import REMEDY, MemoryOperation, checked_operations, owners_of_all


class NodeMemoryOperations(NodeWork):
    """Writes of integers, and waits for integers, for a node of the kind "batch_mem_op" (cuGraphAddBatchMemOpNode).

        graph.add(cuda.graphs.NodeMemoryOperations([cuda.batches.WriteValue(flags[:1], 1)]), after=node)

    `operations` are as for `batches.memory_operations`, at least one, and run in order at each launch. Raises TypeError
    for other objects, and ValueError for closed arrays.
    """

    __slots__ = ("_operations",)

    _kind = "batch_mem_op"

    def __init__(self, operations: Iterable[MemoryOperation]) -> None:
        call = "NodeMemoryOperations"
        self._operations = checked_operations(call, operations)
        if not self._operations:
            raise arguments.unusable(call, "operations", "have at least one operation")

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError if an array was closed."""
        self._retained_by(0).check()

    def _parameters(self, device: Device) -> Any:
        """Return the parameters of a node with these operations."""
        result = enums.CUDA_BATCH_MEM_OP_NODE_PARAMS()
        result.ctx = enums.CUcontext(device.context)
        result.paramArray = [one._part() for one in self._operations]
        result.count = len(self._operations)
        result.flags = 0
        return result

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node with these operations to a graph, and return it."""
        status, node = raw.cuGraphAddBatchMemOpNode(graph, before, len(before), self._parameters(device))
        _check(status, "cuGraphAddBatchMemOpNode")
        return node

    def _set_node(self, node: int, device: Device) -> None:
        """Make a node of a graph run these operations."""
        (status,) = raw.cuGraphBatchMemOpNodeSetParams(node, self._parameters(device))
        _check(status, "cuGraphBatchMemOpNodeSetParams")

    def _change_node(self, executable: int, node: int, device: Device) -> None:
        """Make a node of an executable graph run these operations."""
        (status,) = raw.cuGraphExecBatchMemOpNodeSetParams(executable, node, self._parameters(device))
        _check(status, "cuGraphExecBatchMemOpNodeSetParams")

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the arrays, for the node to keep alive."""
        return RetainedObjects("memory operations", owners_of_all(self._operations), node)

    def __repr__(self) -> str:
        return f"<NodeMemoryOperations {self._operations}>"


def _check(status: Any, call: str) -> None:
    if status:
        raise failure(status, call, REMEDY)
