"""Library calls: computations on device memory that wait in streams like kernels."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUgraphNodeType, CUresult

from ....host.arithmetic import device_arithmetic
from ...state.queue.operations import FaultError, Operation
from ...state.streams import find_stream, submit
from .operands import Operand

if TYPE_CHECKING:
    from ...state.contexts import Context


Indirect = Callable[[], tuple[Sequence[Operand], Sequence[Operand]]]


class LibraryCall(Operation):
    """A library call, as work in a stream or a node of a graph: its inputs, its outputs and its computation.

    The memory of `workspaces` must be live when the call runs; its contents don't matter. `indirect` returns further
    inputs and outputs, whose addresses are read from the other inputs when the call runs.
    """

    __slots__ = ("_compute", "_indirect", "_reads", "_workspaces", "_writes", "name")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
    computes = True

    def __init__(
        self,
        name: str,
        compute: Callable[[], None],
        reads: Sequence[Operand],
        writes: Sequence[Operand],
        workspaces: Sequence[Operand],
        indirect: Indirect | None,
    ) -> None:
        self._indirect = indirect
        self.name = name
        self._compute = compute
        self._reads, self._writes, self._workspaces = _filled(reads), _filled(writes), _filled(workspaces)

    def __str__(self) -> str:
        return f"the call of {self.name}"

    def describe(self) -> str:
        """Return the name of the library's function."""
        return self.name

    def run(self, context: Context) -> None:
        """Check all memory that the call accesses, and compute."""
        for operand in self._workspaces:
            operand.require(context, self.name)
        self._check(context, self._reads, self._writes)
        further: tuple[Operand, ...] = ()
        if self._indirect is not None:
            reads, writes = map(_filled, self._indirect())
            self._check(context, reads, writes)
            further = writes
        self._compute_or_fault()
        for operand in (*self._writes, *further):
            operand.note_written()

    def _compute_or_fault(self) -> None:
        """Compute; raise FaultError for an exception of NumPy or SciPy, which must not interrupt the rest of the queue.

        An index outside an array ends the context, as an illegal access does. After other exceptions, the context can
        be used. They are never those of the program's signal handlers, which run in another thread.
        """
        try:
            with device_arithmetic():  # infinities and NaNs propagate
                self._compute()
        except FaultError:
            raise
        except IndexError as error:
            raise FaultError(CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, f"{self.name}: {error}") from error
        except Exception as error:
            status = CUresult.CUDA_ERROR_UNKNOWN
            if isinstance(error, MemoryError):
                status = CUresult.CUDA_ERROR_OUT_OF_MEMORY
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{self.name}: the simulator's computation raised {type(error).__name__}: {error}"
            raise FaultError(status, f"{text} ({place.filename}:{place.lineno})", sticky=False) from error

    def _check(self, context: Context, reads: Sequence[Operand], writes: Sequence[Operand]) -> None:
        for operand in (*reads, *writes):
            operand.require(context, self.name)
        for operand in reads:
            operand.check_read(self.name)
        for operand in writes:
            operand.check_write(self.name)


def _filled(operands: Sequence[Operand]) -> tuple[Operand, ...]:
    """Return the operands that have elements; empty operands may have any address."""
    return tuple(operand for operand in operands if operand.extent)


def queue(
    stream: int,
    name: str,
    compute: Callable[[], None],
    *,
    reads: Sequence[Operand] = (),
    writes: Sequence[Operand] = (),
    workspaces: Sequence[Operand] = (),
    indirect: Indirect | None = None,
) -> None:
    """Submit a call to a stream, or add it to the graph if the stream is being captured."""
    submit(find_stream(stream), LibraryCall(name, compute, reads, writes, workspaces, indirect))
