"""Resets of all devices within the process that uses them, which no GPU's driver offers."""

from __future__ import annotations

from collections.abc import Collection

from cuda.bindings.driver import CUresult

from ...checks import findings
from ...state import fault_reports, memory
from ...state.contexts import all_contexts
from ...state.errors import StatusError
from ...state.memory import mappings
from ...state.queue import captures
from ...state.queue.graphs import graphs
from ...state.queue.value_waits import forget_writers
from ..entry import entry
from ..graphs.execution.executables import executables
from .contexts import end


@entry()
def reset(in_use: Collection[int]) -> None:
    """Drop everything that the contexts of all devices own; contexts that a fault has ended become usable again.

    A context keeps its handle and its references, so it remains current in the threads where it was current. The host
    may continue to use host memory at the addresses in `in_use`, until `drop_bytes`. During a stream capture, the call
    returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
    """
    if captures.active:
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    for graph in graphs:
        graph.destroy()
    executables.remove_all(lambda _: True)
    for context in all_contexts():
        if not context.active:
            continue
        references = context.references
        end(context, in_use)
        context.references, context.sticky = references, None
    mappings.drop_all()
    forget_writers()
    # Later calls should not report findings from before the reset.
    fault_reports.take_report()
    findings.pending.clear()


@entry(in_callbacks=True)
def drop_bytes(address: int) -> None:
    """Drop the bytes of host memory that was in use at a reset and no longer is."""
    memory.drop_bytes(address)
