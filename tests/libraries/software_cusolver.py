"""cuSOLVER in software: LAPACK of SciPy on matrices that lie column by column."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from tests.libraries import memory
from tests.libraries.software_cublas import LETTERS, FillMode, Operation, turned

CODES = {0: "s", 1: "d", 4: "c", 5: "z"}
WORKSPACE = 64


class Cusolver:
    """One library; the workspaces that it asks for are checked for having been brought."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def create(self) -> int:
        return 88

    def destroy(self, handle: int) -> None:
        pass

    def create_params(self) -> int:
        return 99

    def destroy_params(self, parameters: int) -> None:
        pass

    def set_stream(self, handle: int, stream: int) -> None:
        pass

    def xpotrf(self, handle, parameters, fill, n, type_, a, lda, compute, *ends) -> None:
        matrix = matrix_at(a, n, n, lda, type_)
        factor, info = function("potrf", type_)(matrix, lower=fill == FillMode.LOWER, clean=False)
        matrix[...] = factor
        finish(ends, info)

    def xpotrs(self, handle, parameters, fill, n, count, type_a, a, lda, type_b, b, ldb, verdict) -> None:
        out = matrix_at(b, n, count, ldb, type_b)
        x, info = function("potrs", type_a)(matrix_at(a, n, n, lda, type_a), out, lower=fill == FillMode.LOWER)
        out[...] = x
        memory.array(verdict, 1, np.int32)[0] = info

    def xgetrf(self, handle, parameters, m, n, type_, a, lda, pivots, compute, *ends) -> None:
        matrix = matrix_at(a, m, n, lda, type_)
        factors, exchanges, info = function("getrf", type_)(matrix)
        matrix[...] = factors
        memory.array(pivots, n, np.int64)[...] = exchanges + 1
        finish(ends, info)

    def xgetrs(self, handle, parameters, op, n, count, type_a, a, lda, pivots, type_b, b, ldb, verdict) -> None:
        out = matrix_at(b, n, count, ldb, type_b)
        exchanges = memory.array(pivots, n, np.int64).astype(np.int32) - 1
        x, info = function("getrs", type_a)(matrix_at(a, n, n, lda, type_a), exchanges, out, trans=int(op))
        out[...] = x
        memory.array(verdict, 1, np.int32)[0] = info

    def xgeqrf(self, handle, parameters, m, n, type_, a, lda, type_tau, tau, compute, *ends) -> None:
        matrix = matrix_at(a, m, n, lda, type_)
        factors, found, _, info = function("geqrf", type_)(matrix)
        matrix[...] = factors
        memory.array(tau, n, memory.TYPES[type_tau])[...] = found
        finish(ends, info)

    def xgesvd(self, handle, parameters, job_u, job_v, m, n, type_, a, lda, type_s, s, type_u, u, ldu, type_v, v, ldv,
               compute, *ends) -> None:  # fmt: skip  # grouped by meaning
        assert m >= n, "cuSOLVER takes tall matrices only"
        assert (job_u, job_v) == (ord("S"), ord("S"))
        left, values, right, info = function("gesvd", type_)(matrix_at(a, m, n, lda, type_), full_matrices=0)
        memory.array(s, n, memory.TYPES[type_s])[...] = values
        matrix_at(u, m, n, ldu, type_u)[...] = left
        matrix_at(v, n, n, ldv, type_v)[...] = right
        finish(ends, info)

    def xgesvdp(self, handle, parameters, job, economy, m, n, type_, a, lda, type_s, s, type_u, u, ldu, type_v, v, ldv,
                compute, *ends) -> float:  # fmt: skip  # grouped by meaning
        assert (job, economy) == (1, 1)
        left, values, right, info = function("gesvd", type_)(matrix_at(a, m, n, lda, type_), full_matrices=0)
        memory.array(s, n, memory.TYPES[type_s])[...] = values
        matrix_at(u, m, n, ldu, type_u)[...] = left
        matrix_at(v, n, n, ldv, type_v)[...] = right.conj().T
        finish(ends, info)
        return 0.0

    def xsyevd(self, handle, parameters, job, fill, n, type_, a, lda, type_w, w, compute, *ends) -> None:
        matrix = matrix_at(a, n, n, lda, type_)
        letter = "he" if np.iscomplexobj(matrix) else "sy"
        values, vectors, info = function(f"{letter}evd", type_)(matrix, lower=fill == FillMode.LOWER)
        memory.array(w, n, memory.TYPES[type_w])[...] = values
        matrix[...] = vectors
        finish(ends, info)

    # -- the older interface -------------------------------------------------------------------

    def gqr(self, letter, handle, m, n, k, a, lda, tau, work, count, verdict) -> None:
        matrix = memory.columns(a, m, n, lda, LETTERS[letter])
        name = "ungqr" if letter in "cz" else "orgqr"
        q, _, info = getattr(lapack, letter + name)(matrix, memory.array(tau, k, LETTERS[letter]))
        matrix[...] = q
        memory.array(verdict, 1, np.int32)[0] = info

    def mqr(self, letter, handle, side, op, m, n, k, a, lda, tau, c, ldc, work, count, verdict) -> None:
        kind = LETTERS[letter]
        out = memory.columns(c, m, n, ldc, kind)
        reflectors, factors = memory.columns(a, m, k, lda, kind), memory.array(tau, k, kind)
        q = np.eye(m, dtype=kind)
        for i in range(k):
            v = np.concatenate([np.zeros(i), [1], reflectors[i + 1 :, i]]).astype(kind)
            q = q @ (np.eye(m) - factors[i] * np.outer(v, v.conj()))
        out[...] = turned(q, Operation(op)) @ out
        memory.array(verdict, 1, np.int32)[0] = 0

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_buffer_size"):
            if name.startswith("x"):
                return lambda *arguments: (WORKSPACE, WORKSPACE)
            return lambda *arguments: WORKSPACE
        for letters, function_ in (("gqr", self.gqr), ("mqr", self.mqr)):
            if name[0] in LETTERS and name[1:] in (f"or{letters}", f"un{letters}"):
                return lambda *arguments, run=function_: run(name[0], *arguments)
        raise AttributeError(name)


def matrix_at(address: int, rows: int, columns: int, leading: int, type_: int) -> Any:
    return memory.columns(address, rows, columns, leading, memory.TYPES[type_])


def function(name: str, type_: int) -> Any:
    return getattr(lapack, CODES[type_] + name)


def finish(ends: tuple[int, ...], info: int) -> None:
    device, device_bytes, host, host_bytes, verdict = ends
    assert (device_bytes, host_bytes) == (WORKSPACE, WORKSPACE)
    assert device
    assert host
    memory.array(verdict, 1, np.int32)[0] = info
