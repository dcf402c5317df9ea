"""Atomics give what a loop over the lanes gives, to the last bit, found values and memory alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations import atomics
from tests.simulator.ptx.operations.references import Array, integers, operation

SPREADS = {"distinct": 0, "one": 1, "few": 5, "some": 30, "many": 300, "wide": 10**4}
COUNT = 200
STEPS: dict[str, Callable[..., Any]] = {
    "add": lambda old, x: old + x,
    "min": min,
    "max": max,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "exch": lambda old, x: x,
    "inc": lambda old, x: old.dtype.type(0) if old >= x else old + old.dtype.type(1),
    "dec": lambda old, x: x if old == 0 or old > x else old - old.dtype.type(1),
    "cas": lambda old, compare, x: x if old == compare else old,
}


def places(spread: int) -> Array:
    """Draw element positions, all distinct for spread 0."""
    rng = np.random.default_rng(1)
    return rng.integers(0, spread, COUNT) if spread else rng.permutation(COUNT).astype(np.int64)


def check(
    name: str, memory: Array, index: Array, *operands: Array, step: Callable[..., Any] | None = None, **how: Any
) -> None:
    """Compare with a loop over the lanes, and `red` with `atom`."""
    wanted, found = memory.copy(), []
    for element, *given in zip(index, *operands, strict=True):
        found.append(wanted[element])
        wanted[element] = (step or STEPS[name])(wanted[element], *given)
    got, reduced = memory.copy(), memory.copy()
    result = atomics.apply(name, got, index, *operands, **how)
    bits = f"u{memory.dtype.itemsize}"
    assert result.view(bits).tolist() == np.array(found, memory.dtype).view(bits).tolist()
    assert (got.view(bits) == wanted.view(bits)).all()
    if name != "cas":
        atomics.reduce_only(name, reduced, index, *operands, **how)
        assert (reduced.view(bits) == wanted.view(bits)).all()


@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS)
def test_integers_are_changed_in_the_order_of_lanes(spread: int) -> None:
    """With bounds of inc and dec that differ or don't, and chains of swaps that succeed, fail and change nothing"""
    size, index = max(spread, COUNT), places(spread)
    for dtype in (np.uint32, np.int32, np.uint64, np.int64):
        for name in ("add", "min", "max", "and", "or", "xor", "exch"):
            check(name, integers(dtype, size, 2), index, integers(dtype, COUNT, 3))
    memory = integers(np.uint32, size, 7) % np.uint32(20)
    memory[::9] = 2**32 - 1
    bounds = [np.full(COUNT, bound, np.uint32) for bound in (0, 1, 6, 2**32 - 1)]
    for bound in (*bounds, integers(np.uint32, COUNT, 8) % np.uint32(9)):
        check("inc", memory, index, bound)
        check("dec", memory, index, bound)
    for choices in (1, 2, 4):
        rng = np.random.default_rng(10)
        check("cas", rng.integers(0, choices, size, np.uint32), index, *rng.integers(0, choices, (2, COUNT), np.uint32))


@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS)
def test_sums_of_floats_keep_the_lane_order(spread: int) -> None:
    """The order decides the last bits; halves are added by their opcodes"""
    size, index = max(spread, COUNT), places(spread)
    rng = np.random.default_rng(4)
    for dtype in (np.float32, np.float64):
        operand = (rng.standard_normal(COUNT) * 10.0 ** (np.arange(COUNT) % 7)).astype(dtype)
        operand[5] = math.nan
        check("add", rng.standard_normal(size).astype(dtype), index, operand)
    for kind, dtype in (("f16", np.uint16), ("bf16x2", np.uint32)):
        add = operation(f"add.{kind}")
        check(
            "add", integers(dtype, size, 13), index, integers(dtype, COUNT, 14),
            step=lambda old, x, add=add: add(np.array([old]), np.array([x]))[0], type_=kind,
        )  # fmt: skip  # grouped by meaning


def test_ftz_flushes_each_step_of_a_sum() -> None:
    def flush(x: Any) -> Any:
        return x if abs(x) >= 2.0**-126 else np.float32(0) * x

    rng = np.random.default_rng(18)
    for scale in (1.0, 2.0**-120, 2.0**-126, 2.0**-140):
        memory, operand = ((rng.standard_normal(n) * scale).astype(np.float32) for n in (20, COUNT))
        check("add", memory, places(20), operand, step=lambda old, x: flush(flush(old) + flush(x)), ftz=True)


def test_scalar_operands_and_no_lanes() -> None:
    """Of lanes that all try to take a lock the first one does."""
    memory = np.zeros(4, np.uint32)
    found = atomics.apply("cas", memory, np.zeros(5000, np.int64), np.uint32(0), np.uint32(1))
    assert found.tolist() == [0] + [1] * 4999
    assert atomics.apply("add", memory, np.array([1, 1, 1]), np.uint32(2)).tolist() == [0, 2, 4]
    assert atomics.apply("add", memory, np.zeros(0, np.int64), np.zeros(0, np.uint32)).size == 0
    with pytest.raises(ValueError, match="cas of 1"):
        atomics.apply("cas", memory, np.array([1]), np.uint32(2))
