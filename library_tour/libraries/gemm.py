"""Multiply matrices with cuBLAS: every precision, layout and epilogue, by nvmath's own face and by its bindings.

On the software driver, where NumPy and SciPy stand in for the libraries and nothing is timed:

    $ library-tour run gemm
    gemm: cuBLAS in every precision, with what follows in the same pass
    size 96: rows and columns of the matrices
    limit: multiply-adds in float32
                                by                       error    bound  check
    ──────────────────────────────────────────────────────────────────────────
    float32                     SciPy's BLAS           1.8e-08  5.9e-06  right
    float64                     SciPy's BLAS           3.4e-17  1.1e-14  right
    complex64                   SciPy's BLAS           1.8e-08  2.3e-05  right
    complex128                  SciPy's BLAS           3.4e-17  4.3e-14  right
    float16                     NumPy                  2.1e-05  9.8e-04  right
    bfloat16                    NumPy                  1.7e-04  0.00782  right
    TF32                        NumPy                  3.0e-05  9.8e-04  right
    nvmath float32              nvmath, CPU            1.8e-08  5.8e-06  right
    nvmath float64              nvmath, CPU            3.4e-17  1.1e-14  right
    nvmath complex64            nvmath, CPU            1.8e-08  2.3e-05  right
    nvmath complex128           nvmath, CPU            3.4e-17  4.3e-14  right
    op N x op T                 SciPy's BLAS           1.8e-08  2.3e-05  right
    op N x op C                 SciPy's BLAS           1.8e-08  2.3e-05  right
    op T x op N                 SciPy's BLAS           1.8e-08  2.3e-05  right
    op T x op T                 SciPy's BLAS           1.8e-08  2.3e-05  right
    op T x op C                 SciPy's BLAS           1.8e-08  2.3e-05  right
    op C x op N                 SciPy's BLAS           1.8e-08  2.3e-05  right
    op C x op T                 SciPy's BLAS           1.8e-08  2.3e-05  right
    op C x op C                 SciPy's BLAS           1.8e-08  2.3e-05  right
    windows                     SciPy's BLAS           3.3e-17  1.1e-14  right
    0.5 a b - 2 c               SciPy's BLAS           3.3e-17  1.1e-14  right
    16 of 12 x 12               NumPy                  2.1e-08  8.3e-07  right
    bias and ReLU, fused        NumPy                  1.2e-08  7.6e-06  right
    bias and GELU, fused        NumPy                  1.2e-08  7.6e-06  right
    bias and GELU, three calls  SciPy's BLAS, kernels  1.3e-08  7.6e-06  right
    gemv float64                SciPy's BLAS           1.5e-17  1.1e-14  right
    axpy float64                SciPy's BLAS           6.6e-17  4.4e-16  right
    Errors are in the Frobenius norm, over the product of the operands' norms. gemv
    and axpy move a number for every operation or two, and are as fast as memory; a
    product of matrices does n operations with each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.ceilings import measured_ceiling

from .. import timing
from ..device_code import blocks_for, load
from ..stop import Curve, Limit, Result, Row, Size
from .dtypes import bfloat16, from_bfloat16, to_bfloat16, unit_roundoff
from .judgement import extra_row, judged, relative_error
from .tools import Tools

TITLE = "cuBLAS in every precision, with what follows in the same pass"
SIZE = Size("rows and columns of the matrices", full=4096, small=96, least=4)
# Checked at this size or a smaller one, against products in extended precision.
CHECKED = 160
CURVE_SIZES = (256, 512, 1024, 2048, 4096, 8192)
BLOCK = (32, 8)

Array = NDArray[Any]


class Precision(NamedTuple):
    """A dtype and how its products are computed; the executor's family; operations of a multiplication and addition."""

    dtype: Any
    compute: str | None = None
    family: str = "gemm"
    operations: int = 2


PRECISIONS = {
    "float32": Precision(np.float32),
    "float64": Precision(np.float64),
    "complex64": Precision(np.complex64, operations=8),
    "complex128": Precision(np.complex128, operations=8),
    "float16": Precision(np.float16, family="gemm_halves"),
    "bfloat16": Precision(bfloat16, family="gemm_halves"),
    "TF32": Precision(np.float32, "tf32", "gemm_halves"),
}


