"""Multiply matrices with cuBLAS, with every precision, layout and epilogue, and with nvmath's high-level functions.

On the simulator, which runs the libraries in software and does not measure time:

    $ library-tour run gemm
    gemm: Matrix products with cuBLAS: precisions, layouts, epilogues
    size 96: rows and columns of the matrices
                          by             error    bound  check
    ──────────────────────────────────────────────────────────
    float32               cuBLAS       1.8e-08  5.9e-06  right
    float64               cuBLAS       3.3e-17  1.1e-14  right
    complex64             cuBLAS       1.8e-08  2.3e-05  right
    complex128            cuBLAS       3.4e-17  4.3e-14  right
    float16               cuBLAS       2.1e-05  9.8e-04  right
    bfloat16              cuBLAS       1.7e-04  0.00782  right
    TF32                  cuBLAS       3.0e-05  9.8e-04  right
    nvmath float32        nvmath, CPU  1.8e-08  5.8e-06  right
    nvmath float64        nvmath, CPU  3.4e-17  1.1e-14  right
    nvmath complex64      nvmath, CPU  1.8e-08  2.3e-05  right
    nvmath complex128     nvmath, CPU  3.4e-17  4.3e-14  right
    nvmath, planned       nvmath, CPU  1.8e-08  5.8e-06  right
    nvmath, bias, GELU
    nvmath, tensors
    nvmath, 3 tensors
    nvmath, autotuned
    op N x op T           cuBLAS       1.8e-08  2.3e-05  right
    op N x op C           cuBLAS       1.8e-08  2.3e-05  right
    op T x op N           cuBLAS       1.8e-08  2.3e-05  right
    op T x op T           cuBLAS       1.8e-08  2.3e-05  right
    op T x op C           cuBLAS       1.8e-08  2.3e-05  right
    op C x op N           cuBLAS       1.8e-08  2.3e-05  right
    op C x op T           cuBLAS       1.8e-08  2.3e-05  right
    op C x op C           cuBLAS       1.8e-08  2.3e-05  right
    windows               cuBLAS       3.4e-17  1.1e-14  right
    0.5 a b - 2 c         cuBLAS       3.2e-17  1.1e-14  right
    16 of 12 x 12         cuBLAS       2.1e-08  8.3e-07  right
    bias, ReLU: fused     cuBLASLt     1.2e-08  7.6e-06  right
    bias, GELU: fused     cuBLASLt     1.2e-08  7.6e-06  right
    bias, GELU: separate  cuBLAS       1.2e-08  7.6e-06  right
    int8, exact           cuBLAS          0.00     0.00  right
    float8, scaled        cuBLASLt     1.9e-07  0.00100  right
    float64, emulated     cuBLAS       3.4e-17  1.1e-14  right
    16 matrices, apart    cuBLAS       4.5e-17  1.6e-15  right
    bias, ReLU: gradient  cuBLASLt     2.4e-17  2.2e-14  right
    gemv float64          cuBLAS       1.8e-17  1.1e-14  right
    axpy float64          cuBLAS       6.8e-17  4.4e-16  right
    scal float64          cuBLAS       4.8e-17  4.4e-16  right
    dot float64           cuBLAS       1.3e-17  2.0e-12  right
    nrm2 float64          cuBLAS       2.0e-17  2.0e-12  right
    asum float64          cuBLAS       4.6e-17  2.0e-12  right
    ger float64           cuBLAS       5.4e-17  4.4e-16  right
    symm float64          cuBLAS       3.4e-17  2.1e-14  right
    syrk float64          cuBLAS       4.2e-17  2.1e-14  right
    nvmath, bias, GELU: Skipped: nvmath provides this function only on a GPU
    nvmath, tensors: Skipped: nvmath provides this function only on a GPU
    nvmath, 3 tensors: Skipped: nvmath provides this function only on a GPU
    nvmath, autotuned: Skipped: nvmath provides this function only on a GPU
    Errors are in the Frobenius norm, relative to the product of the operands'
    norms. Matrices are row-major. cuBLAS expects column-major matrices. The stop
    therefore asks it for the transposed product, so that nothing has to be copied.
    A product of two n x n matrices takes about n operations per element read, so
    arithmetic limits it. gemv, axpy and scal take one or two operations per
    element. Memory limits them to a small fraction of the arithmetic rate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.benchmark.device.ceilings import measured_ceiling

from .. import timing
from ..checks import poisoned
from ..device_code import blocks_for, load
from ..stop import Curve, Limit, Points, Result, Row, Size
from .further_products import further_rows, level_rows
from .high_level import lent, nvmath_row, runs_on_gpu
from .judgement import judged, relative_error, work_of
from .precisions import PRECISIONS, Precision, bound_of, exact, numbers, on_device, peak_of
from .stateful import autotuned_row, ternary_row

TITLE = "Matrix products with cuBLAS: precisions, layouts, epilogues"
SIZE = Size("rows and columns of the matrices", full=4096, small=96, least=4)
# The largest size that is checked against products in extended precision.
CHECKED = 160
CURVE_SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
BLOCK = (32, 8)

Array = NDArray[Any]


def turned(x: Array, op: str) -> Array:
    """Return x, its transpose, or its conjugate transpose, for an `op` of "N", "T" or "C"."""
    return x if op == "N" else x.T if op == "T" else x.conj().T


def run(device: cuda.Device, size: int) -> Result:
    """Check every kind of product at a small size, and time it at the full one."""
    n = min(size, CHECKED)
    timed = timing.available()
    limits = {
        unit: Limit(unit, "TFLOP/s", peak_of(device, unit) if timed else None)
        for unit in ("fp32", "fp64", "tf32", "halves", "8-bit")
    }
    # Operations per byte. gemv performs two per 8-byte element that it reads. axpy performs two, reads two elements
    # and writes one. scal performs one, reads one element and writes one.
    memory = {"gemv": ("read", 2 / 8), "axpy": ("copy", 2 / 24), "scal": ("copy", 1 / 16)}
    for name, (kind, intensity) in memory.items():
        rate = 1e-12 * intensity * measured_ceiling(device, kind) if timed else None
        limits[name] = Limit(kind, "TFLOP/s", rate)
    rows = [precision_row(name, n, size, limits) for name in PRECISIONS]
    rows += high_level_rows(n, size, limits["fp32"])
    rows += [operation_row(op_a, op_b, n) for op_a in "NTC" for op_b in "NTC" if op_a + op_b != "NN"]
    rows += [window_row(n), scaled_row(n), batch_row(n)]
    rows += epilogue_rows(n, size, limits["fp32"])
    rows += further_rows(n, size, limits)
    rows += [gemv_row(n, size, limits["gemv"]), *vector_rows(n, size, limits), *level_rows(n)]
    notes = [
        "Errors are in the Frobenius norm, relative to the product of the operands' norms. Matrices are row-major. "
        "cuBLAS expects column-major matrices. The stop therefore asks it for the transposed product, so that nothing "
        "has to be copied.",
        "A product of two n x n matrices takes about n operations per element read, so arithmetic limits it. gemv, "
        "axpy and scal take one or two operations per element. Memory limits them to a small fraction of the "
        "arithmetic rate.",
    ]
    pictures = []
    if timed:
        products = rate_curve(device, limits)
        pictures = [products, vector_curve(products.lines["float64"], limits["fp64"])]
    return Result(rows, Limit("arithmetic of each precision, memory for vectors", "TFLOP/s"), pictures=pictures,
                  notes=notes)  # fmt: skip  # grouped by meaning


def product_error(got: Array, a: Array, b: Array) -> float:
    """Return the error of a product, relative to the product of the norms."""
    left, right = exact(a), exact(b)
    scale = float(np.linalg.norm(left.ravel()) * np.linalg.norm(right.ravel()))
    return relative_error(exact(got), left @ right, scale)


def product_work(a: Array, b: Array, out: Array | cuda.DeviceArray, count: int = 1) -> dict[str, float]:
    """Return the work of one product or of `count` products: 2 m n k operations, or 8 m n k for complex elements."""
    operations = (8 if a.dtype.kind == "c" else 2) * count * math.prod(out.shape[-2:]) * a.shape[-1]
    return work_of(operations, a, b, out)


def precision_row(name: str, n: int, size: int, limits: dict[str, Limit]) -> Row:
    """Multiply matrices of one precision."""
    precision = PRECISIONS[name]
    a, b = numbers((n, n + 1), precision.dtype), numbers((n + 1, n - 1), precision.dtype)
    out = poisoned((n, n - 1), precision.dtype)
    got = libraries.gemm(cuda.to_device(a), cuda.to_device(b), out, compute=precision.compute).to_host()
    work: Callable[[], object] | None = None
    if timing.available():
        left, right, target = (on_device((size, size), precision.dtype) for _ in range(3))

        def work() -> object:
            return libraries.gemm(left, right, target, compute=precision.compute)

    return judged(
        name, "cuBLAS", product_error(got, a, b), bound_of(precision.dtype, n + 1, precision.compute),
        work=work, amount=precision.operations * size**3, limit=limits[precision.unit], host=True,
        does=product_work(a, b, out),
    )  # fmt: skip  # grouped by meaning


def high_level_rows(n: int, size: int, limit: Limit) -> list[Row]:
    """Multiply with nvmath's functions: in one call, planned, with an epilogue, and as a contraction of tensors."""
    rows = [matmul_row(name, n, size, limit) for name in ("float32", "float64", "complex64", "complex128")]
    if not rows[0].values:
        return rows[:1]  # the other rows need the same library
    a, b, bias = numbers((n, n), np.float32), numbers((n, n), np.float32), numbers((n, 1), np.float32)
    error_of, bound = functools.partial(product_error, a=a, b=b), bound_of(np.float32, n)
    amount, operands = 2 * size**3, functools.partial(lent_pair, size, np.float32)
    with ExitStack() as stack:

        def planned(a: Any, b: Any) -> Callable[[], Any]:
            import nvmath

            product = stack.enter_context(nvmath.linalg.Matmul(a, b, execution=execution()))
            product.plan()
            return lambda: product.execute()

        rows.append(
            nvmath_row("nvmath, planned", lambda: planned(a, b)(), error_of, bound,
                       make_work=lambda: planned(*operands()), amount=amount, limit=limit)
        )  # fmt: skip  # grouped by meaning

    def fused(a: Any, b: Any, bias: Any) -> Any:
        from nvmath.linalg import advanced

        return advanced.matmul(a, b, epilog=advanced.MatmulEpilog.GELU_BIAS, epilog_inputs={"bias": bias})

    def contracted(a: Any, b: Any) -> Any:
        import nvmath

        return nvmath.tensor.binary_contraction("ij,jk->ik", a, b)

    activated, scale, activated_bound = gelu_of(a, b, bias)
    rows.append(
        nvmath_row("nvmath, bias, GELU", lambda: fused(a, b, bias),
                   lambda got: relative_error(exact(got), activated, scale), activated_bound, gpu_only=True,
                   make_work=lambda: functools.partial(fused, *operands(), lent(on_device((size, 1), np.float32))),
                   amount=amount, limit=limit)
    )  # fmt: skip  # grouped by meaning
    rows.append(
        nvmath_row("nvmath, tensors", lambda: contracted(a, b), error_of, bound, gpu_only=True,
                   make_work=lambda: functools.partial(contracted, *operands()), amount=amount, limit=limit)
    )  # fmt: skip  # grouped by meaning
    return [*rows, ternary_row(a, b), autotuned_row(a, b, error_of, bound)]


