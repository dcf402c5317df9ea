"""Integer opcodes agree with Python's unbounded integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations import carry
from cudart_py.simulator.ptx.operations import integers as ops
from tests.simulator.ptx.operations.references import Array, integers, operation

TYPES = {"u16": np.uint16, "s16": np.int16, "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64}
COUNT = 600


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def wrap(value: int, kind: str) -> int:
    """Reduce an integer to a type's range as two's complement does."""
    width = int(kind[1:])
    value &= (1 << width) - 1
    return value - (1 << width) if kind[0] == "s" and value >> (width - 1) else value


def clip(value: int) -> int:
    """Saturate to s32."""
    return max(-(2**31), min(2**31 - 1, value))


def trunc(a: int, b: int) -> int:
    """Divide toward zero; by zero, all ones."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def check(
    function: Callable[..., Array], reference: Callable[..., int], *operands: Array, kind: str, **flags: Any
) -> None:
    """Compare a function with its reference over all lanes and over scalar second operands."""
    result = function(*operands, **flags)
    lanes = [o.tolist() for o in operands]
    assert result.dtype == TYPES[kind]
    assert result.tolist() == [wrap(reference(*lane), kind) for lane in zip(*lanes, strict=True)]
    scalars = [o[3] for o in operands[1:]]
    result = function(operands[0], *scalars, **flags)
    assert result.tolist() == [wrap(reference(x, *(int(s) for s in scalars)), kind) for x in lanes[0]]


def low24(value: int, kind: str) -> int:
    """Read the low 24 bits as the type's kind of integer."""
    return wrap(value, kind[0] + "24")


@pytest.mark.parametrize("kind", TYPES)
def test_upper_half_of_a_product(kind: str) -> None:
    """mul.hi and mad.hi"""
    a, b, c = (integers(TYPES[kind], COUNT, seed) for seed in (1, 2, 3))
    width = int(kind[1:])
    check(operation(f"mul.hi.{kind}"), lambda x, y: x * y >> width, a, b, kind=kind)
    check(operation(f"mad.hi.{kind}"), lambda x, y, z: (x * y >> width) + z, a, b, c, kind=kind)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_product(kind: str) -> None:
    """mul.wide"""
    a, b = (integers(TYPES[kind], COUNT, seed) for seed in (1, 2))
    wide = kind[0] + str(2 * int(kind[1:]))
    check(ops.mul_wide, lambda x, y: x * y, a, b, kind=wide)


@pytest.mark.parametrize("kind", TYPES)
def test_low_half_and_sums(kind: str) -> None:
    """sad"""
    a, b, c = (integers(TYPES[kind], COUNT, seed) for seed in (4, 5, 6))
    check(operation(f"sad.{kind}"), lambda x, y, z: abs(x - y) + z, a, b, c, kind=kind)


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bit_products(kind: str) -> None:
    """mul24 and mad24"""
    a, b, c = (integers(TYPES[kind], COUNT, seed) for seed in (7, 8, 9))
    check(operation(f"mul24.lo.{kind}"), lambda x, y: low24(x, kind) * low24(y, kind), a, b, kind=kind)
    check(operation(f"mul24.hi.{kind}"), lambda x, y: low24(x, kind) * low24(y, kind) >> 16, a, b, kind=kind)
    check(operation(f"mad24.lo.{kind}"), lambda x, y, z: low24(x, kind) * low24(y, kind) + z, a, b, c, kind=kind)
    check(
        operation(f"mad24.hi.{kind}"),
        lambda x, y, z: (low24(x, kind) * low24(y, kind) >> 16) + z,
        a,
        b,
        c,
        kind=kind,
    )


def test_saturation() -> None:
    """add.sat, sub.sat, mad.hi.sat and mad24.hi.sat of s32 clamp instead of wrapping"""
    a, b, c = (integers(np.int32, COUNT, seed) for seed in (10, 11, 12))
    check(ops.add_s32, lambda x, y: clip(x + y), a, b, kind="s32", sat=True)
    check(ops.sub_s32, lambda x, y: clip(x - y), a, b, kind="s32", sat=True)
    check(ops.mad_hi, lambda x, y, z: clip((x * y >> 32) + z), a, b, c, kind="s32", sat=True)
    check(
        ops.mad24_hi,
        lambda x, y, z: clip((low24(x, "s32") * low24(y, "s32") >> 16) + z),
        a,
        b,
        c,
        kind="s32",
        sat=True,
    )
    check(ops.add_s32, lambda x, y: x + y, a, b, kind="s32")
    check(ops.sub_s32, lambda x, y: x - y, a, b, kind="s32")


