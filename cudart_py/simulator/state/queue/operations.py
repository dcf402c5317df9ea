"""Operations: what a piece of work does, and what a node of a graph holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from cuda.bindings.driver import CUgraphNodeType, CUresult

if TYPE_CHECKING:
    from ..contexts import Context


class Operation:
    """Something that a stream is given to do; graph nodes hold the same objects.

    `node_type` is the type of a graph node that holds it; None says that stream capture refuses it. `computes` says
    that it is a kernel or the like, which a program has launched for nothing where it never waits for it.
    """

    __slots__ = ()

    node_type: ClassVar[CUgraphNodeType | None] = None
    computes: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"work of a stream ({type(self).__name__})"

    @property
    def inner(self) -> tuple[Any, ...]:
        """Return the graphs inside, which a node that holds it owns."""
        return ()

    def run(self, context: Context) -> None:
        """Do it now, in a context; raise FaultError when it can't be done."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return what a drawing of a graph says of it in one or two lines, "" for nothing."""
        return ""

    def parameters(self) -> list[str]:
        """Return what a drawing with all parameters says besides, a line each."""
        return []

    def discard(self) -> None:
        """Undo the effects of its capture, when the graph that holds it is discarded."""


class AccountingOperation(Operation):
    """An operation that only keeps account of memory, and so runs after work that was broken off too."""

    __slots__ = ()


class FaultError(Exception):
    """A fault in a piece of work; a sticky fault ends its context."""

    def __init__(self, status: CUresult, report: str, *, sticky: bool = True) -> None:
        super().__init__(report)
        self.status = status
        self.report = report
        self.sticky = sticky
