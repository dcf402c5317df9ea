"""Ties and tiny products in half precision, which the results in `tests/conformance` rarely contain."""

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.formats import widen
from tests.simulator.ptx.operations.references import Array, bits_of, ieee_sum, operation

ONE = {"f16": 0x3C00, "bf16": 0x3F80}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}
COUNT = 1000


def check_fma(kind: str, *operands: Array) -> None:
    lists = [widen(o, kind).astype(np.float64).tolist() for o in operands]
    sums = [ieee_sum(*lane, kind) for lane in zip(*lists, strict=True)]
    for opcode, expected in ((f"fma.rn.{kind}", sums), (f"fma.rn.relu.{kind}", [0.0 if x <= 0 else x for x in sums])):
        wrong = np.flatnonzero(operation(opcode)(*operands) != [bits_of(x, kind) for x in expected])
        assert wrong.size == 0, (opcode, *(hex(o[wrong[0]]) for o in operands))


@pytest.mark.parametrize("kind", ONE)
def test_one_rounding(kind: str) -> None:
    """The operands are random, zeros and infinities, or products near a tie with tiny addends that decide it."""
    rng = np.random.default_rng(4)
    check_fma(kind, *rng.integers(0, 65536, (3, COUNT)).astype(np.uint16))
    infinity = INFINITY[kind]
    check_fma(kind, *rng.choice([0, 0x8000, ONE[kind], infinity, infinity | 0x8000], (3, COUNT)).astype(np.uint16))
    a, b = ONE[kind] + rng.integers(0, 40, (2, COUNT))
    c = rng.integers(1, 30, COUNT) | rng.choice([0, 0x8000], COUNT)
    check_fma(kind, *(x.astype(np.uint16) for x in (a, b, c)))


@pytest.mark.parametrize("kind", ONE)
def test_products_near_the_least_numbers_of_single_precision_too_round_once(kind: str) -> None:
    rng = np.random.default_rng(20)
    bits, bias = (10, 15) if kind == "f16" else (7, 127)
    exponents = rng.integers(bias // 2 - bits, bias // 2 + 3, (2, COUNT))
    a, b = (exponents << bits | rng.integers(0, 1 << bits, (2, COUNT))).astype(np.uint16)
    exact = [x * y for x, y in zip(*(widen(o, kind).astype(np.float64).tolist() for o in (a, b)), strict=True)]
    assert operation(f"mul.{kind}")(a, b).tolist() == [bits_of(ieee_sum(x, 1, 0, kind), kind) for x in exact]


@pytest.mark.parametrize("kind", ONE)
def test_set_gives_one_or_zero_of_its_type(kind: str) -> None:
    a, b = np.random.default_rng().integers(0, 65536, (2, COUNT)).astype(np.uint16)
    less = widen(a, kind) < widen(b, kind)
    for to, one in ((kind, ONE[kind]), ("u16", 0xFFFF)):
        assert (operation(f"set.lt.{to}.{kind}")(a, b) == less * one).all(), to
    pairs = operation(f"set.lt.{kind}x2.{kind}x2")(a.view(np.uint32), b.view(np.uint32))
    assert (pairs.view(np.uint16) == less * ONE[kind]).all()
