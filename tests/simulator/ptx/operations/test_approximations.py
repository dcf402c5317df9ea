"""Approximate functions keep the PTX manual's bounds and its tables of special operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats import approximations as ops
from tests.simulator.ptx.operations.references import Array, assert_same_floats

INF, NAN, SUBNORMAL = math.inf, math.nan, 2.0**-130


SPECIAL = np.array([-INF, -SUBNORMAL, -0.0, 0.0, SUBNORMAL, INF, NAN, -2.0], np.float32)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (ops.rcp_approx_f32, [-0.0, -INF, -INF, INF, INF, 0.0, NAN, -0.5]),
        (ops.sqrt_approx_f32, [NAN, -0.0, -0.0, 0.0, 0.0, INF, NAN, NAN]),
        (ops.rsqrt_approx_f32, [NAN, -INF, -INF, INF, INF, 0.0, NAN, NAN]),
        (ops.sin_approx_f32, [NAN, -0.0, -0.0, 0.0, 0.0, NAN, NAN, math.sin(-2.0)]),
        (ops.cos_approx_f32, [NAN, 1.0, 1.0, 1.0, 1.0, NAN, NAN, math.cos(-2.0)]),
        (ops.lg2_approx_f32, [NAN, -INF, -INF, -INF, -INF, INF, NAN, NAN]),
        (ops.ex2_approx_f32, [0.0, 1.0, 1.0, 1.0, 1.0, INF, NAN, 0.25]),
    ],
)
def test_special_operands(function: Callable[..., Array], expected: list[float]) -> None:
    """With ftz, the manual's table holds for each function"""
    assert_same_floats(function(SPECIAL, ftz=True), expected, SPECIAL)
    plain = function(SPECIAL)
    kept = np.array([0, 2, 3, 5, 6, 7])
    assert_same_floats(plain[kept], [expected[i] for i in kept], SPECIAL[kept])
    assert (plain.view(np.uint32)[np.isnan(plain)] == 0x7FFFFFFF).all()


def test_tanh_passes_subnormal_operands() -> None:
    """tanh of a subnormal number is that number"""
    assert_same_floats(
        ops.tanh_approx_f32(SPECIAL), [-1.0, -SUBNORMAL, -0.0, 0.0, SUBNORMAL, 1.0, NAN, math.tanh(-2.0)], SPECIAL
    )


BOUNDS: dict[Callable[..., Array], tuple[Callable[[float], float], float, float, float]] = {
    ops.rcp_approx_f32: (lambda x: 1 / x, 1.0, 2.0, 2.0**-23),
    ops.rsqrt_approx_f32: (lambda x: 1 / math.sqrt(x), 1.0, 4.0, 2.0**-22.4),
    ops.sin_approx_f32: (math.sin, 0.0, math.pi / 2, 2.0**-20.9),
    ops.cos_approx_f32: (math.cos, 0.0, math.pi / 2, 2.0**-20.9),
    ops.lg2_approx_f32: (math.log2, 1.0, 2.0, 2.0**-22.6),
    ops.ex2_approx_f32: (lambda x: 2.0**x, 0.0, 1.0, 2.0**-22.5),
}


@pytest.mark.parametrize("function", BOUNDS)
def test_absolute_errors_are_within_the_manuals_bounds(function: Callable[..., Array]) -> None:
    reference, low, high, bound = BOUNDS[function]
    a = np.random.default_rng(1).uniform(low, high, 1000).astype(np.float32)
    exact = np.array([reference(float(x)) for x in a])
    assert np.abs(function(a).astype(np.float64) - exact).max() <= bound


def test_division() -> None:
    """div.full is within two units; div.approx loses divisors above 2**126"""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) / b
    for function in (ops.div_full_f32, ops.div_approx_f32):
        assert (np.abs(function(a, b) - exact) <= 2 * np.spacing(np.abs(exact).astype(np.float32))).all()
    huge = np.full(3, 1.5 * 2.0**126, np.float32)
    top = np.array([huge[0], -1.0, INF], np.float32)
    assert_same_floats(ops.div_approx_f32(top, huge), [0.0, -0.0, NAN], top)
    assert ops.div_full_f32(top, huge)[0] == 1.0


def test_coarse_double_precision_sees_high_words_only() -> None:
    """rcp and rsqrt.approx.ftz.f64 ignore the operand's low word and leave the result's zero"""
    rsqrt_ftz = partial(ops.rsqrt_approx_f64, ftz=True)
    a = np.random.default_rng(3).standard_normal(500)
    dirty = (a.view(np.uint64) | 0xFFFFFFFF).view(np.float64)
    clean = (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    for function, exact in (
        (ops.rcp_approx_f64, 1 / clean),
        (rsqrt_ftz, 1 / np.sqrt(np.abs(clean))),
    ):
        x, y = (dirty, clean) if function is ops.rcp_approx_f64 else (np.abs(dirty), np.abs(clean))
        result = function(x)
        assert (result == function(y)).all()
        assert (result.view(np.uint64) & 0xFFFFFFFF == 0).all()
        assert (np.abs(result / exact - 1) < 2.0**-20).all()
    special = np.array([-INF, -5e-324, -0.0, 0.0, 1e-310, INF, NAN])
    assert_same_floats(ops.rcp_approx_f64(special), [-0.0, -INF, -INF, INF, INF, 0.0, NAN], special)
    assert_same_floats(rsqrt_ftz(special), [NAN, -INF, -INF, INF, INF, 0.0, NAN], special)
    assert ops.rcp_approx_f64(special).view(np.uint64)[-1] == 0x7FFFFFFF00000000
    assert ops.rcp_approx_f64(np.array([1.5 * 2.0**1023]))[0] == 0.0
    assert ops.rsqrt_approx_f64(np.array([4.0, 0.0]))[0] == 0.5
