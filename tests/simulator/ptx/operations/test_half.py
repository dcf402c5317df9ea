"""Half-precision opcodes round the exact result once and follow their modifiers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.floats import half
from cudart_py.simulator.ptx.operations.floats.formats import widen
from tests.simulator.ptx.operations.references import (
    Array,
    bits_of,
    extreme,
    flush,
    ieee_product,
    ieee_sum,
    operation,
    round_flushed,
)

KINDS = ["f16", "bf16"]
COUNT = 1000


def codes(kind: str, seed: int) -> Array:
    """Draw patterns: any, near one, and special values."""
    rng = np.random.default_rng(seed)
    one = 0x3C00 if kind == "f16" else 0x3F80
    near = one + rng.integers(-400, 400, COUNT)
    specials = [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3FF, 0x400, 0x7C00, 0xFC00, 0x7F80, 0xFF80, 0x7FFF]
    special = rng.choice(specials, COUNT)
    table = np.stack([rng.integers(0, 65536, COUNT), near, near ^ 0x8000, special])
    chosen: Array = table[rng.integers(0, 4, COUNT), np.arange(COUNT)].astype(np.uint16)
    return chosen


def check(function: Callable[..., Array], reference: Callable[..., float], kind: str, *operands: Array) -> None:
    """Compare patterns lane by lane; NaN is canonical."""
    lists = [widen(o, kind).astype(np.float64).tolist() for o in operands]
    values = [reference(*lane) for lane in zip(*lists, strict=True)]
    wanted = [0x7FFF if math.isnan(value) else bits_of(value, kind) for value in values]
    wrong = np.flatnonzero(function(*operands) != np.array(wanted, np.uint16))
    assert wrong.size == 0, [hex(o[wrong[0]]) for o in operands]


@pytest.mark.parametrize("kind", KINDS)
def test_one_rounding(kind: str) -> None:
    a, b, c = (codes(kind, seed) for seed in (1, 2, 3))
    check(operation(f"add.{kind}"), lambda x, y: ieee_sum(x, y, None, kind), kind, a, b)
    check(operation(f"sub.{kind}"), lambda x, y: ieee_sum(x, -y, None, kind), kind, a, b)
    check(operation(f"mul.{kind}"), lambda x, y: ieee_product(x, y, kind), kind, a, b)
    check(operation(f"fma.rn.{kind}"), lambda x, y, z: ieee_sum(x, y, z, kind), kind, a, b, c)


@pytest.mark.parametrize("kind", KINDS)
def test_products_near_the_least_numbers_of_single_precision_too_round_once(kind: str) -> None:
    rng = np.random.default_rng(20)
    bits = 10 if kind == "f16" else 7
    bias = 15 if kind == "f16" else 127
    exponents = rng.integers(bias // 2 - bits, bias // 2 + 3, (2, COUNT))
    a, b = (exponents << bits | rng.integers(0, 1 << bits, (2, COUNT))).astype(np.uint16)
    check(operation(f"mul.{kind}"), lambda x, y: ieee_product(x, y, kind), kind, a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_addend_tips_a_tie_of_the_product(kind: str) -> None:
    rng = np.random.default_rng(4)
    one = 0x3C00 if kind == "f16" else 0x3F80
    a, b = ((one + rng.integers(0, 40, COUNT)).astype(np.uint16) for _ in range(2))
    c = (rng.integers(1, 30, COUNT) | rng.choice([0, 0x8000], COUNT)).astype(np.uint16)
    check(operation(f"fma.rn.{kind}"), lambda x, y, z: ieee_sum(x, y, z, kind), kind, a, b, c)


@pytest.mark.parametrize("kind", KINDS)
def test_modifiers(kind: str) -> None:
    """sat clamps, relu cuts negative results and keeps NaN, ftz flushes"""
    a, b, c = (codes(kind, seed) for seed in (5, 6, 7))

    def clamped(x: float, y: float) -> float:
        value = ieee_sum(x, y, None, kind)
        return 0.0 if math.isnan(value) else max(0.0, min(1.0, value)) + 0.0

    def rectified(x: float, y: float, z: float) -> float:
        value = ieee_sum(x, y, z, kind)
        return 0.0 if value <= 0 else value

    def flushed(x: float, y: float) -> float:
        return ieee_product(flush(x, kind), flush(y, kind), kind, "rn", round_flushed)

    check(partial(half.add, kind, sat=True), clamped, kind, a, b)
    check(partial(half.fma, kind, relu=True), rectified, kind, a, b, c)
    check(partial(half.mul, kind, ftz=True), flushed, kind, a, b)


def test_products_that_the_hardware_flushes() -> None:
    """0x0400 * 0x3bff is zero and 0x0401 * 0x3bfe is not: recorded on an H200"""
    a = np.array([0x0400, 0x8400, 0x0401], np.uint16)
    b = np.array([0x3BFF, 0x3BFF, 0x3BFE], np.uint16)
    assert half.mul("f16", a, b, ftz=True).tolist() == [0, 0x8000, 0x0400]


@pytest.mark.parametrize("kind", KINDS)
def test_extremes_signs_and_comparisons(kind: str) -> None:
    a, b = codes(kind, 8), codes(kind, 9)
    check(operation(f"min.{kind}"), lambda x, y: extreme(x, y, True), kind, a, b)
    check(operation(f"max.{kind}"), lambda x, y: extreme(x, y, False), kind, a, b)
    nan = operation(f"max.{kind}")(a, b, nan=True) == 0x7FFF
    wide_a, wide_b = widen(a, kind), widen(b, kind)
    assert (nan == (np.isnan(wide_a) | np.isnan(wide_b))).all()
    assert (operation(f"neg.{kind}")(a) == a ^ 0x8000).all()
    assert (operation(f"abs.{kind}")(a) == a & 0x7FFF).all()
    assert (half.compare("lt", kind, a, b) == (wide_a < wide_b)).all()
    assert (half.compare("geu", kind, a, b) == ~(wide_a < wide_b)).all()
    numbers = ~(np.isnan(wide_a) | np.isnan(wide_b))
    signed = operation(f"min.{kind}")(a, b, xorsign_abs=True)
    smaller = operation(f"min.{kind}")(a & 0x7FFF, b & 0x7FFF)
    assert (signed == smaller | (a ^ b) & 0x8000)[numbers].all()


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_two_halves(kind: str) -> None:
    """x2 opcodes do each half alone, the lower one in the pair's lower bits"""
    lower, upper = ([codes(kind, seed) for seed in seeds] for seeds in ((10, 12, 14), (11, 13, 15)))
    pairs = [low.astype(np.uint32) + 65536 * high.astype(np.uint32) for low, high in zip(lower, upper, strict=True)]
    opcodes = {"add": 2, "sub": 2, "mul": 2, "fma.rn": 3, "min": 2, "max": 2, "neg": 1, "abs": 1, "tanh.approx": 1}
    for name, count in opcodes.items():
        single, double = operation(f"{name}.{kind}"), operation(f"{name}.{kind}x2")
        result = double(*pairs[:count])
        assert (result % 65536 == single(*lower[:count])).all(), name
        assert (result // 65536 == single(*upper[:count])).all(), name
    for relation in ("gt", "leu"):
        found = half.compare_pairs(relation, kind, pairs[0], pairs[1])
        for answer, (one, other) in zip(found, (lower[:2], upper[:2]), strict=True):
            assert (answer == half.compare(relation, kind, one, other)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_transcendental_functions_are_within_the_manuals_bounds(kind: str) -> None:
    a = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    wide = widen(a, kind).astype(np.float64)
    result = widen(half.ex2(kind, a), kind).astype(np.float64)
    normal = (np.abs(wide) < 14) & (np.abs(result) > 2.0**-14)
    assert (np.abs(result / np.exp2(wide) - 1)[normal] <= (2.0**-9.9 if kind == "f16" else 2.0**-7)).all()
    small = widen(half.tanh(kind, a), kind).astype(np.float64)
    numbers = ~np.isnan(wide)
    assert (np.abs(small - np.tanh(wide))[numbers] <= (2.0**-10.987 if kind == "f16" else 2.0**-8)).all()
