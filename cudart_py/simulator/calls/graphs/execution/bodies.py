"""The execution of the bodies of conditional nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUgraphConditionalNodeType, CUgraphNodeType, CUresult

from ....state.queue.conditionals import Condition, Conditional
from ....state.queue.operations import FaultError, Operation, Waits
from ...launches.launches import SECONDS_VARIABLE, launch_limits
from .node_order import NodeOrder, run_nodes

if TYPE_CHECKING:
    from ....state.contexts import Context

_KIND = CUgraphConditionalNodeType


class RunConditional(Operation):
    """A conditional node as it was when its graph was instantiated or updated."""

    __slots__ = ("bodies", "condition", "kind")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL

    def __init__(self, conditional: Conditional, bodies: Sequence[tuple[Sequence[Operation], NodeOrder]]) -> None:
        self.condition = conditional.condition
        self.kind = conditional.kind
        self.bodies = bodies

    def steps(self, context: Context) -> Iterator[Waits]:
        """Run the body that the condition's value selects, or a loop's body until the value is 0."""
        bodies, value = self.bodies, self.condition.value
        if self.kind == _KIND.CU_GRAPH_COND_TYPE_WHILE:
            yield from self._loop(context)
        elif self.kind == _KIND.CU_GRAPH_COND_TYPE_SWITCH:
            for operations, order in bodies[value : value + 1]:
                yield from run_nodes(operations, order, context)
        else:
            for operations, order in bodies[:1] if value else bodies[1:]:
                yield from run_nodes(operations, order, context)

    def _loop(self, context: Context) -> Iterator[Waits]:
        ((operations, order),) = self.bodies
        _, seconds = launch_limits()
        start, rounds = time.monotonic(), 0
        while self.condition.value:
            if seconds is not None and time.monotonic() - start > seconds:
                raise FaultError(
                    CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
                    f"a loop of a graph has not ended after {rounds} rounds and {seconds} seconds, since no kernel "
                    f"has set its condition to 0 ({SECONDS_VARIABLE} sets this limit)",
                )
            yield from run_nodes(operations, order, context)
            rounds += 1


def conditions_of(operations: Sequence[Operation]) -> Iterator[Condition]:
    """Yield the conditions of all conditional nodes among operations, including those inside bodies."""
    for operation in operations:
        if isinstance(operation, RunConditional):
            yield operation.condition
            for inner, _ in operation.bodies:
                yield from conditions_of(inner)
