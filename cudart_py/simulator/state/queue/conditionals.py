"""Conditionals: nodes whose graphs run once, repeatedly or not at all, depending on a number that kernels set."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUgraphConditionalNodeType, CUgraphNodeType

from ..handles import next_handle
from .operations import Operation

if TYPE_CHECKING:
    from ..contexts import Context

_KIND = "CU_GRAPH_COND_TYPE_"


class Condition:
    """A number on which one conditional node of a graph depends; kernels set it by its handle.

    `assigned` says whether it is set to `default` when a launch of the graph begins.
    """

    def __init__(self, context: Context, default: int, *, assigned: bool) -> None:
        self.context = context
        self.default = default
        self.assigned = assigned
        self.value = 0
        self.used = False
        self.handle = next_handle()
        context.conditions[self.handle] = self

    def begin(self) -> None:
        """Set the value at the start of a graph launch: the default if `assigned`, or else 0 (undefined in CUDA)."""
        self.value = self.default if self.assigned else 0


class Conditional(Operation):
    """A conditional node's condition, its kind and the graphs of its bodies, which it owns."""

    __slots__ = ("bodies", "condition", "handles", "kind")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL

    def __init__(self, condition: Condition, kind: CUgraphConditionalNodeType, bodies: tuple[Any, ...]) -> None:
        self.condition = condition
        self.kind = kind
        self.bodies = bodies
        # The array of handles, owned by the driver, to which the parameters of the node point.
        self.handles = (ctypes.c_size_t * len(bodies))(*(body.handle for body in bodies))

    @property
    def inner(self) -> tuple[Any, ...]:
        """Return the graphs of the bodies."""
        return self.bodies

    def describe(self) -> str:
        """Return the kind and the number of nodes of each body."""
        counts = ", ".join(str(len(body.nodes)) for body in self.bodies)
        return f"{self.kind.name.removeprefix(_KIND).lower()} of {counts} nodes"

    def parameters(self) -> list[str]:
        """Return the condition's handle and its default."""
        return [f"condition {self.condition.handle:#x}", f"default {self.condition.default}"]
