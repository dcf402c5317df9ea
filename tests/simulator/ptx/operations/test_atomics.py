"""Atomics return the same values and leave the same memory as a loop over the lanes, bit for bit.

On a GPU, the order of the lanes is undefined. `tests/conformance` compares results that do not depend on it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations import atomics
from tests.simulator.ptx.operations.references import Array, integers

COUNT = 200


def flushed(x: Any) -> Any:
    return x if abs(x) >= 2.0**-126 else np.float32(0) * x


STEPS: dict[str, Callable[..., Any]] = {
    "add": lambda old, x: old + x,
    "min": min,
    "xor": lambda old, x: old ^ x,
    "exch": lambda old, x: x,
    "inc": lambda old, x: old.dtype.type(0) if old >= x else old + old.dtype.type(1),
    "dec": lambda old, x: x if old == 0 or old > x else old - old.dtype.type(1),
    "cas": lambda old, compare, x: x if old == compare else old,
    "add.ftz": lambda old, x: flushed(flushed(old) + flushed(x)),
}


def check(name: str, memory: Array, index: Array, *operands: Array) -> None:
    """Compare `atom` and `red` with a loop over the lanes."""
    wanted, found = memory.copy(), []
    for element, *given in zip(index, *operands, strict=True):
        found.append(wanted[element])
        wanted[element] = STEPS[name](wanted[element], *given)
    verb, _, ftz = name.partition(".")
    got, reduced = memory.copy(), memory.copy()
    result = atomics.apply(verb, got, index, *operands, ftz=bool(ftz))
    bits = f"u{memory.dtype.itemsize}"
    assert result.view(bits).tolist() == np.array(found, memory.dtype).view(bits).tolist()
    assert (got.view(bits) == wanted.view(bits)).all()
    if name != "cas":
        atomics.reduce_only(verb, reduced, index, *operands, ftz=bool(ftz))
        assert (reduced.view(bits) == wanted.view(bits)).all()


@pytest.mark.parametrize("spread", [0, 1, 5, 30, 300, 10**4])
def test_memory_is_changed_in_the_order_of_lanes(spread: int) -> None:
    """Covers uniform and varying bounds of inc and dec, and chains of swaps that succeed, fail or change nothing."""
    rng = np.random.default_rng(1)
    size, index = max(spread, COUNT), rng.integers(0, spread, COUNT) if spread else rng.permutation(COUNT)
    for dtype in (np.uint32, np.int64):
        for name in ("add", "min", "xor", "exch"):
            check(name, integers(dtype, size, 2), index, integers(dtype, COUNT, 3))
    memory = integers(np.uint32, size, 7) % np.uint32(20)
    memory[::9] = 2**32 - 1
    bounds = [np.full(COUNT, bound, np.uint32) for bound in (0, 1, 6, 2**32 - 1)]
    for bound in (*bounds, integers(np.uint32, COUNT, 8) % np.uint32(9)):
        check("inc", memory, index, bound)
        check("dec", memory, index, bound)
    for choices in (1, 2, 4):
        check("cas", rng.integers(0, choices, size, np.uint32), index, *rng.integers(0, choices, (2, COUNT), np.uint32))
    # The order determines the last bits of sums of floats, and ftz flushes each step.
    for dtype, scale, name in ((np.float64, 1, "add"), (np.float32, 1, "add"), (np.float32, 2.0**-129, "add.ftz")):
        operand = rng.standard_normal(COUNT) * scale * 10.0 ** (np.arange(COUNT) % 7)
        check(name, (rng.standard_normal(size) * scale).astype(dtype), index, operand.astype(dtype))


def test_scalar_operands_and_no_lanes() -> None:
    """If all lanes try to take a lock, the first lane gets it."""
    memory = np.zeros(4, np.uint32)
    found = atomics.apply("cas", memory, np.zeros(5000, np.int64), np.uint32(0), np.uint32(1))
    assert found.tolist() == [0] + [1] * 4999
    assert atomics.apply("add", memory, np.array([1, 1, 1]), np.uint32(2)).tolist() == [0, 2, 4]
    assert atomics.apply("add", memory, np.zeros(0, np.int64), np.zeros(0, np.uint32)).size == 0
