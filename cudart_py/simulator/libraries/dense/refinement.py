"""cuSOLVER's solvers with factors of lower precision and iterative refinement, in software."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from nvmath.bindings.cusolver import Status

from ...state.streams import complete_stream, find_stream, refuse_captured
from ..common.functions import entry
from ..common.numbers import BFLOAT16, LETTERS, Numbers, rounded, rounded_to_tf32
from ..common.operands import columns, vector
from ..factorizations import WORKSPACE, handles, lapack_for, queue_factorization

_call = entry(Status.EXECUTION_FAILED)
_MOST_ITERATIONS = 50
# The number of iterations that cuSOLVER reports for systems that it solved in full precision instead.
_NOT_CONVERGED = -_MOST_ITERATIONS - 1
# The rounding of the factored matrix, by the second letter of a function's name.
_ROUNDED: dict[str, Any] = {
    "s": lambda x: x,
    "c": lambda x: x,
    "h": lambda x: rounded(x, np.dtype(np.float16)),
    "k": lambda x: rounded(x, np.dtype(np.float16)),
    "b": lambda x: rounded(x, BFLOAT16),
    "e": lambda x: rounded(x, BFLOAT16),
    "x": rounded_to_tf32,
    "y": rounded_to_tf32,
}


def _buffer_size(
    letters: str, handle: int, n: int, nrhs: int, d_a: int, ldda: int, dipiv: int, d_b: int, lddb: int, d_x: int,
    lddx: int, d_workspace: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Return the size of the workspace in bytes (cusolverDnDSgesv_bufferSize and others)."""
    return WORKSPACE


@_call
def _gesv(
    letters: str, handle: int, n: int, nrhs: int, d_a: int, ldda: int, dipiv: int, d_b: int, lddb: int, d_x: int,
    lddx: int, d_workspace: int, lwork_bytes: int, d_info: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Solve a system, wait, and return the number of refinements, negative if they failed (cusolverDnDSgesv etc.)."""
    dtype = LETTERS[letters[0]]
    matrix, pivots = columns(int(d_a), n, n, ldda, dtype), vector(int(dipiv), n, np.int32)
    right, out = columns(int(d_b), n, nrhs, lddb, dtype), columns(int(d_x), n, nrhs, lddx, dtype)
    stream = find_stream(handles.find(handle).stream)
    refuse_captured(stream)  # the call waits for its result
    iterations = 0

    def solve() -> int:
        nonlocal iterations
        found, iterations = _refined(matrix.elements, right.elements, _ROUNDED[letters[1]])
        verdict = 0
        if found is None:
            _, exchanges, found, verdict = lapack_for("gesv", dtype)(matrix.elements, right.elements)
            pivots.elements[...] = exchanges + 1
        out.elements[...] = found
        return int(verdict)

    workspace = int(d_workspace), int(lwork_bytes)
    name = f"cusolverDn{letters.upper()}gesv"
    queue_factorization(
        handle, name, solve, d_info, reads=[matrix, right], writes=[out, pivots], workspace=workspace
    )  # fmt: skip  # grouped by meaning
    complete_stream(stream)
    return iterations


def _refined(a: Numbers, b: Numbers, low: Any) -> tuple[Numbers | None, int]:
    """Return the solution and the number of refinements, or None and a negative number if they do not converge."""
    small = np.dtype(np.complex64 if a.dtype.kind == "c" else np.float32)
    factors, exchanges, verdict = lapack_for("getrf", small)(low(np.asarray(a, small)))
    if verdict or not np.isfinite(factors).all():
        return None, _NOT_CONVERGED
    x = np.zeros_like(b)
    # The bound of LAPACK's dsgesv.
    bound = np.linalg.norm(a, np.inf) * np.finfo(a.dtype).eps * np.sqrt(len(a))
    for count in range(_MOST_ITERATIONS + 1):
        residual = b - a @ x
        sizes = np.abs(x).max(axis=0, initial=0)
        if count and (np.abs(residual).max(axis=0, initial=0) <= bound * sizes).all():
            return x, count - 1
        step, _ = lapack_for("getrs", small)(factors, exchanges, np.asarray(residual, small))
        x = x + step
        if not np.isfinite(x).all():
            break
    return None, _NOT_CONVERGED


# The functions by their letters: the precision of the system, and that of the factors.
_PAIRS = ("ds", "dh", "db", "dx", "sh", "sb", "sx", "zc", "zk", "ze", "zy", "ck", "ce", "cy")
(
    ds_gesv, dh_gesv, db_gesv, dx_gesv, sh_gesv, sb_gesv, sx_gesv, zc_gesv, zk_gesv, ze_gesv, zy_gesv, ck_gesv,
    ce_gesv, cy_gesv,
) = (functools.partial(_gesv, pair) for pair in _PAIRS)  # fmt: skip  # grouped by meaning
(
    ds_gesv_buffer_size, dh_gesv_buffer_size, db_gesv_buffer_size, dx_gesv_buffer_size, sh_gesv_buffer_size,
    sb_gesv_buffer_size, sx_gesv_buffer_size, zc_gesv_buffer_size, zk_gesv_buffer_size, ze_gesv_buffer_size,
    zy_gesv_buffer_size, ck_gesv_buffer_size, ce_gesv_buffer_size, cy_gesv_buffer_size,
) = (functools.partial(_buffer_size, pair) for pair in _PAIRS)  # fmt: skip  # grouped by meaning
