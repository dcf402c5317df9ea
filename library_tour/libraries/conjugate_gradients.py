"""Conjugate gradients: a system with a sparse positive definite matrix, one iteration a graph on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..device_code import blocks_for
from .blas_vectors import dot
from .sparse_blas import spmv
from .sparse_matrix import SparseMatrix

__all__ = ["iterate_captured", "iterate_on_host"]

BLOCK = 256


def iterate_on_host(a: Any, b: NDArray[Any], iterations: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the solution after some iterations, and the norm of the residual before each and at the end."""
    x, r = np.zeros_like(b), b.copy()
    p, rr = r.copy(), float(r @ r)
    history = [rr]
    for _ in range(iterations):
        q = a @ p
        pq = float(p @ q)
        alpha = rr / pq if pq > 0 else 0.0
        x += alpha * p
        r -= alpha * q
        following = float(r @ r)
        p = r + (following / rr if rr > 0 else 0.0) * p
        rr = following
        history.append(rr)
    return x, np.sqrt(history)


def iterate_captured(
    module: cuda.Module, a: SparseMatrix, b: NDArray[np.float64], iterations: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Do the same on the device: the iteration is captured once and launched as often as wanted.

    `module` has the kernels of `kernels/sparse.cu`. All scalars stay on the device, and the host waits at the
    end alone.
    """
    n = b.size
    with cuda.Stream() as stream:
        x, r, p = cuda.zeros(n, np.float64, stream=stream), *(cuda.to_device(b, stream=stream) for _ in range(2))
        q = cuda.empty(n, np.float64, stream=stream)
        rr, pq, following = (cuda.empty(1, np.float64, stream=stream) for _ in range(3))
        history = cuda.empty(iterations + 1, np.float64, stream=stream)
        count = cuda.zeros(1, np.int32, stream=stream)
        grid = blocks_for(n, BLOCK)
        kernels = {name: module[name] for name in ("advance", "turn", "remember")}

        def iteration() -> None:
            spmv(a, p, q, stream=stream)
            dot(p, q, pq, stream=stream)
            kernels["advance"][grid, BLOCK, 0, stream](rr, pq, p, q, x, r, n)
            dot(r, r, following, stream=stream)
            kernels["turn"][grid, BLOCK, 0, stream](following, rr, r, p, n)
            kernels["remember"][1, 1, 0, stream](following, rr, history, count)

        # What the libraries set up at a first call cannot be captured. Neither product changes anything here.
        spmv(a, p, q, stream=stream)
        dot(r, r, rr, stream=stream)
        cuda.memcpy(following, rr, stream=stream)
        kernels["remember"][1, 1, 0, stream](following, rr, history, count)
        for kernel in kernels.values():
            kernel.attributes  # noqa: B018  # loads it
        with stream.capture() as graph:
            iteration()
        executable = graph.instantiate()
        for _ in range(iterations):
            executable.launch(stream)
        solution = x.to_host(stream=stream)
        squares = history.to_host(stream=stream)
        executable.close()
        graph.close()
        for array in (x, r, p, q, rr, pq, following, history, count):
            array.close()
        return solution, np.sqrt(squares)
