"""Atomics give what a loop over the lanes gives, to the last bit, found values and memory alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations import atomics
from tests.simulator.ptx.operations.references import Array, floats, integers, operation

SPREADS = {"distinct": 0, "one": 1, "few": 5, "some": 100, "many": 1500, "wide": 10**6}
COUNT = 1000


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def places(spread: int, seed: int) -> Array:
    """Draw element positions, all distinct for spread 0."""
    rng = np.random.default_rng(seed)
    if spread == 0:
        return rng.permutation(COUNT).astype(np.int64)
    return rng.integers(0, spread, COUNT)


def step(operation: str, old: Any, operand: Any, compare: Any) -> Any:
    """Do one lane's operation."""
    match operation:
        case "add":
            return old + operand
        case "min":
            return min(old, operand)
        case "max":
            return max(old, operand)
        case "and":
            return old & operand
        case "or":
            return old | operand
        case "xor":
            return old ^ operand
        case "exch":
            return operand
        case "inc":
            return old.dtype.type(0) if old >= operand else old + old.dtype.type(1)
        case "dec":
            return operand if old == 0 or old > operand else old - old.dtype.type(1)
        case _:
            return operand if old == compare else old


def check(
    operation: str, memory: Array, index: Array, operand: Array, compare: Array | None = None, **how: Any
) -> None:
    """Compare with a loop over the lanes, and `red` with `atom`."""
    wanted, found = memory.copy(), []
    for lane, element in enumerate(index):
        old = wanted[element]
        found.append(old)
        wanted[element] = step(operation, old, operand[lane], compare[lane] if compare is not None else None)
    got = memory.copy()
    operands = (operand,) if compare is None else (compare, operand)
    result = atomics.apply(operation, got, index, *operands, **how)
    bits = f"u{memory.dtype.itemsize}"
    assert result.view(bits).tolist() == np.array(found, memory.dtype).view(bits).tolist()
    assert got.view(bits).tolist() == wanted.view(bits).tolist()
    if operation != "cas":
        reduced = memory.copy()
        atomics.reduce_only(operation, reduced, index, operand, **how)
        assert reduced.view(bits).tolist() == wanted.view(bits).tolist()


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint64, np.int64])
@pytest.mark.parametrize("operation", ["add", "min", "max", "and", "or", "xor", "exch"])
def test_integers(operation: str, dtype: Any, spread: str) -> None:
    """add, min, max, and, or, xor, exch of integers"""
    size = max(SPREADS[spread], COUNT)
    index = places(SPREADS[spread], 1)
    check(operation, integers(dtype, size, 2), index, integers(dtype, COUNT, 3))


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_sums_keep_the_lane_order(dtype: Any, spread: str) -> None:
    """add of floats, whose order decides the last bits"""
    size = max(SPREADS[spread], COUNT)
    memory = np.random.default_rng(4).standard_normal(size).astype(dtype)
    operand = (np.random.default_rng(5).standard_normal(COUNT) * 10.0 ** (np.arange(COUNT) % 7)).astype(dtype)
    check("add", memory, places(SPREADS[spread], 6), operand)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("operation", ["inc", "dec"])
@pytest.mark.parametrize("bound", [0, 1, 6, 2**32 - 1, None])
def test_counting(operation: str, spread: str, bound: int | None) -> None:
    """inc and dec with one bound or many"""
    size = max(SPREADS[spread], COUNT)
    memory = integers(np.uint32, size, 7) % np.uint32(20)
    memory[::9] = 2**32 - 1
    operand = integers(np.uint32, COUNT, 8) % np.uint32(9) if bound is None else np.full(COUNT, bound, np.uint32)
    check(operation, memory, places(SPREADS[spread], 9), operand)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("choices", [1, 2, 4])
def test_compare_and_swap(spread: str, choices: int) -> None:
    """cas, with chains of successes, failures and swaps that change nothing"""
    size = max(SPREADS[spread], COUNT)
    rng = np.random.default_rng(10)
    memory, operand, compare = (rng.integers(0, choices, n).astype(np.uint32) for n in (size, COUNT, COUNT))
    check("cas", memory, places(SPREADS[spread], 11), operand, compare)


