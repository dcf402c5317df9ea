"""Stops with changed device code: a mistake in a kernel fails the checks of exactly the rows that show it."""

import re

import pytest

import cudart_py as cuda
from library_tour.course import nested_monte_carlo, precision, synchronization
from library_tour.runner import run_stop

# The size of the run, texts of the device code with their replacements, and the rows whose checks fail.
MISTAKES = {
    "constant_memory": (
        2000,
        {
            "horner<terms>(x[i], constant_coefficients)": "horner<terms - 1>(x[i], constant_coefficients)",
            "value[k] = i < n ? x[i] : 0.0f;": "value[k] = i < n ? x[first] : 0.0f;",
        },
        {"constant memory", "4 terms, constant memory", "8 elements per thread"},
    ),
    "crank_nicolson": (
        3,
        {"if (lane == lanes - 1)": "if (lane == 31)", "rows.right[row] = solution;": "rows.right[i] = solution;"},
        {"one warp, eliminating", "one warp, factored", "parallel, permuted", "the error has order 2"},
    ),
    "divergence": (500, {"return threadIdx.x / 32 % 8;": "return threadIdx.x / 64 % 8;"}, {"8 functions, by warp"}),
    "dot_product": (
        2,
        {"float sum = first < n % 4 ?": "float sum = first < 0 ?"},
        {"fixed grid, vector loads", "four loads of each array"},
    ),
    "logical_and": (
        2**14,
        {"(group.x != 0) & (group.y != 0) &": "(group.x & group.y) &"},
        {"fixed grid, vector loads", "four loads in flight", "early exit"},
    ),
    "matmul": (
        96,
        {
            "sum += a[size_t(row) * k + i]": "sum += a[size_t(row) * k + (i & ~1)]",
            "alpha * sum[i][j + 3]": "alpha * sum[i][j + 2]",
            "sum += a[row * k + i]": "if (i > 0) sum += a[row * k + i]",
        },
        {"one thread per element", "8 x 16, pipelined", "one block", "4 blocks, same elements"},
    ),
    "nested_monte_carlo": (100, {"outer * stages.inner + i, seed": "i, seed"}, {*nested_monte_carlo.WAYS}),
    "pinned_and_mapped": (2**12 + 5, {"if (first() < n % 4)": "if (false)"}, {"mapped, 16-byte loads"}),
    "precision": (
        1001,
        {"return sinf(b);": "return cosf(b);", "x = x * x + term;": "x = x * x * term;"},
        {name for name in precision.WAYS if name.startswith("sin")} | precision.RECURRENCES.keys() - {"float, wrong c"},
    ),
    "synchronization": (
        500,
        {"in[i == 0 ? n - 1 : i - 1]": "in[i == 0 ? 0 : i - 1]"},
        {synchronization.STEPWISE, synchronization.AT_ONCE},
    ),
    "texture": (
        100,
        {"box[y][x] =": "box[y ^ 1][x] =", "texel(column + 1, row + 1)": "texel(column + 1, row)"},
        {"shared memory", "filter: plain loads"},
    ),
}


# Stops that take the longest, since their changed device code must be compiled.
LONG = {"crank_nicolson", "matmul", "nested_monte_carlo", "synchronization"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive) if name in LONG else name for name in MISTAKES]
)
def test_a_wrong_kernel_is_noticed(changed_kernels, nothing_apart, shorter, name):
    size, changes, expected = MISTAKES[name]
    changed_kernels(name, changes)
    outcome = run_stop(name, cuda.Device(0), size)
    assert outcome.state == "failed", outcome.traceback
    facts = [check.fact for check in outcome.failed_checks]
    assert {re.sub(r" equals NumPy's result|: (within|at most) .*", "", fact) for fact in facts} == expected
