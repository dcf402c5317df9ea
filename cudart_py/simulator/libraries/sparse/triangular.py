"""Triangular systems with sparse matrices, with the names and parameters of `nvmath.bindings.cusparse`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from nvmath.bindings.cusparse import FillMode, Operation, SpSMUpdate, SpSVUpdate, Status
from scipy import sparse

from ...checks.findings import mode, put_finding
from ..common.calls import queue
from ..common.functions import LibraryError, Objects
from ..common.numbers import DTYPES, Numbers, from_host
from ..common.operands import Operand, vector
from .descriptors import SparseMatrix, dense, matrices
from .handles import WORKSPACE, call, handles, plain, turned, workspace


@dataclass
class _Solver:
    """The result of an analysis: the matrix, its buffer, and its triangle as it was at that time."""

    matrix: SparseMatrix | None = None
    buffer: int = 0
    triangle: Any = None


_solvers: Objects[_Solver] = Objects(Status.INVALID_VALUE)


def sp_sv_create_descr() -> int:
    """Return a descriptor for the result of an analysis (cusparseSpSV_createDescr)."""
    return _solvers.add(_Solver())


def sp_sv_destroy_descr(descr: int) -> None:
    """Destroy a descriptor (cusparseSpSV_destroyDescr)."""
    _solvers.remove(descr)


def sp_sm_create_descr() -> int:
    """Return a descriptor for the result of an analysis (cusparseSpSM_createDescr)."""
    return _solvers.add(_Solver())


def sp_sm_destroy_descr(descr: int) -> None:
    """Destroy a descriptor (cusparseSpSM_destroyDescr)."""
    _solvers.remove(descr)


def sp_sv_buffer_size(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, vec_y: int, compute_type: int, alg: int,
    spsv_descr: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the buffer in bytes (cusparseSpSV_bufferSize)."""
    _check(op_a, mat_a)
    return WORKSPACE