def test_extremes_are_clamped_on_request() -> None:
    """min.relu and max.relu of s32"""
    a, b = (integers(np.int32, COUNT, seed) for seed in (20, 21))
    check(ops.min_s32, min, a, b, kind="s32")
    check(ops.max_s32, max, a, b, kind="s32")
    check(ops.min_s32, lambda x, y: max(0, min(x, y)), a, b, kind="s32", relu=True)
    check(ops.max_s32, lambda x, y: max(0, x, y), a, b, kind="s32", relu=True)


@pytest.mark.parametrize("kind", TYPES)
def test_division_truncates(kind: str) -> None:
    """div and rem truncate toward zero; a zero divisor gives all ones"""
    a, b = integers(TYPES[kind], 3000, 13), integers(TYPES[kind], 3000, 14)
    check(operation(f"div.{kind}"), trunc, a, b, kind=kind)
    check(operation(f"rem.{kind}"), lambda x, y: x - trunc(x, y) * y if y else -1, a, b, kind=kind)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_quotients_of_opposite_signs_truncate(kind: str) -> None:
    """div where the larger operand is positive"""
    small, large = np.arange(-400, 0, dtype=TYPES[kind]), np.arange(500, 900, dtype=TYPES[kind])
    check(operation(f"div.{kind}"), trunc, small, large, kind=kind)
    check(operation(f"div.{kind}"), trunc, large, small, kind=kind)


@pytest.mark.parametrize("kind", TYPES)
def test_shifts_clamp(kind: str) -> None:
    """shl and shr clamp amounts above the width"""
    width = int(kind[1:])
    a = integers(TYPES[kind], COUNT, 15)
    amount = np.random.default_rng(16).integers(0, 80, COUNT, dtype=np.uint32)
    amount[:4] = [2**32 - 1, 2**31, width, width - 1]
    check(ops.shl, lambda x, n: x << min(n, width), a, amount, kind=kind)
    check(ops.shr, lambda x, n: x >> min(n, width), a, amount, kind=kind)


def test_funnel_shifts() -> None:
    """shf.l and shf.r in both modes"""
    low, high = integers(np.uint32, COUNT, 17), integers(np.uint32, COUNT, 18)
    amount = np.random.default_rng(19).integers(0, 70, COUNT, dtype=np.uint32)
    amount[:2] = [2**32 - 1, 32]

    def pair(x: int, y: int) -> int:
        return y << 32 | x

    check(ops.shf_l_wrap, lambda x, y, n: pair(x, y) << (n & 31) >> 32, low, high, amount, kind="u32")
    check(ops.shf_l_clamp, lambda x, y, n: pair(x, y) << min(n, 32) >> 32, low, high, amount, kind="u32")
    check(ops.shf_r_wrap, lambda x, y, n: pair(x, y) >> (n & 31), low, high, amount, kind="u32")
    check(ops.shf_r_clamp, lambda x, y, n: pair(x, y) >> min(n, 32), low, high, amount, kind="u32")


def piece(value: int, index: int, bits: int, kind: str) -> int:
    """Extract a byte or half with the type's sign."""
    return wrap(value >> (bits * index), f"{kind[0]}{bits}")


@pytest.mark.parametrize("left", ["u32", "s32"])
@pytest.mark.parametrize("right", ["u32", "s32"])
def test_dot_products(left: str, right: str) -> None:
    """dp4a and dp2a with all sign combinations"""
    kind = "u32" if left == right == "u32" else "s32"
    a, b, c = integers(TYPES[left], COUNT, 20), integers(TYPES[right], COUNT, 21), integers(TYPES[kind], COUNT, 22)

    def dot(x: int, y: int, z: int, bits: int, first: int, count: int) -> int:
        return z + sum(piece(x, i, bits, left) * piece(y, i + first, 8, right) for i in range(count))

    check(operation(f"dp4a.{left}.{right}"), lambda x, y, z: dot(x, y, z, 8, 0, 4), a, b, c, kind=kind)
    check(operation(f"dp2a.lo.{left}.{right}"), lambda x, y, z: dot(x, y, z, 16, 0, 2), a, b, c, kind=kind)
    check(operation(f"dp2a.hi.{left}.{right}"), lambda x, y, z: dot(x, y, z, 16, 2, 2), a, b, c, kind=kind)


