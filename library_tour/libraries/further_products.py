"""Products of 8-bit elements, by emulation and in backward passes, and operations of BLAS levels 1, 2 and 3."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries

from .. import timing
from ..checks import poisoned
from ..inputs import INPUT_BLOCK, repeated
from ..stop import Limit, Row
from .judgement import judged, relative_error, skipped_row, work_of
from .precisions import bound_of, exact, numbers, on_device, unit_roundoff

# The rows of int8 and of 8-bit floats begin a multiple of this number of elements apart.
STEP = 16
# Tensor cores add products of 8-bit floats with fewer bits than single precision has.
FLOAT8_ERROR = 1e-3
# The number of matrices that are separate allocations.
APART = 16

Array = NDArray[Any]


def further_rows(n: int, size: int, limits: dict[str, Limit]) -> list[Row]:
    """Return rows of products in 8 bits, by emulation, of matrices in separate allocations, and of a backward pass."""
    return [
        integer_row(n, size, limits["8-bit"]),
        float8_row(n, size, limits["8-bit"]),
        emulated_row(n, size, limits["fp64"]),
        pointers_row(n),
        gradient_row(n),
    ]


def integer_row(n: int, size: int, limit: Limit) -> Row:
    """Multiply int8 matrices exactly. The tensor cores read them along the inner dimension."""
    k, full = padded(n), padded(size)
    a, w = integers((n, k)), integers((n + 1, k))
    out = cuda.full((n, n + 1), -1, np.int32)
    got = libraries.gemm(cuda.to_device(a), cuda.to_device(w).T, out).to_host()
    error = relative_error(exact(got), exact(a) @ exact(w.T))
    work: Callable[[], object] | None = None
    if timing.available():
        left, right = (repeated(integers((INPUT_BLOCK,)), full * full).reshape(full, full) for _ in range(2))
        work = functools.partial(libraries.gemm, left, right.T, cuda.empty((full, full), np.int32))
    return judged("int8, exact", "cuBLAS", error, 0.0, work=work, amount=2 * full**3, limit=limit, host=True,
                  does=work_of(2 * n * k * (n + 1), a, w, got))  # fmt: skip  # grouped by meaning


def padded(count: int) -> int:
    """Return the next multiple of `STEP`."""
    return -(-count // STEP) * STEP


def integers(shape: tuple[int, ...]) -> Array:
    """Return random int8 elements from the whole range."""
    return np.random.default_rng().integers(-128, 128, shape).astype(np.int8)


def float8_row(n: int, size: int, limit: Limit) -> Row:
    """Multiply matrices of 8-bit floats, with one scale per row of the first and per column of the second."""
    title, rows, full = "float8, scaled", padded(n), padded(size)
    (a, scale_a), (w, scale_w) = scaled_to_8_bits(rows), scaled_to_8_bits(rows)
    out = poisoned((rows, rows), np.float32)
    try:
        libraries.scaled_gemm(
            cuda.to_device(a), cuda.to_device(w).T, cuda.to_device(scale_a), cuda.to_device(scale_w), out
        )
    except cuda.errors.NotSupportedError as error:
        return skipped_row(title, str(error))
    left = exact(libraries.from_float8(a)) * exact(scale_a)[:, None]
    right = exact(libraries.from_float8(w)) * exact(scale_w)[:, None]
    got = out.to_host()
    work: Callable[[], object] | None = None
    if timing.available():
        elements = libraries.to_float8(numbers((INPUT_BLOCK,), np.float32))
        first, second = (repeated(elements, full * full).reshape(full, full) for _ in range(2))
        scales = cuda.full(full, 1, np.float32)
        work = functools.partial(libraries.scaled_gemm, first, second.T, scales, scales,
                                 cuda.empty((full, full), np.float32))  # fmt: skip  # grouped by meaning
    return judged(title, "cuBLASLt", relative_error(exact(got), left @ right.T), FLOAT8_ERROR, work=work,
                  amount=2 * full**3, limit=limit, host=True,
                  does=work_of(2 * rows**3, a, w, got))  # fmt: skip  # grouped by meaning


def scaled_to_8_bits(n: int) -> tuple[Array, Array]:
    """Return a square matrix as 8-bit floats, and the scale of each row, chosen so that its largest element is 448."""
    x = numbers((n, n), np.float32) * 10.0 ** np.random.default_rng().uniform(-3, 3, (n, 1)).astype(np.float32)
    scales = np.abs(x).max(axis=1) / np.float32(448)
    return libraries.to_float8(x / scales[:, None]), scales


def emulated_row(n: int, size: int, limit: Limit) -> Row:
    """Multiply double-precision matrices with emulation on the integer tensor cores, where cuBLAS supports it."""
    title = "float64, emulated"
    a, b = numbers((n, n), np.float64), numbers((n, n), np.float64)
    out = poisoned((n, n), np.float64)
    try:
        libraries.gemm(cuda.to_device(a), cuda.to_device(b), out, compute="emulated")
    except cuda.errors.NotSupportedError as error:
        return skipped_row(title, str(error))
    work: Callable[[], object] | None = None
    if timing.available():
        operands = [on_device((size, size), np.float64) for _ in range(3)]
        work = functools.partial(libraries.gemm, *operands, compute="emulated")
    got, scale = out.to_host(), float(np.linalg.norm(a) * np.linalg.norm(b))
    return judged(title, "cuBLAS", relative_error(exact(got), exact(a) @ exact(b), scale), bound_of(np.float64, n),
                  work=work, amount=2 * size**3, limit=limit, host=True,
                  does=work_of(2 * n**3, a, b, got))  # fmt: skip  # grouped by meaning


def pointers_row(n: int) -> Row:
    """Multiply matrices in separate allocations with one call, which takes their addresses."""
    small = max(n // 8, 2)
    a, b = ([numbers((small, small), np.float64) for _ in range(APART)] for _ in range(2))
    outputs = [poisoned((small, small), np.float64) for _ in range(APART)]
    libraries.gemm_batched([cuda.to_device(x) for x in a], [cuda.to_device(x) for x in b], outputs)
    got = np.stack([out.to_host() for out in outputs])
    left, right = exact(np.stack(a)), exact(np.stack(b))
    # Relative to the product of the norms of each pair, the largest error of a pair.
    scales = np.linalg.norm(np.stack(a), axis=(1, 2)) * np.linalg.norm(np.stack(b), axis=(1, 2))
    errors = [relative_error(exact(got[i]), left[i] @ right[i], float(scales[i])) for i in range(APART)]
    return judged(f"{APART} matrices, apart", "cuBLAS", max(errors), bound_of(np.float64, small),
                  does=work_of(2 * APART * small**3, *a, *b, got))  # fmt: skip  # grouped by meaning


def gradient_row(n: int) -> Row:
    """Compute the gradients of a layer with ReLU, and of its bias, from the mask of the forward pass."""
    x, w, bias = numbers((n, n), np.float64), numbers((n, n), np.float64), numbers((n,), np.float64)
    dy, next_w = numbers((n, n + 1), np.float64), numbers((n, n + 1), np.float64)
    mask = libraries.empty_aux((n, n), np.float64, "relu")
    libraries.gemm_epilogue(*map(cuda.to_device, (x, w, bias)), activation="relu", aux=mask)
    dz, dbias = poisoned((n, n), np.float64), poisoned(n, np.float64)
    libraries.gemm_gradient(cuda.to_device(dy), cuda.to_device(next_w).T, "relu", mask, dz, bias_gradient=dbias)
    positive = exact(x) @ exact(w) + exact(bias) > 0
    expected = np.where(positive, exact(dy) @ exact(next_w).T, 0)
    scale = float(np.linalg.norm(dy) * np.linalg.norm(next_w))
    # The sum of a column has an error of at most sqrt(n) times that of its elements, and a rounding per addition.
    errors = [
        relative_error(exact(dz.to_host()), expected, scale),
        relative_error(exact(dbias.to_host()), expected.sum(axis=0), float(np.sqrt(n) * scale)),
    ]
    return judged("bias, ReLU: gradient", "cuBLASLt", max(errors), 2 * bound_of(np.float64, n + 1),
                  does=work_of(2 * n**2 * (n + 1), dy, next_w, dz, dbias))  # fmt: skip  # grouped by meaning


def level_rows(n: int) -> list[Row]:
    """Reduce vectors (level 1), and update and multiply matrices of which one triangle is stored (levels 2 and 3)."""
    x, y = numbers((n * n,), np.float64), numbers((n * n,), np.float64)
    a, b, c = (numbers((n, n), np.float64) for _ in range(3))
    on = {name: cuda.to_device(value) for name, value in {"x": x, "y": y, "a": np.tril(a), "b": b}.items()}
    symmetric = np.tril(a) + np.tril(a, -1).T
    updated = cuda.to_device(c)
    libraries.ger(0.5, on["x"][:n], on["y"][:n], updated)
    eps = 2 * unit_roundoff(np.float64)
    found = {
        "dot": (libraries.dot(on["x"], on["y"]), exact(x) @ exact(y), np.linalg.norm(x) * np.linalg.norm(y), (x, y)),
        "nrm2": (libraries.nrm2(on["x"]), np.sqrt(exact(x) @ exact(x)), np.linalg.norm(x), (x,)),
        "asum": (libraries.asum(on["x"]), np.abs(exact(x)).sum(), np.abs(x).sum(), (x,)),
        "ger": (updated, exact(c) + np.outer(exact(x[:n]), exact(y[:n])) / 2, None, (c, c)),
        "symm": (libraries.symm(on["a"], on["b"]), exact(symmetric) @ exact(b),
                 np.linalg.norm(symmetric) * np.linalg.norm(b), (a, b, c)),
        "syrk": (libraries.syrk(on["b"]), np.tril(exact(b) @ exact(b).T), np.linalg.norm(b) ** 2, (b, c)),
    }  # fmt: skip  # rows of a table
    rows = []
    for name, (result, expected, scale, moved) in found.items():
        got = exact(result.to_host()).reshape(np.shape(expected))
        error = relative_error(got, np.asarray(expected), None if scale is None else float(scale))
        terms = n if name in ("symm", "syrk") else 2 if name == "ger" else n * n
        operations = 2 * n**3 if name == "symm" else n**3 if name == "syrk" else 2 * n * n
        rows.append(judged(f"{name} float64", "cuBLAS", error, terms * eps, does=work_of(operations, *moved)))
    return rows