def test_a_lock_is_taken_by_the_first_lane() -> None:
    """cas from 0 to 1 on one element succeeds once"""
    memory = np.zeros(1, np.uint32)
    found = atomics.apply("cas", memory, np.zeros(5000, np.int64), np.uint32(0), np.uint32(1))
    assert found.tolist() == [0] + [1] * 4999


def test_global_sums_flush_subnormal_floats() -> None:
    """ftz flushes what is found on the way, for atom and red alike"""
    least = np.float32(2.0**-126)
    index = np.zeros(4, np.int64)
    operand = np.array([1.5, -1, 1, 2], np.float32) * least
    for start, sums in ((0.0, [1.5, 0.0, 1.0, 3.0]), (0.25, [1.5, 0.0, 1.0, 3.0])):
        memory = np.array([start], np.float32) * least
        found = atomics.apply("add", memory, index, operand, ftz=True)
        assert (found[1:] / least).tolist() == sums[:3]
        assert memory[0] / least == sums[3]
        memory = np.array([start], np.float32) * least
        atomics.reduce_only("add", memory, index, operand, ftz=True)
        assert memory[0] / least == sums[3]


@pytest.mark.parametrize("spread", SPREADS)
def test_half_sums(spread: str) -> None:
    """add of f16 and bf16x2"""
    size = max(SPREADS[spread], COUNT)
    index = places(SPREADS[spread], 12)
    for kind, dtype, add in (("f16", np.uint16, operation("add.f16")), ("bf16x2", np.uint32, operation("add.bf16x2"))):
        memory, operand = integers(dtype, size, 13), integers(dtype, COUNT, 14)
        wanted, found = memory.copy(), []
        for lane in range(200):
            found.append(wanted[index[lane]])
            wanted[index[lane]] = add(wanted[index[lane] : index[lane] + 1], operand[lane : lane + 1])[0]
        got = memory.copy()
        assert atomics.apply("add", got, index[:200], operand[:200], type_=kind).tolist() == found
        assert got.tolist() == wanted.tolist()
        atomics.reduce_only("add", memory, index[:200], operand[:200], type_=kind)
        assert memory.tolist() == wanted.tolist()


def test_scalar_operands_and_no_lanes() -> None:
    """A scalar operand serves all lanes; no lanes are no work"""
    memory = np.zeros(4, np.uint32)
    assert atomics.apply("add", memory, np.array([1, 1, 1]), np.uint32(2)).tolist() == [0, 2, 4]
    assert atomics.apply("add", memory, np.zeros(0, np.int64), np.zeros(0, np.uint32)).size == 0
    with pytest.raises(ValueError, match="cas of 1"):
        atomics.apply("cas", memory, np.array([1]), np.uint32(2))


def test_random_floats_with_nan_and_infinity() -> None:
    """add of any float patterns keeps NaN as NaN"""
    memory, operand = floats(np.float32, COUNT, 15), floats(np.float32, COUNT, 16)
    index = places(50, 17)
    wanted = memory.copy()
    for lane, element in enumerate(index):
        wanted[element] = wanted[element] + operand[lane]
    atomics.apply("add", memory, index, operand)
    assert np.array_equal(memory, wanted, equal_nan=True)


@pytest.mark.parametrize("scale", [1.0, 2.0**-120, 2.0**-140])
def test_flushing_sums_of_any_size(scale: float) -> None:
    """ftz changes nothing far above the subnormal range, and each step within it"""
    rng = np.random.default_rng(18)
    memory, operand = ((rng.standard_normal(n) * scale).astype(np.float32) for n in (20, COUNT))
    index = places(20, 19)
    wanted, found = memory.copy(), []
    for lane, element in enumerate(index):
        found.append(wanted[element])
        addends = [x if abs(x) >= 2.0**-126 else np.float32(0) * x for x in (wanted[element], operand[lane])]
        total = addends[0] + addends[1]
        wanted[element] = total if abs(total) >= 2.0**-126 else np.float32(0) * total
    got = memory.copy()
    assert atomics.apply("add", got, index, operand, ftz=True).tolist() == found
    assert got.tolist() == wanted.tolist()
    atomics.reduce_only("add", memory, index, operand, ftz=True)
    assert memory.tolist() == wanted.tolist()
