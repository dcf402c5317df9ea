"""Stops with changed device code: a mistake in a kernel fails the checks of exactly the rows that show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest

import cudart_py as cuda
from library_tour.course import nested_monte_carlo, precision, synchronization
from library_tour.runner import run_stop


class Mistake(NamedTuple):
    """A size to run with, texts of the device code with what replaces them, and what the failed checks are of."""

    size: int
    changes: Mapping[str, str]
    failed: set[str]


MISTAKES = {
    "constant_memory": Mistake(
        2000,
        {
            "= coefficients[threadIdx.x];": "= coefficients[threadIdx.x & ~1u];",
            "horner<terms>(x[i], constant_coefficients)": "horner<terms - 1>(x[i], constant_coefficients)",
            "value[k] = i < n ? x[i] : 0.0f;": "value[k] = i < n ? x[first] : 0.0f;",
            "sum_of_places(constant_table, words,": "sum_of_places(constant_table, 31,",
        },
        {
            "shared memory",
            "constant memory",
            "4 terms, constant memory",
            "registers, 8 numbers each",
            "constant table, 32 words",
            "constant table, 1 word",
        },
    ),
    "crank_nicolson": Mistake(
        3,
        {
            "if (lane == lanes - 1)": "if (lane == 31)",
            "rows.right[row] = solution;": "rows.right[i] = solution;",
        },
        {"a warp, eliminating", "a warp, factored", "parallel, permuted", "the error is of second order"},
    ),
    "divergence": Mistake(
        500, {"return threadIdx.x / 32 % 8;": "return threadIdx.x / 64 % 8;"}, {"8 functions, by warp"}
    ),
    "dot_product": Mistake(
        2,
        {"float sum = first < n % 4 ?": "float sum = first < 0 ?"},
        {"fixed grid, by four", "four loads of each array"},
    ),
    "logical_and": Mistake(
        2**14,
        {"(group.x != 0) & (group.y != 0) &": "(group.x & group.y) &"},
        {"fixed grid, by four", "four loads in flight", "early exit"},
    ),
    "matmul": Mistake(
        96,
        {
            "sum += a[size_t(row) * k + i]": "sum += a[size_t(row) * k + (i & ~1)]",
            "alpha * sum[i][j + 3]": "alpha * sum[i][j + 2]",
            "sum += a[row * k + i]": "if (i > 0) sum += a[row * k + i]",
        },
        {"a thread an element", "8 x 16, pipelined", "one block", "4 blocks, same elements"},
    ),
    "nested_monte_carlo": Mistake(100, {"outer * stages.inner + i, seed": "i, seed"}, {*nested_monte_carlo.WAYS}),
    "pinned_and_mapped": Mistake(2**12 + 5, {"if (first() < n % 4)": "if (false)"}, {"mapped, 16 bytes a load"}),
    "precision": Mistake(
        1001,
        {
            "return a * b + c;": "return a * b + c * 1.0000002f;",
            "return __fadd_rn(__fmul_rn(a, b), c);": "return __fadd_rn(__fmul_rn(a, b), 1.0f);",
            "return sinf(b);": "return cosf(b);",
            "x = x * x + term;": "x = x * x * term;",
        },
        {name for name in precision.WAYS if name.startswith(("a b + c", "c = -a b", "sin"))}
        | precision.RECURRENCES.keys() - {"float, c mistaken"},
    ),
    "synchronization": Mistake(
        500,
        {"in[i == 0 ? n - 1 : i - 1]": "in[i == 0 ? 0 : i - 1]"},
        {synchronization.STEPWISE, synchronization.AT_ONCE},
    ),
    "texture": Mistake(
        100,
        {
            "? in[shape.place(column, row)] : 0.0f;\n    });": "? in[shape.place(column, row)] : 1.0f;\n    });",
            "(y >> PLACE_BITS) + 0.5f": "(y >> PLACE_BITS) + 1.0f",
            "box[y][x] =": "box[y ^ 1][x] =",
            "texel(column + 1, row + 1)": "texel(column + 1, row)",
            "rounded(x) / unit, rounded(y)": "rounded(y) / unit, rounded(x)",
        },
        {
            "plain loads",
            "plain, 8 x 4 warps",
            "texture",
            "texture, 8 x 4 warps",
            "shared memory",
            "filter: plain loads",
            "filter: texture",
        },
    ),
    "variables": Mistake(
        5,
        {
            "atomicAdd(&threads_so_far, 1ull)": "threads_so_far = 1",
            "part[threadIdx.x] = in": "part[BLOCK - 1 - threadIdx.x] = in",
        },
        {
            "a __device__ variable keeps its value",
            "a kernel goes on from the host's value",
            "the threads of a block share its variable",
        },
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_kernel_is_noticed(changed_kernels, nothing_apart, name):
    mistake = MISTAKES[name]
    changed_kernels(name, mistake.changes)
    outcome = run_stop(name, cuda.Device(0), mistake.size)
    assert outcome.state == "failed", outcome.traceback
    failed = {
        re.sub(r" equals NumPy's result|: (within|at most) .*", "", check.fact) for check in outcome.failed_checks
    }
    assert failed == mistake.failed
