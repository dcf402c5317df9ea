"""Operations: the actions that pieces of work perform and that nodes of graphs hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from cuda.bindings.driver import CUgraphNodeType, CUresult

if TYPE_CHECKING:
    from ..contexts import Context
    from .work import Work


class ValueWait(Protocol):
    """A wait for a value in memory."""

    @property
    def met(self) -> bool:
        """Whether the work that waits can go on, because the value is there or never can be."""

    def deadlock(self, seconds: float) -> FaultError | None:
        """Return the fault of a wait that nothing will end, None for one that something outside the queue may end.

        No queued work can end the wait, which has lasted for some seconds.
        """


# The waits that hold up an operation, which can go on when any of them is met.
Waits = tuple[ValueWait, ...]


class Operation:
    """An action that is submitted to a stream; graph nodes hold the same objects.

    `node_type` is the type of a graph node that holds it; None means that stream capture refuses it. `computes` says
    that it is a kernel or a similar operation, whose result is lost if the program never waits for it.
    """

    __slots__ = ()

    node_type: ClassVar[CUgraphNodeType | None] = None
    computes: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"work of a stream ({type(self).__name__})"

    @property
    def inner(self) -> tuple[Any, ...]:
        """Return the graphs inside the operation, which belong to the node that holds it."""
        return ()

    @property
    def may_wait(self) -> bool:
        """Return whether the operation may wait for values in memory, so that other work runs in the middle of it."""
        return False

    def run(self, context: Context) -> None:
        """Perform the operation now, in a context; raise FaultError if it fails."""
        raise NotImplementedError

    def steps(self, context: Context) -> Iterator[Waits]:
        """Perform the operation like `run`, in steps: before each one but the first, yield the waits that hold it up.

        Another step that is taken before any of them is met only yields them again.
        """
        self.run(context)
        return iter(())

    def describe(self) -> str:
        """Return a description of one or two lines for a drawing of a graph, "" for none."""
        return ""

    def parameters(self) -> list[str]:
        """Return further lines for a drawing of a graph with all parameters."""
        return []

    def note_launched(self, launch: Work) -> None:
        """Note that a launch of a graph that contains the operation has been queued."""

    def discard(self) -> None:
        """Undo the effects of adding it to a graph, when its node is destroyed."""


class AccountingOperation(Operation):
    """An operation that only keeps account of memory, and therefore runs even after work that was interrupted."""

    __slots__ = ()


class FaultError(Exception):
    """A fault in a piece of work; a sticky fault ends its context."""

    def __init__(self, status: CUresult, report: str, *, sticky: bool = True) -> None:
        super().__init__(report)
        self.status = status
        self.report = report
        self.sticky = sticky
