"""cuBLAS in software: what the tests need of `nvmath.bindings.cublas`, column by column as the library has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvmath.bindings import cublas
from scipy import linalg

from library_tour.libraries.dtypes import bfloat16, from_bfloat16, to_bfloat16
from tests.libraries import memory

ComputeType, DiagType, FillMode, Operation = cublas.ComputeType, cublas.DiagType, cublas.FillMode, cublas.Operation
PointerMode, SideMode = cublas.PointerMode, cublas.SideMode
LETTERS = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
BFLOAT16 = 14


class CublasError(Exception):
    """A status other than success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{cublas.Status(status).name} ({status})")
        self.status = status


class Cublas:
    """One library: it remembers its calls' names."""

    ComputeType, DiagType, FillMode, Operation = ComputeType, DiagType, FillMode, Operation
    PointerMode, SideMode = PointerMode, SideMode

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.status = 0
        self.mode = int(PointerMode.HOST)

    def create(self) -> int:
        self.calls.append("create")
        return 77

    def destroy(self, handle: int) -> None:
        self.calls.append("destroy")

    def set_stream(self, handle: int, stream: int) -> None:
        self.calls.append("set_stream")

    def set_workspace(self, handle: int, address: int, nbytes: int) -> None:
        self.calls.append("set_workspace")

    def set_pointer_mode(self, handle: int, mode: int) -> None:
        self.mode = mode

    def _fail(self) -> None:
        if self.status:
            raise CublasError(self.status)

    # -- level 3 -------------------------------------------------------------------------------

    def gemm_ex(
        self, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute,
        algorithm,
    ) -> None:  # fmt: skip  # grouped by meaning
        self.calls.append("gemm_ex")
        self._fail()
        scalar = SCALARS[type_a]
        left = turned(load(a, op_a, m, k, lda, type_a), op_a)
        right = turned(load(b, op_b, k, n, ldb, type_b), op_b)
        out = memory.columns(c, m, n, ldc, TYPES[type_c])
        factor, rest = memory.number(alpha, scalar), memory.number(beta, scalar)
        result = factor * (left @ right)
        if rest:
            result = result + rest * widened(out)
        out[...] = narrowed(result, type_c)

    def gemm_strided_batched_ex(
        self, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, c, type_c,
        ldc, stride_c, count, compute, algorithm,
    ) -> None:  # fmt: skip  # grouped by meaning
        self.calls.append("gemm_strided_batched_ex")
        sizes = [np.dtype(TYPES[type_]).itemsize for type_ in (type_a, type_b, type_c)]
        for i in range(count):
            places = [
                address + i * stride * size
                for address, stride, size in zip((a, b, c), (stride_a, stride_b, stride_c), sizes, strict=True)
            ]
            self.gemm_ex(
                handle, op_a, op_b, m, n, k, alpha, places[0], type_a, lda, places[1], type_b, ldb, beta, places[2],
                type_c, ldc, compute, algorithm,
            )  # fmt: skip  # grouped by meaning

    def geam(self, letter, handle, op_a, op_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc) -> None:
        kind = LETTERS[letter]
        source = memory.columns(a, *((m, n) if op_a == Operation.N else (n, m)), lda, kind)
        memory.columns(c, m, n, ldc, kind)[...] = memory.number(alpha, kind) * turned(source, op_a)

    def trsm(self, letter, handle, side, fill, op, diag, m, n, alpha, a, lda, b, ldb) -> None:
        kind = LETTERS[letter]
        order = m if side == SideMode.LEFT else n
        matrix = memory.columns(a, order, order, lda, kind)
        triangle = np.tril(matrix) if fill == FillMode.LOWER else np.triu(matrix)
        if diag == DiagType.UNIT:
            np.fill_diagonal(triangle, 1)
        out = memory.columns(b, m, n, ldb, kind)
        operator = turned(triangle, op)
        right = memory.number(alpha, kind) * out
        if side == SideMode.LEFT:
            out[...] = linalg.solve(operator, right)
        else:
            out[...] = linalg.solve(operator.T, right.T).T

    # -- levels 1 and 2 ------------------------------------------------------------------------

    def gemv(self, letter, handle, op, m, n, alpha, a, lda, x, step_x, beta, y, step_y) -> None:
        self.calls.append("gemv")
        kind = LETTERS[letter]
        matrix = turned(memory.columns(a, m, n, lda, kind), op)
        out = memory.array(y, matrix.shape[0], kind, (step_y,))
        product = memory.number(alpha, kind) * (matrix @ memory.array(x, matrix.shape[1], kind, (step_x,)))
        rest = memory.number(beta, kind)
        out[...] = product + rest * out if rest else product

    def axpy_ex(self, handle, n, alpha, alpha_type, x, type_x, step_x, y, type_y, step_y, compute) -> None:
        self.calls.append("axpy_ex")
        out = memory.array(y, n, TYPES[type_y], (step_y,))
        source = widened(memory.array(x, n, TYPES[type_x], (step_x,)))
        out[...] = narrowed(memory.number(alpha, SCALARS[type_x]) * source + widened(out), type_y)

    def dot_ex(self, handle, n, x, type_x, step_x, y, type_y, step_y, out, type_out, compute) -> None:
        assert self.mode == PointerMode.DEVICE
        first, second = memory.array(x, n, TYPES[type_x], (step_x,)), memory.array(y, n, TYPES[type_y], (step_y,))
        memory.array(out, 1, TYPES[type_out])[0] = first @ second

    def __getattr__(self, name: str) -> Any:
        # "sgeam" is geam of single precision.
        function = {"geam": self.geam, "trsm": self.trsm, "gemv": self.gemv}.get(name[1:])
        if function is None or name[0] not in LETTERS:
            raise AttributeError(name)
        return lambda *arguments: function(name[0], *arguments)


TYPES = {**memory.TYPES, BFLOAT16: bfloat16}
SCALARS = {**memory.TYPES, 2: np.float32, BFLOAT16: np.float32}


def turned(matrix: NDArray[Any], op: int) -> NDArray[Any]:
    return matrix if op == Operation.N else matrix.T if op == Operation.T else matrix.conj().T


def load(address: int, op: int, rows: int, columns: int, leading: int, type_: int) -> NDArray[Any]:
    shape = (rows, columns) if op == Operation.N else (columns, rows)
    return widened(memory.columns(address, *shape, leading, TYPES[type_]))


def widened(numbers: NDArray[Any]) -> NDArray[Any]:
    if numbers.dtype == bfloat16:
        return from_bfloat16(numbers)
    return numbers.astype(np.float32) if numbers.dtype == np.float16 else numbers


def narrowed(numbers: NDArray[Any], type_: int) -> NDArray[Any]:
    return to_bfloat16(numbers) if type_ == BFLOAT16 else numbers.astype(TYPES[type_])