def matmul_row(name: str, n: int, size: int, limit: Limit) -> Row:
    """Multiply with nvmath.linalg.matmul, which runs on the CPU if there is no GPU."""
    dtype = PRECISIONS[name].dtype
    a, b = numbers((n, n), dtype), numbers((n, n), dtype)

    def product(a: Any, b: Any) -> Any:
        import nvmath

        return nvmath.linalg.matmul(a, b, execution=execution())

    make_work = (lambda: functools.partial(product, *lent_pair(size, dtype))) if name == "float32" else None
    return nvmath_row(
        f"nvmath {name}",
        lambda: product(a, b),
        functools.partial(product_error, a=a, b=b),
        bound_of(dtype, n),
        make_work=make_work,
        amount=2 * size**3,
        limit=limit,
    )


def execution() -> str:
    """Return where nvmath computes: "cuda" or "cpu"."""
    return "cuda" if runs_on_gpu() else "cpu"


def lent_pair(size: int, dtype: Any) -> tuple[Any, Any]:
    """Return two matrices on the device in a form that nvmath accepts."""
    return lent(on_device((size, size), dtype)), lent(on_device((size, size), dtype))


def operation_row(op_a: str, op_b: str, n: int) -> Row:
    """Multiply transposed and conjugated matrices, without a copy of either."""
    shapes = {"a": (n, n + 2), "b": (n + 2, n + 1)}
    a = numbers(shapes["a"] if op_a == "N" else shapes["a"][::-1], np.complex64)
    b = numbers(shapes["b"] if op_b == "N" else shapes["b"][::-1], np.complex64)
    got = libraries.gemm(cuda.to_device(a), cuda.to_device(b), op_a=op_a, op_b=op_b).to_host()
    error = product_error(got, turned(a, op_a), turned(b, op_b))
    does = product_work(turned(a, op_a), turned(b, op_b), got)
    return judged(f"op {op_a} x op {op_b}", "cuBLAS", error, bound_of(np.complex64, n + 2), does=does)


