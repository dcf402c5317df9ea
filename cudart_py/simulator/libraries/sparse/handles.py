"""cuSPARSE handles in software, and code shared by the functions that take one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nvmath.bindings.cusparse import Operation, Status

from ...state.streams import complete_stream, find_stream
from ..common.calls import queue
from ..common.functions import LibraryError, Objects, entry
from ..common.operands import Operand, vector

# The decorator of functions that queue work.
call = entry(Status.EXECUTION_FAILED)
# The size of the workspace that the functions request, in bytes.
WORKSPACE = 64


@dataclass
class Handle:
    """The state of a handle."""

    stream: int = 0


handles: Objects[Handle] = Objects(Status.NOT_INITIALIZED)


def create() -> int:
    """Return a new handle (cusparseCreate)."""
    return handles.add(Handle())


def destroy(handle: int) -> None:
    """Destroy a handle (cusparseDestroy)."""
    handles.remove(handle)


def set_stream(handle: int, stream_id: int) -> None:
    """Set the stream of later calls (cusparseSetStream)."""
    handles.find(handle).stream = int(stream_id)


def turned(matrix: Any, operation: int) -> Any:
    """Return a matrix, its transpose or its conjugate transpose."""
    if operation == Operation.NON_TRANSPOSE:
        return matrix
    return matrix.T if operation == Operation.TRANSPOSE else matrix.conj().T


def plain(*operations: int) -> None:
    """Raise LibraryError unless no operand is transposed."""
    if any(operation != Operation.NON_TRANSPOSE for operation in operations):
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator does not transpose these operands")


def workspace(address: int) -> list[Operand]:
    """Return the workspace at an address."""
    return [vector(int(address), WORKSPACE, np.uint8)]


def queue_and_wait(handle: int, name: str, compute: Callable[[], None], reads: list[Operand], buffer: int) -> None:
    """Queue a computation whose result the host needs, and wait for it like the library."""
    stream = handles.find(handle).stream
    queue(stream, name, compute, reads=reads, workspaces=workspace(buffer) if buffer else [])
    complete_stream(find_stream(stream))
