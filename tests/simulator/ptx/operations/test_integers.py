"""Opcodes of integers and of bits give what the manual says, written over Python's unbounded integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.operations import bits, carry
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.operations.references import Array, integers, operation

TYPES = {f"{letter}{width}": np.dtype(f"{kind}{width // 8}").type for letter, kind in ("uu", "si", "bu")
         for width in (16, 32, 64)}  # fmt: skip  # a table
COUNT = 600
LANES = 64


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


def piece(value: int, index: int, width: int, kind: str) -> int:
    """Extract a byte or half with the type's sign."""
    return wrap(value >> (width * index), f"{kind[0]}{width}")


def halves(function: Callable[..., int], kind: str) -> Callable[..., int]:
    """Return what does a function on each half of words."""
    return lambda *words: sum(
        (function(*(piece(word, i, 16, kind) for word in words)) & 0xFFFF) << 16 * i for i in range(2)
    )


def low24(value: int, kind: str) -> int:
    return wrap(value, f"{kind[0]}24")


def dot(x: int, y: int, z: int, left: str, right: str, width: int, first: int = 0) -> int:
    """Add the products of a word's pieces and of bytes."""
    return z + sum(piece(x, i, width, left) * piece(y, i + first, 8, right) for i in range(32 // width))


def counted(value: int, width: int) -> int:
    """Return what counts of a field's position or length: the low eight bits, but on an H200 all of 64-bit fields'."""
    return value & 0xFF if width == 32 else value


def extract(a: int, position: int, length: int, kind: str) -> int:
    width, most = int(kind[1:]), int(kind[1:]) - 1
    position, length = counted(position, width), counted(length, width)
    sign = 0 if kind[0] == "u" or length == 0 else a >> min(position + length - 1, most) & 1
    inside = range(max(min(length, most + 1 - position), 0))
    return sum((a >> position + i & 1 if i in inside else sign) << i for i in range(most + 1))


def insert(a: int, b: int, position: int, length: int, width: int) -> int:
    position, length = counted(position, width), counted(length, width)
    mask = ((1 << min(length, width)) - 1) << min(position, width) & (1 << width) - 1
    return b & ~mask | a << min(position, width) & mask


def bit_mask(a: int, b: int, mode: str) -> int:
    if mode == "wrap":
        a, b = a & 31, b & 31
    return 0 if a > 31 else ((1 << min(b, 32)) - 1) << a


def extend(a: int, n: int, mode: str, kind: str) -> int:
    n = min(n, 32) if mode == "clamp" else n & 31
    return wrap(a, f"{kind[0]}{n}") if n else 0


def highest(a: int) -> int:
    """Return the place of the highest bit that isn't of the sign, or -1."""
    return (~a if a < 0 else a).bit_length() - 1


def nth_bit(mask: int, base: int, offset: int) -> int:
    """Search the n-th set bit upwards or downwards."""
    if offset == 0:
        return base if mask >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    hits = [place for place in places if mask >> place & 1]
    return hits[abs(offset) - 1] if len(hits) >= abs(offset) else -1


def permute(a: int, b: int, selector: int) -> int:
    joined = (b << 32 | a).to_bytes(8, "little")
    nibbles = [selector >> 4 * i & 15 for i in range(4)]
    picked = [joined[nibble & 7] for nibble in nibbles]
    signs = [255 * (byte >> 7) if nibble & 8 else byte for byte, nibble in zip(picked, nibbles, strict=True)]
    return int.from_bytes(bytes(signs), "little")


# The manual's table of prmt's selectors by mode.
PERMUTATIONS = {
    "f4e": [0x3210, 0x4321, 0x5432, 0x6543],
    "b4e": [0x5670, 0x6701, 0x7012, 0x0123],
    "rc8": [0x0000, 0x1111, 0x2222, 0x3333],
    "ecl": [0x3210, 0x3211, 0x3222, 0x3333],
    "ecr": [0x0000, 0x1110, 0x2210, 0x3210],
    "rc16": [0x1010, 0x3232, 0x1010, 0x3232],
}

# Each instruction of d, a, b, c and e: the types of the result and of the operands, and what it computes. A type that
# ends in <70 is of small numbers, such as amounts of shifts.
CASES: dict[str, tuple[str, str, Callable[..., int]]] = {
    "cnot.b64 d, a": ("b64", "b64", lambda a: int(a == 0)),
    "lop3.b32 d, a, b, c, 0xe8": ("b32", "b32 b32 b32", lambda a, b, c: a & b | b & c | a & c),
    "add.sat.s32 d, a, b": ("s32", "s32 s32", lambda a, b: clip(a + b)),
    "sub.sat.s32 d, a, b": ("s32", "s32 s32", lambda a, b: clip(a - b)),
    "mad.hi.sat.s32 d, a, b, c": ("s32", "s32 s32 s32", lambda a, b, c: clip((a * b >> 32) + c)),
    "mad24.hi.sat.s32 d, a, b, c": (
        "s32", "s32 s32 s32", lambda a, b, c: clip((low24(a, "s") * low24(b, "s") >> 16) + c)
    ),
    "min.relu.s32 d, a, b": ("s32", "s32 s32", lambda a, b: max(0, min(a, b))),
    "max.relu.s32 d, a, b": ("s32", "s32 s32", lambda a, b: max(0, a, b)),
    "add.u16x2 d, a, b": ("b32", "b32 b32", halves(lambda a, b: a + b, "u")),
    "max.s16x2.relu d, a, b": ("b32", "b32 b32", halves(lambda a, b: max(a, b, 0), "s")),
    "min.s16x2.relu d, a, b": ("b32", "b32 b32", halves(lambda a, b: max(min(a, b), 0), "s")),
    "shf.l.wrap.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) << (n & 31) >> 32),
    "shf.l.clamp.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32),
    "shf.r.wrap.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) >> (n & 31)),
    "shf.r.clamp.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) >> min(n, 32)),
    "prmt.b32 d, a, b, c": ("b32", "b32 b32 b32", permute),
}  # fmt: skip  # rows of a table
CASES |= {f"fns.b32 d, a, b, {n}": ("b32", "b32 u32=32", lambda a, b, n=n: nth_bit(a, b, n)) for n in (-9, -1, 0, 1, 5)}
# Some selectors leave out one of the words.
CASES |= {
    f"prmt.b32 d, a, b, {selector:#x}": ("b32", "b32 b32", lambda a, b, n=selector: permute(a, b, n))
    for selector in (0x7430, 0x7654, 0xFCFC, 0x3210)
}
CASES |= {
    f"prmt.b32.{mode} d, a, b, c": ("b32", "b32 b32 b32", lambda a, b, c, t=table: permute(a, b, t[c & 3]))
    for mode, table in PERMUTATIONS.items()
}
for _kind in ("s", "u"):
    _pair = f"{_kind}32 {_kind}32"
    CASES |= {
        f"mul24.lo.{_kind}32 d, a, b": (f"{_kind}32", _pair, lambda a, b, k=_kind: low24(a, k) * low24(b, k)),
        f"mul24.hi.{_kind}32 d, a, b": (f"{_kind}32", _pair, lambda a, b, k=_kind: low24(a, k) * low24(b, k) >> 16),
        f"min.{_kind}16x2 d, a, b": ("b32", "b32 b32", halves(min, _kind)),
        f"max.{_kind}16x2 d, a, b": ("b32", "b32 b32", halves(max, _kind)),
    }
    for _part, _shift in (("lo", 0), ("hi", 16)):
        CASES[f"mad24.{_part}.{_kind}32 d, a, b, c"] = (
            f"{_kind}32", f"{_pair} {_kind}32",
            lambda a, b, c, k=_kind, n=_shift: (low24(a, k) * low24(b, k) >> n) + c,
        )  # fmt: skip  # a row of a table
    for _mode in ("clamp", "wrap"):
        CASES[f"szext.{_mode}.{_kind}32 d, a, b"] = (
            f"{_kind}32", f"{_kind}32 u32<40", lambda a, n, m=_mode, k=_kind: extend(a, n, m, k),
        )  # fmt: skip  # a row of a table
    for _right in ("s", "u"):
        _sum = "u32" if _kind == _right == "u" else "s32"
        for _name, _width, _first in (("dp4a", 8, 0), ("dp2a.lo", 16, 0), ("dp2a.hi", 16, 2)):
            CASES[f"{_name}.{_kind}32.{_right}32 d, a, b, c"] = (
                _sum, f"{_kind}32 {_right}32 {_sum}",
                lambda a, b, c, how=(_kind, _right, _width, _first): dot(a, b, c, *how),
            )  # fmt: skip  # a row of a table
for _mode in ("clamp", "wrap"):
    CASES[f"bmsk.{_mode}.b32 d, a, b"] = ("b32", "u32<40 u32<40", lambda a, b, m=_mode: bit_mask(a, b, m))
for _type in ("s16", "u16", "s32", "u32", "s64", "u64"):
    _width = int(_type[1:])
    _pair = f"{_type} {_type}"
    _three = f"{_pair} {_type}"
    CASES |= {
        f"add.{_type} d, a, b": (_type, _pair, lambda a, b: a + b),
        f"sub.{_type} d, a, b": (_type, _pair, lambda a, b: a - b),
        f"mul.lo.{_type} d, a, b": (_type, _pair, lambda a, b: a * b),
        f"mul.hi.{_type} d, a, b": (_type, _pair, lambda a, b, width=_width: a * b >> width),
        f"mad.lo.{_type} d, a, b, c": (_type, _three, lambda a, b, c: a * b + c),
        f"mad.hi.{_type} d, a, b, c": (_type, _three, lambda a, b, c, width=_width: (a * b >> width) + c),
        f"sad.{_type} d, a, b, c": (_type, _three, lambda a, b, c: abs(a - b) + c),
        f"div.{_type} d, a, b": (_type, _pair, trunc),
        f"rem.{_type} d, a, b": (_type, _pair, lambda a, b: a - trunc(a, b) * b if b else -1),
        f"min.{_type} d, a, b": (_type, _pair, min),
        f"max.{_type} d, a, b": (_type, _pair, max),
        f"shr.{_type} d, a, 5": (_type, _type, lambda a: a >> 5),
        f"shr.{_type} d, a, {_width}": (_type, _type, lambda a: a >> 70),
        f"shr.{_type} d, a, 0x10000": (_type, _type, lambda a: a >> 70),
        f"shr.{_type} d, a, b": (_type, f"{_type} u32<80", lambda a, b: a >> min(b, 70)),
    }
    if _type[0] == "s":
        CASES |= {f"abs.{_type} d, a": (_type, _type, abs), f"neg.{_type} d, a": (_type, _type, lambda a: -a)}
    if _width < 64:
        _wide = f"{_type[0]}{2 * _width}"
        CASES |= {
            f"mul.wide.{_type} d, a, b": (_wide, _pair, lambda a, b: a * b),
            f"mad.wide.{_type} d, a, b, c": (_wide, f"{_pair} {_wide}", lambda a, b, c: a * b + c),
        }
    if _width > 16:
        CASES |= {
            f"bfe.{_type} d, a, b, c": (
                _type, f"{_type} u32<70 u32<70", lambda a, b, c, kind=_type: extract(a, b, c, kind)
            ),
            f"bfind.{_type} d, a": ("u32", _type, highest),
            f"bfind.shiftamt.{_type} d, a": (
                "u32", _type, lambda a, n=_width: n - 1 - highest(a) if highest(a) >= 0 else -1
            ),
        }  # fmt: skip  # rows of a table
for _type in ("b16", "b32", "b64"):
    _width = int(_type[1:])
    _pair = f"{_type} {_type}"
    CASES |= {
        f"and.{_type} d, a, b": (_type, _pair, lambda a, b: a & b),
        f"or.{_type} d, a, b": (_type, _pair, lambda a, b: a | b),
        f"xor.{_type} d, a, b": (_type, _pair, lambda a, b: a ^ b),
        f"not.{_type} d, a": (_type, _type, lambda a: ~a),
        f"shl.{_type} d, a, 5": (_type, _type, lambda a: a << 5),
        f"shl.{_type} d, a, {_width - 1}": (_type, _type, lambda a, width=_width: a << (width - 1)),
        f"shl.{_type} d, a, {_width}": (_type, _type, lambda a: 0),
        f"shl.{_type} d, a, 0x10000": (_type, _type, lambda a: 0),
        f"shl.{_type} d, a, b": (_type, f"{_type} u32<80", lambda a, b: a << min(b, 70)),
    }
    if _width > 16:
        CASES |= {
            f"popc.{_type} d, a": ("u32", _type, int.bit_count),
            f"clz.{_type} d, a": ("u32", _type, lambda a, width=_width: width - a.bit_length()),
            f"brev.{_type} d, a": (_type, _type, lambda a, width=_width: int(f"{a:0{width}b}"[::-1], 2)),
            f"bfi.{_type} d, a, b, c, e": (
                _type, f"{_pair} u32<70 u32<70", lambda *x, width=_width: insert(*x, width)
            ),
        }  # fmt: skip  # rows of a table


def _kernel(number: int, instruction: str, result: str, operands: list[str]) -> str:
    """Write a kernel that stores an instruction's results for each set of the operands that differ by lane."""
    size = int(result[1:]) // 8
    opcode, _, given = instruction.partition(" ")
    lines = [f".reg .{result} d; .reg .b32 lane; .reg .b64 at, here; mov.u32 lane, %tid.x; ld.param.u64 at, [p];"]
    for place, (letter, kind) in enumerate(zip("abce", operands, strict=False), 1):
        kind = kind[:3]
        lines.append(f".reg .{kind} same_{letter}, each_{letter}; ld.param.u64 here, [p+{8 * place}];")
        lines.append(f"ld.global.{kind} same_{letter}, [here]; mad.wide.u32 here, lane, {int(kind[1:]) // 8}, here;")
        lines.append(f"ld.global.{kind} each_{letter}, [here];")
    lines.append(f"mad.wide.u32 at, lane, {size}, at;")
    for varies in range(1 << len(operands)):
        names = {letter: ("same_", "each_")[varies >> place & 1] + letter for place, letter in enumerate("abce")}
        names = dict(list(names.items())[: len(operands)])
        text = ", ".join(names.get(operand, operand) for operand in given.split(", "))
        # The sum of |d - 0| and 0 is d, and takes a result that is the same for all lanes from one lane only.
        lines.append(f"{opcode} {text}; sad.u{result[1:]} d, d, 0, 0;")
        lines.append(f"st.global.{result} [at+{size * LANES * varies}], d;")
    return f".visible .entry k{number}(.param .align 8 .b8 p[40]) {{ {' '.join(lines)} }}\n"


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    cases = enumerate(CASES.items())
    texts = (_kernel(number, text, result, kinds.split()) for number, (text, (result, kinds, _)) in cases)
    return Kernels(load_module(HEAD + "".join(texts)))


def _values(kind: str, rng: np.random.Generator) -> Array:
    if "=" in kind:
        return rng.integers(0, int(kind[4:]), LANES, np.uint32)
    if "<" in kind:
        values = rng.integers(0, int(kind[4:]), LANES, np.uint32)
        values[:7] = 2**32 - 1, 2**31, 300, 256, 255, 32, 0
    else:
        values = integers(TYPES[kind], LANES, int(rng.integers(1 << 30)))
    rng.shuffle(values)
    return values


@pytest.mark.parametrize("instruction", CASES)
def test_an_instruction_gives_what_the_manual_says(
    kernels: Kernels, instruction: str, rng: np.random.Generator
) -> None:
    """Each set of the operands differs by lane in turn, and the others are the first lane's."""
    result, operands, reference = CASES[instruction]
    values = [_values(kind, rng) for kind in operands.split()]
    sets, unsigned = 1 << len(values), f"u{int(result[1:]) // 8}"
    out = kernels.zeros(sets * LANES, unsigned)
    addresses = np.array([out, *map(kernels.put, values)], np.uint64)
    kernels.launch(f"k{list(CASES).index(instruction)}", 1, LANES, addresses.tobytes().ljust(40, b"\0"))
    found = kernels.get(out, sets * LANES, unsigned).reshape(sets, LANES)
    lists = [value.tolist() for value in values]
    for varies, got in enumerate(found.tolist()):
        by_lane = [each if varies >> i & 1 else each[:1] * LANES for i, each in enumerate(lists)]
        assert got == [reference(*lane) % (1 << int(result[1:])) for lane in zip(*by_lane, strict=True)], bin(varies)


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


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_quotients_of_opposite_signs_truncate(kind: str) -> None:
    small, large = np.arange(-400, 0, dtype=TYPES[kind]), np.arange(500, 900, dtype=TYPES[kind])
    check(operation(f"div.{kind}"), trunc, small, large, kind=kind)
    check(operation(f"div.{kind}"), trunc, large, small, kind=kind)


@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("sign", ["u32", "s32"])
@pytest.mark.parametrize("width", [16, 8])
def test_absolute_differences_of_pieces(width: int, sign: str, kind: str) -> None:
    """vabsdiff2 and vabsdiff4 pack two or four differences or add them up, whatever type the result has"""
    name = f"vabsdiff{32 // width}.{kind}.{sign}.{sign}"
    a, b = integers(TYPES[sign], COUNT, 25), integers(TYPES[sign], COUNT, 26)
    c = integers(TYPES[kind], COUNT, 27)

    def differences(x: int, y: int) -> list[int]:
        return [abs(piece(x, i, width, sign) - piece(y, i, width, sign)) for i in range(32 // width)]

    def packed(x: int, y: int, z: int) -> int:
        return sum(difference << width * place for place, difference in enumerate(differences(x, y)))

    check(operation(name), packed, a, b, c, kind=kind)
    check(operation(f"{name}.add"), lambda x, y, z: z + sum(differences(x, y)), a, b, c, kind=kind)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_carries(kind: str) -> None:
    """add.cc, addc, sub.cc, subc, mad.cc and madc are exact with their carries"""
    width = int(kind[1:])
    a, b, c = (integers(TYPES[kind], COUNT, seed) for seed in (28, 29, 30))
    before = np.random.default_rng(31).integers(0, 2, COUNT).astype(bool)
    signed = zip(a.tolist(), b.tolist(), strict=True)
    high = [wrap(i * j >> width, f"u{width}") for i, j in signed]
    x, y, z = ([wrap(v, f"u{width}") for v in values.tolist()] for values in (a, b, c))
    low = [wrap(i * j, f"u{width}") for i, j in zip(x, y, strict=True)]
    minus = [-v for v in y]
    for name, terms, operands in (
        ("add", (x, y), (a, b)),
        ("sub", (x, minus), (a, b)),
        ("mad_lo", (low, z), (a, b, c)),
        ("mad_hi", (high, z), (a, b, c)),
    ):
        stem, _, part = name.partition("_")
        part = f"_{part}" if part else ""
        carried = [-int(flag) if name == "sub" else int(flag) for flag in before]
        with_carry = getattr(carry, f"{stem}c{part}_cc")(*operands, before)
        for (value, flag), exact in (
            (getattr(carry, f"{name}_cc")(*operands), [sum(each) for each in zip(*terms, strict=True)]),
            (with_carry, [sum(each) for each in zip(*terms, carried, strict=True)]),
        ):
            assert (value.dtype, flag.dtype) == (TYPES[kind], bool)
            assert value.tolist() == [wrap(each, kind) for each in exact], name
            assert flag.tolist() == [not 0 <= each < 1 << width for each in exact], name
        assert (getattr(carry, f"{stem}c{part}")(*operands, before) == with_carry[0]).all()


def test_all_three_input_functions() -> None:
    """lop3 gives every one of the 256 functions"""
    inputs = np.uint32(0xF0), np.uint32(0xCC), np.uint32(0xAA)
    for table, varying in itertools.product(range(256), itertools.product((False, True), repeat=3)):
        result = bits.lop3(*(np.full(3, x) if each else x for x, each in zip(inputs, varying, strict=True)), table)
        # One value for all lanes is a scalar, not an array of one.
        assert isinstance(result, np.ndarray) == any(varying)
        assert result.shape == ((3,) if any(varying) else ())
        assert (result & 0xFF == table).all()