def numbers(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return normal numbers of a dtype."""
    random = np.random.default_rng()
    if dtype == bfloat16:
        return to_bfloat16(random.standard_normal(shape))
    values: Array = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def exact(x: Array) -> Array:
    """Return numbers in the longest precision that NumPy has."""
    if x.dtype == bfloat16:
        x = from_bfloat16(x)
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def turned(x: Array, op: str) -> Array:
    """Return op(x)."""
    return x if op == "N" else x.T if op == "T" else x.conj().T


def bound_of(dtype: Any, inner: int, compute: str | None = None) -> float:
    """Return how far a product may be off, over the product of the norms.

    Each of `inner` additions rounds once, in single precision for halves; inputs of TF32 and results of halves
    round once more. Complex numbers are four products and two sums.
    """
    kind = np.dtype(dtype)
    inside = 2.0**-53 if kind in (np.float64, np.complex128) else 2.0**-24
    return (4 if kind.kind == "c" else 1) * inner * inside + 2 * unit_roundoff(kind, compute)


def run(device: cuda.Device, size: int) -> Result:
    """Check every way at a small size, and time at the full one."""
    tools = Tools()
    n = min(size, CHECKED)
    limit = Limit("multiply-adds in float32", "TFLOP/s")
    if timing.available():
        limit = Limit(limit.name, limit.unit, 1e-12 * measured_ceiling(device, "fp32"))
    rows = [precision_row(tools, name, n, size, limit) for name in PRECISIONS]
    rows += high_level_rows(tools, n)
    rows += [operation_row(tools, op_a, op_b, n) for op_a in "NTC" for op_b in "NTC" if op_a + op_b != "NN"]
    rows += [window_row(tools, n), scaled_row(tools, n), batch_row(tools, n)]
    rows += epilogue_rows(tools, n, size)
    rows += [gemv_row(tools, n, size), axpy_row(tools, n, size)]
    pictures = [rate_curve(device)] if timing.available() and tools.on_device else []
    notes = [
        "Errors are in the Frobenius norm, over the product of the operands' norms. gemv and axpy move a number "
        "for every operation or two, and are as fast as memory; a product of matrices does n operations with each."
    ]
    return Result(rows, limit, pictures=pictures, notes=notes)


def product_error(got: Array, a: Array, b: Array) -> float:
    """Return the error of a product over the product of the norms."""
    left, right = exact(a), exact(b)
    scale = float(np.linalg.norm(left.ravel()) * np.linalg.norm(right.ravel()))
    return relative_error(exact(got), left @ right, scale)


def precision_row(tools: Tools, name: str, n: int, size: int, limit: Limit) -> Row:
    """Multiply matrices of one precision."""
    precision = PRECISIONS[name]
    a, b = numbers((n, n + 1), precision.dtype), numbers((n + 1, n - 1), precision.dtype)
    got = tools.get(tools.gemm(tools.put(a), tools.put(b), compute=precision.compute))
    work: Callable[[], object] | None = None
    if tools.on_device and timing.available():
        left, right, out = (cuda.to_device(numbers((size, size), precision.dtype)) for _ in range(3))

        def work() -> object:
            return tools.gemm(left, right, out, compute=precision.compute)

    return judged(
        name, tools.by(precision.family), product_error(got, a, b), bound_of(precision.dtype, n + 1, precision.compute),
        work=work, amount=precision.operations * size**3, limit=limit, host=True,
    )  # fmt: skip


def high_level_rows(tools: Tools, n: int) -> list[Row]:
    """Multiply with nvmath.linalg, of operands on the host: which runs on the CPU where there is no GPU."""
    rows = []
    for name in ("float32", "float64", "complex64", "complex128"):
        title, dtype = f"nvmath {name}", PRECISIONS[name].dtype
        a, b = numbers((n, n), dtype), numbers((n, n), dtype)
        try:
            import nvmath

            got = nvmath.linalg.matmul(a, b, execution="cuda" if tools.on_device else "cpu")
        except (ImportError, RuntimeError) as error:
            rows.append(extra_row(title, "cu13" if tools.on_device else "cpu", error))
            continue
        by = "nvmath, cuBLASLt" if tools.on_device else "nvmath, CPU"
        rows.append(judged(title, by, product_error(got, a, b), bound_of(dtype, n)))
    return rows


def operation_row(tools: Tools, op_a: str, op_b: str, n: int) -> Row:
    """Multiply transposed and conjugated matrices, without a copy of either."""
    shapes = {"a": (n, n + 2), "b": (n + 2, n + 1)}
    a = numbers(shapes["a"] if op_a == "N" else shapes["a"][::-1], np.complex64)
    b = numbers(shapes["b"] if op_b == "N" else shapes["b"][::-1], np.complex64)
    got = tools.get(tools.gemm(tools.put(a), tools.put(b), op_a=op_a, op_b=op_b))
    error = product_error(got, turned(a, op_a), turned(b, op_b))
    return judged(f"op {op_a} x op {op_b}", tools.by("gemm"), error, bound_of(np.complex64, n + 2))


def window_row(tools: Tools, n: int) -> Row:
    """Multiply windows of a larger matrix: rows begin further apart than they are long."""
    whole = numbers((2 * n, 2 * n), np.float64)
    place = tools.put(whole)
    a, b = (slice(1, n + 1), slice(0, n)), (slice(n, 2 * n), slice(1, n))
    got = tools.get(tools.gemm(place[a], place[b]))
    return judged("windows", tools.by("gemm"), product_error(got, whole[a], whole[b]), bound_of(np.float64, n))


def scaled_row(tools: Tools, n: int) -> Row:
    """Scale the product and add it to what is there."""
    a, b, c = (numbers((n, n), np.float64) for _ in range(3))
    got = tools.get(tools.gemm(tools.put(a), tools.put(b), tools.put(c.copy()), alpha=0.5, beta=-2.0))
    left, right, there = exact(a), exact(b), exact(c)
    scale = float(0.5 * np.linalg.norm(left) * np.linalg.norm(right) + 2 * np.linalg.norm(there))
    error = relative_error(exact(got), 0.5 * (left @ right) - 2 * there, scale)
    return judged("0.5 a b - 2 c", tools.by("gemm"), error, bound_of(np.float64, n))


def batch_row(tools: Tools, n: int) -> Row:
    """Multiply many pairs of small matrices in one call."""
    small = max(n // 8, 2)
    a, b = numbers((16, small, small), np.float32), numbers((16, small, small), np.float32)
    got = tools.get(tools.gemm(tools.put(a), tools.put(b)))
    errors = [product_error(got[i], a[i], b[i]) for i in range(16)]
    by = tools.by("gemm" if tools.on_device else "gemm_halves")
    return judged(f"16 of {small} x {small}", by, max(errors), bound_of(np.float32, small))


def gelu(x: Array) -> Array:
    """Return the activation of numbers, in their precision."""
    result: Array = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return result


def epilogue_rows(tools: Tools, n: int, size: int) -> list[Row]:
    """Add a bias and apply an activation: within the product's pass, and in three calls."""
    a, b, bias = numbers((n, n), np.float32), numbers((n, n), np.float32), numbers((n,), np.float32)
    sums = exact(a) @ exact(b) + exact(bias)
    scale = float(np.linalg.norm(exact(a)) * np.linalg.norm(exact(b)) + np.sqrt(n) * np.linalg.norm(exact(bias)))
    # The activations' slopes are at most 1.13; their own rounding is some units.
    bound = 1.13 * bound_of(np.float32, n) + 16 * 2.0**-24
    operands = [tools.put(x) for x in (a, b, bias)]
    timed: list[Any] = []
    if tools.on_device and timing.available():
        timed = [cuda.to_device(numbers(shape, np.float32)) for shape in ((size, size), (size, size), (size,))]
        timed.append(cuda.empty((size, size), np.float32))
    expected = {"relu": np.maximum(sums, 0), "gelu": gelu(sums)}
    rows = []
    for activation, result in expected.items():
        got = tools.get(tools.gemm_epilogue(*operands, activation=activation))
        work: Callable[[], object] | None = None
        if timed:

            def work(activation: str = activation) -> object:
                return tools.gemm_epilogue(*timed, activation=activation)

        error = relative_error(exact(got), result, scale)
        name = f"bias and {activation.upper() if activation == 'gelu' else 'ReLU'}, fused"
        rows.append(judged(name, tools.by("gemm_epilogue"), error, bound, work=work))

    # On a driver without the libraries the product comes from the host, and the kernels run all the same.
    out = cuda.empty((n, n), np.float32)
    if tools.on_device:
        tools.gemm(operands[0], operands[1], out)
    else:
        out.copy_from(tools.gemm(a, b))
    apart(out, cuda.to_device(bias))
    work = None
    if timed:

        def work() -> object:
            left, right, added, target = timed
            tools.gemm(left, right, target)
            apart(target, added)
            return target

    error = relative_error(exact(out.to_host()), expected["gelu"], scale)
    by = f"{tools.by('gemm')}, kernels"
    rows.append(judged("bias and GELU, three calls", by, error, bound, work=work))
    return rows


def apart(matrix: cuda.DeviceArray, bias: cuda.DeviceArray) -> None:
    """Add the bias and apply the activation with a kernel each."""
    module = load("gemm")
    rows, columns = matrix.shape
    grid = (blocks_for(columns, BLOCK[0]), blocks_for(rows, BLOCK[1]))
    module["add_bias"][grid, BLOCK](matrix, bias, rows, columns)
    module["gelu"][blocks_for(matrix.size, 256), 256](matrix, matrix.size)


def gemv_row(tools: Tools, n: int, size: int) -> Row:
    """Multiply a matrix and a vector: two operations for each number of the matrix."""
    a, x = numbers((n, n), np.float64), numbers((n,), np.float64)
    got = tools.get(tools.gemv(tools.put(a), tools.put(x)))
    work: Callable[[], object] | None = None
    if tools.on_device and timing.available():
        matrix, vector, out = (cuda.to_device(numbers(shape, np.float64)) for shape in ((size, size), (size,), (size,)))

        def work() -> object:
            return tools.gemv(matrix, vector, out)

    return judged(
        "gemv float64", tools.by("gemv"), product_error(got, a, x), bound_of(np.float64, n), work=work,
        amount=2 * size**2, limit=Limit("", "TFLOP/s"),
    )  # fmt: skip


def axpy_row(tools: Tools, n: int, size: int) -> Row:
    """Add a multiple of a vector: two operations for three numbers moved."""
    x, y = numbers((n * n,), np.float64), numbers((n * n,), np.float64)
    got = tools.get(tools.axpy(2.5, tools.put(x), tools.put(y.copy())))
    result = exact(y) + np.longdouble(2.5) * exact(x)
    work: Callable[[], object] | None = None
    if tools.on_device and timing.available():
        source, target = (cuda.to_device(numbers((size * size,), np.float64)) for _ in range(2))

        def work() -> object:
            return tools.axpy(2.5, source, target)

    return judged(
        "axpy float64", tools.by("axpy"), relative_error(exact(got), result), 2.0**-51, work=work,
        amount=2 * size**2, limit=Limit("", "TFLOP/s"),
    )  # fmt: skip


def rate_curve(device: cuda.Device) -> Curve:
    """Measure TFLOP/s against the size, beside what memory and arithmetic allow."""
    copy, peak = measured_ceiling(device, "copy"), measured_ceiling(device, "fp32")
    lines = {name: [(float(n), product_rate(way, n)) for n in CURVE_SIZES] for name, way in PRECISIONS.items()}
    # Three matrices of n^2 floats for 2 n^3 operations.
    lines["roofline of float32"] = [(float(n), 1e-12 * min(peak, copy * n / 6)) for n in CURVE_SIZES]
    return Curve("rates", "rows and columns", "TFLOP/s", lines, logarithmic="xy")


def product_rate(precision: Precision, n: int) -> float:
    """Measure the TFLOP/s of one product of matrices on the device."""
    from .blas import gemm

    a, b, out = (cuda.zeros((n, n), precision.dtype) for _ in range(3))
    ms = timing.median_ms(lambda: gemm(a, b, out, compute=precision.compute))
    return timing.per_second(precision.operations * n**3, ms, "TFLOP/s")
