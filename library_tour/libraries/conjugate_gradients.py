"""Conjugate gradients for a sparse positive definite matrix, plain and preconditioned, with one graph per iteration."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.libraries import SparseMatrix, dot, spmv, spsv

from ..device_code import blocks_for

BLOCK = 256


class CapturedIteration:
    """Conjugate gradients in their own stream. An iteration is captured once and launched as often as needed.

    `module` contains the kernels of `kernels/sparse.cu`. All scalars stay on the device, and the host waits only for
    the solution. The history records the first `most` iterations.
    """

    def __init__(self, module: cuda.Module, a: SparseMatrix, b: NDArray[np.float64], most: int) -> None:
        self.a, self.stream = a, cuda.Stream()
        stream, n = self.stream, b.size
        self.x, self.history = cuda.zeros(n, np.float64, stream=stream), cuda.empty(most + 1, np.float64, stream=stream)
        self._r, self._p = (cuda.to_device(b, stream=stream) for _ in range(2))
        self._q = cuda.empty(n, np.float64, stream=stream)
        self._rr, self._pq, self._following = (cuda.empty(1, np.float64, stream=stream) for _ in range(3))
        self._count = cuda.zeros(1, np.int32, stream=stream)
        self._allocate(n)
        grid = blocks_for(n, BLOCK)
        self._advance = module["advance"][grid, BLOCK, 0, stream].bind(
            self._rr, self._pq, self._p, self._q, self.x, self._r, n
        )
        self._turn = module["turn"][grid, BLOCK, 0, stream].bind(self._following, self._rr, self._z, self._p, n)
        self._remember = module["remember"][1, 1, 0, stream].bind(
            self._square, self._last, self.history, self._count, most + 1
        )
        # A library sets itself up at its first call, which cannot be captured. These calls do that, and compute the
        # square of the first residual.
        spmv(a, self._p, self._q, stream=stream)
        self._begin()
        with stream.capture() as graph:
            self.queue()
        self._graph = graph
        self._executable = graph.instantiate()

    def _allocate(self, n: int) -> None:
        """Allocate the arrays that only this method needs, and choose the scalars that `remember` reads and writes."""
        self._z = self._r
        self._square, self._last = self._following, self._rr

    def _begin(self) -> None:
        """Compute the square of the first residual."""
        dot(self._r, self._r, self._rr, stream=self.stream)
        cuda.memcpy(self._following, self._rr, stream=self.stream)
        self._remember()

    def queue(self) -> None:
        """Queue an iteration call by call."""
        spmv(self.a, self._p, self._q, stream=self.stream)
        dot(self._p, self._q, self._pq, stream=self.stream)
        self._advance()
        dot(self._r, self._r, self._following, stream=self.stream)
        self._turn()
        self._remember()

    def launch(self) -> None:
        """Queue an iteration as one graph."""
        self._executable.launch(self.stream)

    def solution(self) -> NDArray[Any]:
        """Wait for the iterations queued so far, and return the solution."""
        return self.x.to_host(stream=self.stream)

    def residuals(self, count: int) -> NDArray[Any]:
        """Return the norm of the residual before each of `count` iterations, and after the last."""
        norms: NDArray[Any] = np.sqrt(self.history[: count + 1].to_host(stream=self.stream))
        return norms

    def close(self) -> None:
        """Release the graph, the arrays and the stream."""
        self._executable.close()
        self._graph.close()
        for array in [each for each in vars(self).values() if isinstance(each, cuda.DeviceArray)]:
            array.close()
        self.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PreconditionedIteration(CapturedIteration):
    """Conjugate gradients with symmetric Gauss-Seidel as the preconditioner, for a matrix with a constant diagonal.

    The residual r is replaced by z with (D + L) D^-1 (D + U) z = r, where D is the diagonal of the matrix, L its strict
    lower triangle and U its strict upper triangle. These are two triangular solves with the matrix itself.
    """

    def __init__(
        self, module: cuda.Module, a: SparseMatrix, diagonal: float, b: NDArray[np.float64], most: int
    ) -> None:
        self._diagonal = diagonal
        super().__init__(module, a, b, most)

    def _allocate(self, n: int) -> None:
        self._z, self._half = (cuda.empty(n, np.float64, stream=self.stream) for _ in range(2))
        # The history has the squares of r, whereas the method itself uses the products of r and z.
        self._square, self._last = (cuda.empty(1, np.float64, stream=self.stream) for _ in range(2))

    def _begin(self) -> None:
        self._precondition()
        cuda.memcpy(self._p, self._z, stream=self.stream)
        dot(self._r, self._z, self._rr, stream=self.stream)
        dot(self._r, self._r, self._square, stream=self.stream)
        self._remember()

    def queue(self) -> None:
        """Queue an iteration call by call."""
        spmv(self.a, self._p, self._q, stream=self.stream)
        dot(self._p, self._q, self._pq, stream=self.stream)
        self._advance()
        self._precondition()
        dot(self._r, self._z, self._following, stream=self.stream)
        self._turn()
        cuda.memcpy(self._rr, self._following, stream=self.stream)
        dot(self._r, self._r, self._square, stream=self.stream)
        self._remember()

    def _precondition(self) -> None:
        """Queue z = (D + U)^-1 D (D + L)^-1 r."""
        spsv(self.a, self._r, self._half, lower=True, stream=self.stream)
        spsv(self.a, self._half, self._z, lower=False, alpha=self._diagonal, stream=self.stream)
