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
    """Multiply batches of small integers, whose products are exact; count the calls to cuBLAS and the copies."""
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
        yield compare(
            f"{count} products, each with a transposed matrix of {depth} x {rows}",
            out.to_host(),
            a.transpose(0, 2, 1) @ b,
        )
        yield at_most(f"{count} products take one call to cuBLAS", gemm.call_count, 1)
        yield at_most("no operand is copied", made.call_count + copied.call_count, 0)


LESSON = Lesson(
    why="Matrix multiplication is the one operation that can keep all of a GPU's arithmetic units busy. On an H200, "
    "cuBLAS multiplies 4,096 x 4,096 matrices at 51 TFLOP/s in single precision, at 394 TFLOP/s with TF32, and at 713 "
    "TFLOP/s in half precision. Half precision is 14 times as fast as single precision, but only about three decimal "
    "digits of its result are correct. A matrix-vector product reads one element for every two operations, so in "
    "double precision it stays below 1 TFLOP/s.\n\n"
    "So it pays to express work as matrix products, to choose the precision deliberately, and to know how to pass "
    "transposed, padded and batched operands to the library without copying them.",
    learn=[
        "choose the precision of a matrix product, based on its error and its rate.",
        "multiply transposed, padded and batched operands without copying them.",
        "explain why a library that expects column-major arrays can multiply row-major ones without copies.",
        "say what you save by adding a bias and applying an activation in the epilogue of a product.",
    ],
    idea="A product of two n x n matrices performs 2 n^3 operations on 3 n^2 elements, or about n operations per "
    "element. For large n, the limit is arithmetic, not memory. **Tensor cores** multiply small matrices with a single "
    "instruction, at many times the rate of ordinary instructions. They support only certain precisions, among them "
    "half, bfloat16, double and **TF32**. TF32 rounds single-precision operands to 11 significant bits before "
    "multiplying.\n\n"
    "A **leading dimension** is the distance in memory from one row to the next. It lets a library work on a window of "
    "a larger matrix. An **epilogue** is work that the library does on the result while it is still in registers.\n\n"
    "The rule of thumb: use one call for many products, do not copy a matrix to transpose it, and choose the lowest "
    "precision that your error bound allows.",
    steps=[
        Step(
            name="float32",
            shows=["precision_row[a:got]"],
            text="`gemm(a, b, out)` multiplies two matrices. The dtype of the operands selects the cuBLAS routine, "
            "and `compute` says whether a single-precision product may use the tensor cores with fewer bits (TF32). "
            "In all steps, `numbers` creates random operands, and `poisoned` allocates a result filled with values "
            "that are wrong until they are overwritten.",
        ),
        Step(
            name="op T x op N",
            shows=["operation_row[got]"],
            text='`op_a="T"` multiplies the transpose of `a` by `b`, without a copy of `a`; "C" also conjugates it. '
            "cuBLAS expects column-major matrices. If it reads a row-major matrix in column-major order, it sees the "
            "transpose. So cudart-py asks for the transposed product, b^T a^T, and nothing is copied.",
        ),
        Step(
            name="windows",
            shows=["window_row[whole:got]"],
            text="A slice of a larger matrix can be an operand too. It has the leading dimension of the whole matrix.",
        ),
        Step(
            name="batch of 16",
            shows=["batch_row[a:got]"],
            text="Three-dimensional arrays are batches of matrices. One call multiplies all pairs. A loop would "
            "launch one kernel per pair, and each kernel would be too small to fill the device. The row is named after "
            "the number and the size of the matrices, such as '16 of 12 x 12'.",
        ),
        Step(
            name="bias, GELU: fused",
            shows=["epilogue_rows[left]", "epilogue_rows[got]"],
            text="`gemm_epilogue` adds one bias per column and applies an activation while the results are still in "
            "registers.",
        ),
        Step(
            name="bias, GELU: separate",
            shows=["add_bias", "gelu", "follow", "in_three_calls"],
            text="The same result with two kernels that run after the product. Each reads the matrix from memory and "
            "writes it back.",
        ),
        Step(
            name="float8, scaled",
            shows=["scaled_to_8_bits", "float8_row[out:left]", "integer_row[k:got]"],
            text="The tensor cores read 8-bit elements along the summed index. The columns of the second operand must "
            "therefore be contiguous: pass the transpose of a row-major matrix. `scaled_gemm` multiplies 8-bit floats "
            "and their scales, and `gemm` multiplies int8 matrices.",
        ),
        Step(
            name="bias, ReLU: gradient",
            shows=["gradient_row[mask:positive]"],
            text="In the forward pass, `gemm_epilogue` also stores one bit per element: whether it is positive. In the "
            "backward pass, one call of `gemm_gradient` multiplies, zeroes the elements whose bit is not set, and sums "
            "the columns, which gives the gradient of the bias.",
        ),
        Step(
            name="gemv float64",
            shows=["gemv_row[a:got]", "vector_rows[place:scaled]"],
            text="A matrix-vector product performs two operations per element that it reads, so memory bandwidth is "
            "the limit. `axpy` and `scal` perform even fewer operations per byte.",
        ),
    ],
    look_at=[
        "In the 'error' column, compare the errors of the different precisions. The column shows the error relative to "
        "the product of the operands' norms. For random n x n matrices, that product is about sqrt(n) times the norm "
        "of the result, so here the error relative to the result is about ten times as large. By that measure, TF32 "
        "and half precision keep about three decimal digits, and bfloat16 keeps two.",
        "On an H200, with 4,096 x 4,096 matrices, the rates are 51 TFLOP/s in single precision, 394 TFLOP/s with TF32 "
        "and 713 TFLOP/s in half precision. The vector operations, in double precision, stay below 1 TFLOP/s.",
        "Double precision reaches 60 TFLOP/s, more than single precision, because cuBLAS uses tensor cores for it: "
        "their peak is 67 TFLOP/s, while ordinary instructions reach at most 33 TFLOP/s in double precision.",
        "On an H200, the product with bias and GELU takes 2.72 ms with the fused epilogue and 2.79 ms with separate "
        "kernels. The product alone takes 2.67 ms.",
        "When the stop runs on a GPU, the page with pictures also has a plot of the rates against the matrix size. "
        "Below a few hundred rows, a product cannot fill the device, and the limit is the host time per call, shown in "
        "the 'host us' column.",
        "In the '0.5 a b - 2 c' row, alpha scales the product, and beta scales the output to which it is added. The "
        "'nvmath' rows call NVIDIA's Python library nvmath: 'planned' plans once and executes several times, and "
        "'autotuned' first measures several algorithms. The rows with tensors are contractions by cuTENSOR. The last "
        "rows multiply a matrix by a vector (gemv), add vectors (axpy), scale a vector (scal), reduce vectors to a "
        "number (dot, nrm2, asum), add an outer product to a matrix (ger), multiply by a symmetric matrix of which one "
        "triangle is stored (symm), and compute one triangle of a a^T (syrk).",
        "The product of int8 matrices has no rounding errors, because it accumulates in int32. 8-bit floats have a "
        "small range, so in the 'float8, scaled' product each row of the first matrix and each column of the second "
        "has its own scale factor. Its error does not include the rounding of the elements to 8 bits. 'float64, "
        "emulated' reaches the accuracy of double precision with integer arithmetic.",
    ],
    exercise=Exercise(
        task="`products(a, b)` multiplies many pairs of matrices: for each i, it returns the transpose of `a[i]` "
        "times `b[i]`. The given code copies one matrix per pair and calls `gemm` once per pair. Use a single call, "
        "and copy nothing.",
        hints=[
            "Which argument says that an operand is transposed, and which shape says that it is a batch?",
            '`gemm` allocates the result itself if you do not pass `out`. `op_a="T"` transposes each matrix of a '
            "batch.",
        ],
        answer="Three-dimensional arrays are batches of matrices along their first axis, so one call multiplies all "
        "pairs. `op_a` transposes each matrix of `a` as it is read, so nothing is copied.",
        check=check,
    ),
    course="The lectures on which the tour is based show these libraries but give no figures for them.",
)
