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
    """Multiply batches of small integers, which are exact; count the products and the arrays that are made."""
    for count, depth, rows, columns in ((16, 5, 3, 7), (3, 4, 4, 4)):
        generator = np.random.default_rng(5)
        a = generator.integers(-9, 10, (count, depth, rows)).astype(np.float32)
        b = generator.integers(-9, 10, (count, depth, columns)).astype(np.float32)
        given, other = cuda.to_device(a), cuda.to_device(b)
        with (
            patch.object(libraries, "gemm", wraps=libraries.gemm) as gemm,
            patch.object(cuda, "to_device", wraps=cuda.to_device) as made,
            patch.object(cuda.DeviceArray, "copy", autospec=True, side_effect=cuda.DeviceArray.copy) as copied,
        ):
            out = answer.products(given, other)
        yield compare(f"{count} products of {depth} x {rows}, transposed", out.to_host(), a.transpose(0, 2, 1) @ b)
        yield at_most(f"{count} products are one call of cuBLAS", gemm.call_count, 1)
        yield at_most("no operand is copied", made.call_count + copied.call_count, 0)


LESSON = Lesson(
    learn=[
        "What a product of matrices costs in each precision, and why few other operations come near its rate.",
        "How transposed, padded and batched operands are multiplied without a copy.",
        "Why rows of Python are no obstacle for a library that expects columns.",
        "What it saves to add a bias and to apply an activation within the product.",
    ],
    steps=[
        Step(
            name="float32",
            shows=["precision_row"],
            text="`gemm(a, b, out)` multiplies. The dtype of the operands chooses cuBLAS's routine, and `compute` "
            "whether products of single precision may use the tensor cores with shorter numbers (TF32).",
        ),
        Step(
            name="op T x op N",
            shows=["operation_row"],
            text='`op_a="T"` multiplies by the transposed matrix, which is read where it is; "C" conjugates as well. '
            "cuBLAS expects matrices by columns. A matrix by rows is the transposed one by columns, so the package "
            "asks for the transposed product, b^T a^T, and nothing is copied.",
        ),
        Step(
            name="windows",
            shows=["window_row"],
            text="A slice of a larger matrix is an operand too: from row to row it is as far as in the whole matrix.",
        ),
        Step(
            name="a batch of 16",
            shows=["batch_row"],
            text="Arrays of three dimensions are batches. One call multiplies all pairs, where a loop would launch a "
            "kernel for each, too small to fill the device.",
        ),
        Step(
            name="bias, GELU: fused",
            shows=["epilogue_rows"],
            text="`gemm_epilogue` adds a number for each column and applies an activation while the results are in "
            "registers.",
        ),
        Step(
            name="bias, GELU: apart",
            shows=["add_bias", "gelu", "follow", "in_three_calls"],
            text="The same by kernels behind the product: each reads the matrix from memory and writes it again.",
        ),
        Step(
            name="gemv float64",
            shows=["gemv_row", "vector_rows"],
            text="A matrix times a vector does two operations for each number that is read: memory limits it. `axpy` "
            "and `scal` do even less.",
        ),
    ],
    look_at=[
        "The column 'error' beside its bound: TF32 and halves keep about three digits, and bfloat16 two.",
        "On an H200 at 4,096 rows: 51 TFLOP/s in single precision, 386 with TF32, and 738 with halves; the vectors' "
        "operations stay below 1.",
        "The picture of the rates against the size: below some hundred rows a product cannot fill the device. "
        "The time of the call, in the column 'host us', counts then.",
    ],
    exercise=Exercise(
        task="`products(a, b)` returns the products of many pairs: for each i the transposed `a[i]` times `b[i]`. So "
        "far there is a copy and a call for each pair. Make it one call, and copy nothing.",
        hints=[
            "Which arguments say that an operand is transposed, and which shape says that it is a batch?",
        ],
        answer="Arrays of three dimensions are batches of their first axis, and `op_a` transposes each of their "
        "matrices while it is read.",
        check=check,
    ),
    course="The courses show these libraries without figures for them.",
)