def sp_sm_buffer_size(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, mat_c: int, compute_type: int, alg: int,
    spsm_descr: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the buffer in bytes (cusparseSpSM_bufferSize)."""
    plain(op_b)
    _check(op_a, mat_a)
    return WORKSPACE


def _check(operation: int, matrix: int) -> None:
    found = matrices.find(matrix)
    if operation == Operation.CONJUGATE_TRANSPOSE and found.values.dtype.kind != "c":
        raise LibraryError(Status.INVALID_VALUE, "a real matrix has no conjugate transpose")
    if found.shape[0] != found.shape[1]:
        raise LibraryError(Status.INVALID_VALUE, f"the matrix has the shape {found.shape}")


@call
def sp_sv_analysis(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, vec_y: int, compute_type: int, alg: int,
    spsv_descr: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the analysis of a triangle, which also copies its elements (cusparseSpSV_analysis)."""
    _check(op_a, mat_a)
    _queue_analysis("cusparseSpSV_analysis", handle, mat_a, spsv_descr, external_buffer)


@call
def sp_sm_analysis(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, mat_c: int, compute_type: int, alg: int,
    spsm_descr: int, external_buffer: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the analysis of a triangle, which also copies its elements (cusparseSpSM_analysis)."""
    plain(op_b)
    _check(op_a, mat_a)
    _queue_analysis("cusparseSpSM_analysis", handle, mat_a, spsm_descr, external_buffer)


def _queue_analysis(name: str, handle: int, matrix: int, descriptor: int, buffer: int) -> None:
    kept, found = _solvers.find(descriptor), matrices.find(matrix)
    kept.matrix, kept.buffer = found, buffer

    def analyse() -> None:
        kept.triangle = _triangle(found)
        lacking = np.flatnonzero(kept.triangle.diagonal() == 0)
        if lacking.size and mode() != "off":
            put_finding(
                "argument",
                f"{name}: row {lacking[0]} of the triangle has no element on the diagonal, so there is no solution",
            )

    queue(handles.find(handle).stream, name, analyse, reads=list(found.arrays), workspaces=workspace(buffer))


def _triangle(matrix: SparseMatrix) -> Any:
    """Return the triangle of a matrix that its attributes select."""
    loaded = matrix.load().copy()
    lower = matrix.fill_mode == FillMode.LOWER
    if not matrix.unit:
        return sparse.csr_array(sparse.tril(loaded) if lower else sparse.triu(loaded))
    strict = sparse.tril(loaded, -1) if lower else sparse.triu(loaded, 1)
    return sparse.csr_array(strict + sparse.eye_array(matrix.shape[0], dtype=loaded.dtype))


@call
def sp_sv_update_matrix(handle: int, spsv_descr: int, new_values: int, update_part: int) -> None:
    """Queue a copy of new elements to an analysis (cusparseSpSV_updateMatrix)."""
    if update_part != SpSVUpdate.GENERAL:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator replaces all elements, not only the diagonal")
    _queue_update("cusparseSpSV_updateMatrix", handle, spsv_descr, new_values)


@call
def sp_sm_update_matrix(handle: int, spsm_descr: int, new_values: int, update_part: int) -> None:
    """Queue a copy of new elements to an analysis (cusparseSpSM_updateMatrix)."""
    if update_part != SpSMUpdate.UPDATE_GENERAL:
        raise LibraryError(Status.NOT_SUPPORTED, "the simulator replaces all elements, not only the diagonal")
    _queue_update("cusparseSpSM_updateMatrix", handle, spsm_descr, new_values)


def _queue_update(name: str, handle: int, descriptor: int, new_values: int) -> None:
    kept = _solvers.find(descriptor)
    if kept.matrix is None:
        raise LibraryError(Status.INVALID_VALUE, "the matrix has not been analysed")
    values = vector(int(new_values), kept.matrix.count, kept.matrix.values.dtype)
    changed = replace(kept.matrix, values=values)

    def update() -> None:
        kept.triangle = _triangle(changed)

    queue(handles.find(handle).stream, name, update, reads=list(changed.arrays), workspaces=workspace(kept.buffer))


@call
def sp_sv_solve(
    handle: int, op_a: int, alpha: int, mat_a: int, vec_x: int, vec_y: int, compute_type: int, alg: int,
    spsv_descr: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of op(a) y = alpha x (cusparseSpSV_solve)."""
    factor = from_host(alpha, DTYPES[int(compute_type)])
    _queue_solution("cusparseSpSV_solve", handle, op_a, factor, (vec_x, vec_y), spsv_descr)


@call
def sp_sm_solve(
    handle: int, op_a: int, op_b: int, alpha: int, mat_a: int, mat_b: int, mat_c: int, compute_type: int, alg: int,
    spsm_descr: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue the solution of op(a) c = alpha b (cusparseSpSM_solve)."""
    plain(op_b)
    factor = from_host(alpha, DTYPES[int(compute_type)])
    _queue_solution("cusparseSpSM_solve", handle, op_a, factor, (mat_b, mat_c), spsm_descr)


def _queue_solution(
    name: str, handle: int, operation: int, factor: Any, operands: tuple[int, int], descriptor: int
) -> None:
    kept, right, out = _solvers.find(descriptor), dense.find(operands[0]), dense.find(operands[1])
    matrix = kept.matrix
    if matrix is None:
        raise LibraryError(Status.INVALID_VALUE, "the matrix has not been analysed")
    lower = (matrix.fill_mode == FillMode.LOWER) == (operation == Operation.NON_TRANSPOSE)

    def solve() -> None:
        out.elements[...] = _solution(turned(kept.triangle, operation), factor * right.elements, lower=lower)

    # The elements themselves are in the buffer; only their positions are read again.
    reads: list[Operand] = [matrix.offsets, matrix.indices, right]
    queue(handles.find(handle).stream, name, solve, reads=reads, writes=[out], workspaces=workspace(kept.buffer))


def _solution(triangle: Any, right: Numbers, *, lower: bool) -> Numbers:
    from scipy.sparse.linalg import spsolve_triangular  # imported late because it takes a second

    if not np.all(triangle.diagonal()):
        return np.full_like(right, np.nan)
    return np.asarray(spsolve_triangular(sparse.csr_array(triangle), right, lower=lower))