def test_pairs_of_halves() -> None:
    """add, min and max of u16x2 and s16x2"""
    a, b = integers(np.uint32, COUNT, 23), integers(np.uint32, COUNT, 24)

    def both(function: Callable[[int, int], int], kind: str) -> Callable[[int, int], int]:
        def reference(x: int, y: int) -> int:
            return sum((function(piece(x, i, 16, kind), piece(y, i, 16, kind)) & 0xFFFF) << 16 * i for i in range(2))

        return reference

    check(ops.add_16x2, both(lambda x, y: x + y, "u"), a, b, kind="u32")
    for kind in ("u", "s"):
        check(operation(f"min.{kind}16x2"), both(min, kind), a, b, kind="u32")
        check(operation(f"max.{kind}16x2"), both(max, kind), a, b, kind="u32")
    check(ops.max_s16x2, both(lambda x, y: max(x, y, 0), "s"), a, b, kind="u32", relu=True)
    check(ops.min_s16x2, both(lambda x, y: max(min(x, y), 0), "s"), a, b, kind="u32", relu=True)


@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("sign", ["u32", "s32"])
@pytest.mark.parametrize("bits", [16, 8])
def test_absolute_differences_of_pieces(bits: int, sign: str, kind: str) -> None:
    """vabsdiff2 and vabsdiff4 pack two or four differences or add them up, whatever type the result has"""
    name = f"vabsdiff{32 // bits}.{kind}.{sign}.{sign}"
    a, b = integers(TYPES[sign], COUNT, 25), integers(TYPES[sign], COUNT, 26)
    c = integers(TYPES[kind], COUNT, 27)

    def differences(x: int, y: int) -> list[int]:
        return [abs(piece(x, i, bits, sign) - piece(y, i, bits, sign)) for i in range(32 // bits)]

    def packed(x: int, y: int, z: int) -> int:
        return sum(difference << bits * place for place, difference in enumerate(differences(x, y)))

    check(operation(name), packed, a, b, c, kind=kind)
    check(operation(f"{name}.add"), lambda x, y, z: z + sum(differences(x, y)), a, b, c, kind=kind)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_carries(kind: str) -> None:
    """add.cc, addc, sub.cc, subc, mad.cc and madc are exact with their carries"""
    width = int(kind[1:])
    a, b, c = (integers(TYPES[kind], COUNT, seed) for seed in (28, 29, 30))
    before = np.random.default_rng(31).integers(0, 2, COUNT).astype(bool)
    unsigned = f"u{width}"

    def expect(result: tuple[Array, Array], sums: list[int]) -> None:
        value, flag = result
        assert value.dtype == TYPES[kind]
        assert flag.dtype == bool
        assert value.tolist() == [wrap(s, kind) for s in sums]
        assert flag.tolist() == [not 0 <= s < 1 << width for s in sums]

    def read(x: Array) -> list[int]:
        return [wrap(int(v), unsigned) for v in x]

    x, y, z, f = read(a), read(b), read(c), before.tolist()
    expect(carry.add_cc(a, b), [i + j for i, j in zip(x, y, strict=True)])
    expect(carry.addc_cc(a, b, before), [i + j + k for i, j, k in zip(x, y, f, strict=True)])
    expect(carry.sub_cc(a, b), [i - j for i, j in zip(x, y, strict=True)])
    expect(carry.subc_cc(a, b, before), [i - j - k for i, j, k in zip(x, y, f, strict=True)])
    low = [wrap(i * j, unsigned) for i, j in zip(x, y, strict=True)]
    high = [wrap(int(i) * int(j) >> width, unsigned) for i, j in zip(a, b, strict=True)]
    expect(carry.mad_lo_cc(a, b, c), [p + k for p, k in zip(low, z, strict=True)])
    expect(carry.mad_hi_cc(a, b, c), [p + k for p, k in zip(high, z, strict=True)])
    expect(carry.madc_lo_cc(a, b, c, before), [p + k + m for p, k, m in zip(low, z, f, strict=True)])
    expect(carry.madc_hi_cc(a, b, c, before), [p + k + m for p, k, m in zip(high, z, f, strict=True)])
    for silent, spoken in ((carry.addc, carry.addc_cc), (carry.subc, carry.subc_cc)):
        assert (silent(a, b, before) == spoken(a, b, before)[0]).all()
    for silent_mad, spoken_mad in ((carry.madc_lo, carry.madc_lo_cc), (carry.madc_hi, carry.madc_hi_cc)):
        assert (silent_mad(a, b, c, before) == spoken_mad(a, b, c, before)[0]).all()
