"""Bit opcodes agree with the PTX manual's definitions written over Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations import bits as ops
from tests.simulator.ptx.operations.references import Array, integers, operation

TYPES = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64}
COUNT = 800


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def check(function: Callable[..., Array], reference: Callable[..., int], *operands: Array, dtype: Any) -> None:
    """Compare a function with its reference over lanes, and with scalars for all operands but the first."""
    lanes = [o.tolist() for o in operands]
    width = np.dtype(dtype).itemsize * 8
    result = function(*operands)
    assert result.dtype == dtype
    wanted = [reference(*lane) & ((1 << width) - 1) for lane in zip(*lanes, strict=True)]
    assert result.view(f"u{width // 8}").tolist() == wanted
    for index in (5, 6, 7):
        scalars = [o[index] for o in operands[1:]]
        result = function(operands[0], *scalars)
        wanted = [reference(x, *(int(s) for s in scalars)) & ((1 << width) - 1) for x in lanes[0]]
        assert result.view(f"u{width // 8}").tolist() == wanted


def small(limit: int, seed: int, extremes: tuple[int, ...] = ()) -> Array:
    """Draw u32 below a limit, with some given values first."""
    values = np.random.default_rng(seed).integers(0, limit, COUNT, dtype=np.uint32)
    values[: len(extremes)] = extremes
    return values


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_field_extract(kind: str) -> None:
    """bfe takes fields past the top and length 0"""
    msb = int(kind[1:]) - 1

    def reference(a: int, b: int, c: int) -> int:
        pos, length = b & 0xFF, c & 0xFF
        sign = 0 if kind[0] == "u" or length == 0 else a >> min(pos + length - 1, msb) & 1
        return sum((a >> (pos + i) & 1 if i < length and pos + i <= msb else sign) << i for i in range(msb + 1))

    a = integers(TYPES[kind], COUNT, 1)
    check(
        operation(f"bfe.{kind}"),
        reference,
        a,
        small(70, 2, (255, 256, 0)),
        small(70, 3, (255, 0, 300)),
        dtype=TYPES[kind],
    )


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bit_field_insert(kind: str) -> None:
    """bfi drops what passes the top; b32 alone takes the low eight bits of position and length"""
    width = int(kind[1:])
    kept = 0xFF if kind == "b32" else 0xFFFFFFFF

    def reference(a: int, b: int, c: int, d: int) -> int:
        pos, length = c & kept, d & kept
        for i in range(length):
            if pos + i < width:
                b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
        return b

    a, b = integers(TYPES[kind], COUNT, 4), integers(TYPES[kind], COUNT, 5)
    check(
        operation(f"bfi.{kind}"),
        reference,
        a,
        b,
        small(70, 6, (255, 256)),
        small(70, 7, (255, 0)),
        dtype=TYPES[kind],
    )


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bit_masks(mode: str) -> None:
    """bmsk"""

    def reference(a: int, b: int) -> int:
        if mode == "wrap":
            a, b = a & 31, b & 31
        return 0 if a > 31 else ((1 << min(b, 32)) - 1) << a

    check(
        operation(f"bmsk.{mode}.b32"),
        reference,
        small(40, 8, (2**32 - 1,)),
        small(40, 9, (3, 2**32 - 1)),
        dtype=np.uint32,
    )


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_extension(mode: str, kind: str) -> None:
    """szext"""

    def reference(a: int, n: int) -> int:
        n = min(n, 32) if mode == "clamp" else n & 31
        value = a & ((1 << n) - 1)
        return value - (1 << n) if kind == "s32" and n and value >> (n - 1) else value

    check(
        operation(f"szext.{mode}.{kind}"),
        reference,
        integers(TYPES[kind], COUNT, 10),
        small(40, 11, (2**32 - 1,)),
        dtype=TYPES[kind],
    )


@pytest.mark.parametrize("width", [32, 64])
def test_counts(width: int) -> None:
    """popc, clz and brev"""
    a = integers(TYPES[f"b{width}"], COUNT, 12)
    check(operation(f"popc.b{width}"), int.bit_count, a, dtype=np.uint32)
    check(operation(f"clz.b{width}"), lambda x: width - x.bit_length(), a, dtype=np.uint32)
    check(operation(f"brev.b{width}"), lambda x: int(f"{x:0{width}b}"[::-1], 2), a, dtype=a.dtype)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_highest_bit(kind: str) -> None:
    """bfind ignores the sign bits of negative numbers and gives all ones for nothing"""
    width = int(kind[1:])

    def position(a: int) -> int:
        return (~a if a < 0 else a).bit_length() - 1

    a = integers(TYPES[kind], COUNT, 13)
    check(operation(f"bfind.{kind}"), position, a, dtype=np.uint32)
    check(
        operation(f"bfind.shiftamt.{kind}"),
        lambda x: width - 1 - position(x) if position(x) >= 0 else -1,
        a,
        dtype=np.uint32,
    )


def test_nth_set_bit() -> None:
    """fns searches both ways"""

    def reference(mask: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if mask >> base & 1 else -1
        step = 1 if offset > 0 else -1
        places = range(base, 32) if step > 0 else range(base, -1, -1)
        hits = [p for p in places if mask >> p & 1]
        return hits[abs(offset) - 1] if len(hits) >= abs(offset) else -1

    offset = np.random.default_rng(14).integers(-12, 12, COUNT).astype(np.int32)
    check(ops.fns, reference, integers(np.uint32, COUNT, 15), small(32, 16), offset, dtype=np.uint32)


def _pick(a: int, b: int, selector: int) -> int:
    joined = (b << 32 | a).to_bytes(8, "little")
    value = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = joined[nibble & 7]
        value |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return value


def test_byte_permutation() -> None:
    """prmt with nibbles"""
    a, b, c = (integers(np.uint32, COUNT, seed) for seed in (17, 18, 19))
    check(ops.prmt, _pick, a, b, c, dtype=np.uint32)


@pytest.mark.parametrize(
    ("mode", "table"),
    [
        ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
        ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
        ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
        ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
        ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
        ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
    ],
)
def test_byte_permutation_modes(mode: str, table: list[int]) -> None:
    """prmt's modes are the manual's table of selectors"""
    a, b, c = (integers(np.uint32, COUNT, seed) for seed in (20, 21, 22))
    check(operation(f"prmt.b32.{mode}"), lambda x, y, z: _pick(x, y, table[z & 3]), a, b, c, dtype=np.uint32)


def test_all_three_input_functions() -> None:
    """lop3 gives every one of the 256 functions"""
    inputs = np.uint32(0xF0), np.uint32(0xCC), np.uint32(0xAA)
    for table, varying in itertools.product(range(256), itertools.product((False, True), repeat=3)):
        result = ops.lop3(*(np.full(3, x) if each else x for x, each in zip(inputs, varying, strict=True)), table)
        # One value for all lanes is a scalar, not an array of one.
        assert isinstance(result, np.ndarray) == any(varying)
        assert result.shape == ((3,) if any(varying) else ())
        assert (result & 0xFF == table).all()


def test_one_selector_that_leaves_out_the_word_with_the_lanes() -> None:
    """prmt of lanes and a scalar gives one result a lane whichever word is read"""
    a, b = integers(np.uint32, 5, 30), np.uint32(0x80664422)
    assert ops.prmt(a, b, np.uint32(0x7654)).tolist() == [0x80664422] * 5
    assert ops.prmt(a, b, np.uint32(0xFCFC)).tolist() == [0xFF00FF00] * 5
    assert ops.prmt(a, b, np.uint32(0x3210)).tolist() == a.tolist()
