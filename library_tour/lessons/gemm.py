"""The lesson of `gemm`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from unittest.mock import patch

import numpy as np

import cudart_py as cuda
from cudart_py import libraries

from ..checks import compare
from ..lesson import Exercise, Lesson, Step, at_most
from ..stop import Check


def check(answer: ModuleType) -> Iterator[Check]:
    """Multiply batches of small integers, which is exact; count the calls of cuBLAS and the copies."""
    for count, depth, rows, columns in ((16, 5, 3, 7), (3, 4, 4, 4)):
        generator = np.random.default_rng(5)
        a = generator.integers(-9, 10, (count, depth, rows)).astype(np.float32)
        b = generator.integers(-9, 10, (count, depth, columns)).astype(np.float32)
        device_a, device_b = cuda.to_device(a), cuda.to_device(b)
        with (
            patch.object(libraries, "gemm", wraps=libraries.gemm) as gemm,
            patch.object(cuda, "to_device", wraps=cuda.to_device) as made,
            patch.object(cuda.DeviceArray, "copy", autospec=True, side_effect=cuda.DeviceArray.copy) as copied,
        ):
            out = answer.products(device_a, device_b)
        yield compare(f"{count} products of {depth} x {rows}, transposed", out.to_host(), a.transpose(0, 2, 1) @ b)
        yield at_most(f"{count} products take one call of cuBLAS", gemm.call_count, 1)
        yield at_most("no operand is copied", made.call_count + copied.call_count, 0)


LESSON = Lesson(
    why="A product of two matrices is the one operation that can use all of a GPU's arithmetic. On an H200 cuBLAS "
    "multiplies matrices of 4,096 rows at 51 TFLOP/s in single precision, at 386 with TF32, and at 738 in half "
    "precision: 14 times as fast, with about three correct decimal digits. A product of a matrix and a vector, which "
    "reads one element for every two operations, stays below 1 TFLOP/s.\n\n"
    "So it pays to phrase work as a matrix product, to choose the precision deliberately, and to know how the library "
    "takes transposed, padded and batched operands without a copy.",
    learn=[
        "choose a precision for a matrix product by its error and its rate.",
        "multiply transposed, padded and batched operands without copying them.",
        "explain why row-major arrays are no obstacle for a library that expects column-major ones.",
        "say what you save by adding a bias and applying an activation in the epilogue of a product.",
    ],
    idea="A product of two n x n matrices does 2 n^3 operations on 3 n^2 elements: about n operations per element. "
    "For large n, arithmetic is the limit and not memory. The **tensor cores** multiply small matrices in one "
    "instruction, at many times the rate of ordinary instructions, but only for certain precisions: half, bfloat16, "
    "double, and **TF32**, which rounds single precision to 11 significant bits before multiplying.\n\n"
    "A **leading dimension** is the distance in memory from one row to the next. It lets a library work on a window "
    "of a larger matrix. An **epilogue** is work on the result while it is still in registers.\n\n"
    "The rule of thumb: one call for many products, no copies to transpose, and the lowest precision that your error "
    "bound allows.",
    steps=[
        Step(
            name="float32",
            shows=["precision_row"],
            text="`gemm(a, b, out)` multiplies. The dtype of the operands selects the cuBLAS routine, and `compute` "
            "says whether a product in single precision may use the tensor cores with fewer bits (TF32). In all "
            "steps, `numbers` makes random operands, `product_error` compares a product with an exact one, and "
            "`judged` makes a row of the table.",
        ),
        Step(
            name="op T x op N",
            shows=["operation_row"],
            text='`op_a="T"` multiplies by the transposed matrix, which is read where it is; "C" conjugates as '
            "well. cuBLAS expects column-major matrices. A row-major matrix is its own transpose in column-major "
            "order, so the package asks for the transposed product, b^T a^T, and nothing is copied.",
        ),
        Step(
            name="windows",
            shows=["window_row"],
            text="A slice of a larger matrix is an operand too. Its leading dimension is that of the whole matrix.",
        ),
        Step(
            name="batch of 16",
            shows=["batch_row"],
            text="Arrays of three dimensions are batches. One call multiplies all pairs. A loop would launch one "
            "kernel per pair, each too small to fill the device.",
        ),
        Step(
            name="bias, GELU: fused",
            shows=["epilogue_rows"],
            text="`gemm_epilogue` adds one bias per column and applies an activation while the results are still in "
            "registers.",
        ),
        Step(
            name="bias, GELU: separate",
            shows=["add_bias", "gelu", "follow", "in_three_calls"],
            text="The same with kernels that run after the product: each reads the matrix from memory and writes it "
            "back.",
        ),
        Step(
            name="gemv float64",
            shows=["gemv_row", "vector_rows"],
            text="A product of a matrix and a vector does two operations per element that it reads, so memory "
            "limits it. `axpy` and `scal` do even less.",
        ),
    ],
    look_at=[
        "Compare the column 'error' of the precisions. TF32 and half precision keep about three decimal "
        "digits, and bfloat16 keeps two.",
        "On an H200 at 4,096 rows the rates are 51 TFLOP/s in single precision, 386 with TF32 and 738 in half "
        "precision. The vector operations stay below 1.",
        "On an H200 the product with bias and GELU takes 2.71 ms fused and 2.78 ms with separate kernels. The "
        "product itself takes 2.67 ms.",
        "On a GPU, a picture shows the rates against the size. Below a few hundred rows a product cannot fill the "
        "device, and the host time per call, in the column 'host us', is the limit.",
    ],
    exercise=Exercise(
        task="`products(a, b)` returns the products of many pairs: for each i, the transposed `a[i]` times `b[i]`. "
        "The given code makes a copy and a call for each pair. Use one call in all, and copy nothing.",
        hints=[
            "Which argument says that an operand is transposed, and which shape says that it is a batch?",
            '`gemm` allocates the result itself if you give it no `out`. `op_a="T"` transposes each matrix of a batch.',
        ],
        answer="Arrays of three dimensions are batches along their first axis, and `op_a` transposes each of their "
        "matrices while it is read.",
        check=check,
    ),
    course="The lectures show these libraries but give no figures for them.",
)