def window_row(n: int) -> Row:
    """Multiply windows of a larger matrix, whose leading dimension exceeds the length of their rows."""
    whole = numbers((2 * n, 2 * n), np.float64)
    place = cuda.to_device(whole)
    a, b = (slice(1, n + 1), slice(0, n)), (slice(n, 2 * n), slice(1, n))
    got = libraries.gemm(place[a], place[b]).to_host()
    does = product_work(whole[a], whole[b], got)
    return judged("windows", "cuBLAS", product_error(got, whole[a], whole[b]), bound_of(np.float64, n), does=does)


def scaled_row(n: int) -> Row:
    """Scale the product by alpha, and add it to the output scaled by beta."""
    a, b, c = (numbers((n, n), np.float64) for _ in range(3))
    got = libraries.gemm(cuda.to_device(a), cuda.to_device(b), cuda.to_device(c.copy()), alpha=0.5, beta=-2.0).to_host()
    left, right, there = exact(a), exact(b), exact(c)
    scale = float(0.5 * np.linalg.norm(left) * np.linalg.norm(right) + 2 * np.linalg.norm(there))
    error = relative_error(exact(got), 0.5 * (left @ right) - 2 * there, scale)
    # The output is read too.
    does = work_of(2 * n**3 + 3 * n**2, a, b, c, c)
    return judged("0.5 a b - 2 c", "cuBLAS", error, bound_of(np.float64, n), does=does)


