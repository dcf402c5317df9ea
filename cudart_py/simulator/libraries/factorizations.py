"""Code shared by the software versions of cuSOLVER's functions, for matrices in column-major order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nvmath.bindings.cusolver import Status
from scipy.linalg import lapack

from .common.calls import queue
from .common.functions import LibraryError, Objects
from .common.numbers import DTYPES, LETTERS
from .common.operands import Operand, columns, vector

# The size in bytes of each workspace that the functions request, on the device and on the host.
WORKSPACE = 256


@dataclass
class Handle:
    """The state of a handle."""

    stream: int = 0


handles: Objects[Handle] = Objects(Status.NOT_INITIALIZED)


def matrix_at(address: int, rows: int, count: int, leading: int, code: int) -> Operand:
    """Return a matrix in column-major order; raise NOT_SUPPORTED for a cudaDataType that LAPACK lacks."""
    dtype = DTYPES.get(int(code))
    if dtype is None or dtype not in LETTERS.values():
        raise LibraryError(Status.NOT_SUPPORTED, f"the simulator does not factor matrices of the type {int(code)}")
    if min(rows, count) < 0 or leading < max(rows, 1):
        raise LibraryError(Status.INVALID_VALUE, f"a matrix of {rows} x {count} with leading dimension {leading}")
    return columns(int(address), rows, count, leading, dtype)


def lapack_function(name: str, matrix: Operand) -> Callable[..., Any]:
    """Return a LAPACK function for a matrix; `name` is its name without the letter of the dtype."""
    return lapack_for(name, matrix.dtype)


def lapack_for(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Return a LAPACK function for a dtype."""
    letter = next(letter for letter, known in LETTERS.items() if known == dtype)
    found: Callable[..., Any] = getattr(lapack, letter + name)
    return found


def triangle_of(matrix: Operand, *, lower: bool) -> list[Operand]:
    """Return the columns of one triangle of a matrix, including the diagonal."""
    order, size = matrix.shape[0], matrix.dtype.itemsize
    return [
        vector(
            matrix.address + column * matrix.strides[1] + (column * size if lower else 0),
            order - column if lower else column + 1,
            matrix.dtype,
        )
        for column in range(order)
    ]


def queue_factorization(
    handle: int,
    name: str,
    compute: Callable[[], int],
    info: int,
    *,
    reads: list[Operand],
    writes: list[Operand],
    workspace: tuple[int, int] | None = None,
) -> None:
    """Queue a computation that returns LAPACK's `info`, which is written to the device address `info`."""
    found = handles.find(handle)
    verdict = vector(int(info), 1, np.int32)
    area = [] if workspace is None else [vector(int(workspace[0]), int(workspace[1]), np.uint8)]
    if workspace is not None and workspace[1] < WORKSPACE:
        raise LibraryError(Status.INVALID_WORKSPACE, f"{name} needs {WORKSPACE} bytes of workspace, got {workspace[1]}")

    def decide() -> None:
        verdict.elements[0] = compute()

    queue(found.stream, name, decide, reads=reads, writes=[*writes, verdict], workspaces=area)