def batch_row(n: int) -> Row:
    """Multiply many pairs of small matrices in one call."""
    small = max(n // 8, 2)
    a, b = numbers((16, small, small), np.float32), numbers((16, small, small), np.float32)
    got = libraries.gemm(cuda.to_device(a), cuda.to_device(b)).to_host()
    errors = [product_error(got[i], a[i], b[i]) for i in range(16)]
    does = product_work(a, b, got, 16)
    return judged(f"16 of {small} x {small}", "cuBLAS", max(errors), bound_of(np.float32, small), does=does)


def gelu(x: Array) -> Array:
    """Return the activation of each element, in its own precision."""
    result: Array = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return result


def gelu_of(a: Array, b: Array, bias: Array) -> tuple[Array, float, float]:
    """Return the activation of a b + bias in extended precision, a scale for its error, and a bound relative to it."""
    n = len(a)
    scale = float(np.linalg.norm(a) * np.linalg.norm(b) + np.sqrt(n) * np.linalg.norm(bias))
    # The slope of the activation is at most 1.13; its own rounding is a few units.
    return gelu(exact(a) @ exact(b) + exact(bias)), scale, 1.13 * bound_of(np.float32, n) + 16 * 2.0**-24


def epilogue_rows(n: int, size: int, limit: Limit) -> list[Row]:
    """Add a bias and apply an activation, in the epilogue of the product and with separate kernels."""
    a, b, bias = numbers((n, n), np.float32), numbers((n, n), np.float32), numbers((n,), np.float32)
    activated, scale, bound = gelu_of(a, b, bias)
    expected = {"ReLU": np.maximum(exact(a) @ exact(b) + exact(bias), 0), "GELU": activated}
    left, right, added = (cuda.to_device(x) for x in (a, b, bias))
    timed: tuple[cuda.DeviceArray, cuda.DeviceArray, cuda.DeviceArray, cuda.DeviceArray] | None = None
    if timing.available():
        first, second = (on_device((size, size), np.float32) for _ in range(2))
        timed = first, second, on_device((size,), np.float32), cuda.empty((size, size), np.float32)
    rows = []
    work: Callable[[], object] | None
    for title, result in expected.items():
        activation = title.lower()
        got = libraries.gemm_epilogue(left, right, added, poisoned((n, n), np.float32), activation=activation).to_host()
        work = functools.partial(libraries.gemm_epilogue, *timed, activation=activation) if timed else None
        error = relative_error(exact(got), result, scale)
        does = work_of(2 * n**3, a, b, bias, got)
        rows.append(judged(f"bias, {title}: fused", "cuBLASLt", error, bound, work=work,
                           amount=2 * size**3, limit=limit, host=True, does=does))  # fmt: skip  # grouped by meaning

    module = load("gemm")
    out = poisoned((n, n), np.float32)
    libraries.gemm(left, right, out)
    follow(module, out, added)
    work = functools.partial(in_three_calls, module, *timed) if timed else None
    error = relative_error(exact(out.to_host()), activated, scale)
    # Each of the two kernels reads and writes the product again.
    does = work_of(2 * n**3, a, b, bias, *[out] * 5)
    rows.append(judged("bias, GELU: separate", "cuBLAS", error, bound, work=work,
                       amount=2 * size**3, limit=limit, host=True, does=does))  # fmt: skip  # grouped by meaning
    return rows


def in_three_calls(module: cuda.Module, a: Any, b: Any, bias: Any, out: cuda.DeviceArray) -> None:
    """Multiply, add the bias and apply the activation, in three separate calls."""
    libraries.gemm(a, b, out)
    follow(module, out, bias)


def follow(module: cuda.Module, matrix: cuda.DeviceArray, bias: cuda.DeviceArray) -> None:
    """Add the bias and apply the activation, with one kernel each."""
    rows, columns = matrix.shape
    grid = (blocks_for(columns, BLOCK[0]), blocks_for(rows, BLOCK[1]))
    module["add_bias"][grid, BLOCK](matrix, bias, rows, columns)
    module["gelu"][blocks_for(matrix.size, 256), 256](matrix, matrix.size)


def gemv_row(n: int, size: int, limit: Limit) -> Row:
    """Multiply a matrix by a vector, with two operations per element of the matrix."""
    a, x = numbers((n, n + 1), np.float64), numbers((n + 1,), np.float64)
    got = libraries.gemv(cuda.to_device(a), cuda.to_device(x), poisoned(n, np.float64)).to_host()
    work: Callable[[], object] | None = None
    if timing.available():
        operands = [on_device(shape, np.float64) for shape in ((size, size), (size,), (size,))]
        work = functools.partial(libraries.gemv, *operands)
    return judged("gemv float64", "cuBLAS", product_error(got, a, x), bound_of(np.float64, n + 1), work=work,
                  amount=2 * size**2, limit=limit, host=True,
                  does=work_of(2 * a.size, a, x, got))  # fmt: skip  # grouped by meaning


def vector_rows(n: int, size: int, limits: dict[str, Limit]) -> list[Row]:
    """Add a multiple of a vector (axpy) and scale a vector (scal), with one or two operations per element."""
    x, y = numbers((n * n,), np.float64), numbers((n * n,), np.float64)
    place = cuda.to_device(x)
    added = libraries.axpy(2.5, place, cuda.to_device(y)).to_host()
    scaled = libraries.scal(2.5, place).to_host()
    errors = {
        "axpy": relative_error(exact(added), exact(y) + np.longdouble(2.5) * exact(x)),
        "scal": relative_error(exact(scaled), np.longdouble(2.5) * exact(x)),
    }
    works: dict[str, Callable[[], object]] = {}
    if timing.available():
        first, second = (on_device((size**2,), np.float64) for _ in range(2))
        works = {
            "axpy": functools.partial(libraries.axpy, 1e-9, first, second),
            "scal": functools.partial(libraries.scal, -1.0, first),
        }
    operations = {"axpy": 2, "scal": 1}
    # The arrays that each one reads and writes.
    moved = {"axpy": (x, y, y), "scal": (x, x)}
    return [
        judged(f"{name} float64", "cuBLAS", error, 2.0**-51, work=works.get(name), amount=operations[name] * size**2,
               limit=limits[name], host=True, does=work_of(operations[name] * x.size, *moved[name]))
        for name, error in errors.items()
    ]  # fmt: skip  # grouped by meaning


def rate_curve(device: cuda.Device, limits: dict[str, Limit]) -> Curve:
    """Measure TFLOP/s against the size, alongside the rates that memory and arithmetic allow."""
    lines = {name: product_rates(way) for name, way in PRECISIONS.items()}
    copy = 1e-12 * measured_ceiling(device, "copy")
    for name in ("float32", "bfloat16"):
        way = PRECISIONS[name]
        peak = limits[way.unit].rate or np.inf
        # Three matrices of n^2 elements for 2 n^3 operations.
        roof = [(float(n), min(peak, copy * 2 * n / (3 * np.dtype(way.dtype).itemsize))) for n in CURVE_SIZES]
        lines[f"roofline of {name}"] = roof
    return Curve("rates", "rows and columns", "TFLOP/s", lines, logarithmic="xy")


def product_rates(precision: Precision) -> list[tuple[float, float]]:
    """Measure the TFLOP/s of products of matrices of each size on the device.

    The matrices hold random numbers, because a GPU needs less power for zeros and multiplies them at a higher clock.
    """
    a, b, out = (on_device((max(CURVE_SIZES) ** 2,), precision.dtype) for _ in range(3))
    rates = []
    for n in CURVE_SIZES:
        operands = [x[: n * n].reshape(n, n) for x in (a, b, out)]
        ms = timing.median_ms(functools.partial(libraries.gemm, *operands, compute=precision.compute), quick=True)
        rates.append((float(n), timing.per_second(precision.operations * n**3, ms, "TFLOP/s")))
    return rates


def vector_curve(products: Points, limit: Limit) -> Curve:
    """Measure TFLOP/s of gemv, axpy and scal in double precision against the size, alongside the rate of gemm."""
    most = max(CURVE_SIZES)
    a, b = (on_device((most**2,), np.float64) for _ in range(2))
    lines: dict[str, list[tuple[float, float]]] = {}
    for n in CURVE_SIZES:
        matrix, x, y = a[: n * n].reshape(n, n), b[:n], b[most : most + n]
        works = {
            "gemv, n x n": (2 * n**2, functools.partial(libraries.gemv, matrix, x, y)),
            "axpy, n x n elements": (2 * n**2, functools.partial(libraries.axpy, 1e-9, a[: n * n], b[: n * n])),
            "scal, n x n elements": (n**2, functools.partial(libraries.scal, -1.0, a[: n * n])),
        }
        for name, (operations, work) in works.items():
            rate = timing.per_second(operations, timing.median_ms(work, quick=True), "TFLOP/s")
            lines.setdefault(name, []).append((float(n), rate))
    return Curve("vectors", "n", "TFLOP/s, float64", {"gemm, n x n": products, **lines}, logarithmic="xy", line=limit)
