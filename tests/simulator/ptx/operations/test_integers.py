"""Opcodes on integers, bits and signs match the PTX manual, as written with Python's unbounded integers."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import and_, eq, ge, gt, le, lt, ne, or_, xor

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.operations.references import Array, floats, integers

TYPES = {f"{letter}{width}": np.dtype(f"{kind}{width // 8}").type for letter, kind in ("uu", "si", "bu")
         for width in (16, 32, 64)}  # fmt: skip  # a table
LANES = 64


def wrap(value: int, kind: str) -> int:
    """Wrap an integer to a type's range, in two's complement."""
    width = int(kind[1:])
    value &= (1 << width) - 1
    return value - (1 << width) if kind[0] == "s" and value >> (width - 1) else value


def clip(value: int, kind: str = "s32") -> int:
    width = int(kind[1:])
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    return max(low, min(high, value))


def trunc(a: int, b: int) -> int:
    """Return the quotient rounded toward zero; division by zero gives -1, all ones."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def piece(value: int, index: int, width: int, kind: str) -> int:
    """Return a byte or half of a word, sign-extended if the type is signed."""
    return wrap(value >> (width * index), f"{kind[0]}{width}")


def halves(function: Callable[..., int], kind: str) -> Callable[..., int]:
    """Return a function that applies another to each 16-bit half of its words."""
    return lambda *words: sum(
        (function(*(piece(word, i, 16, kind) for word in words)) & 0xFFFF) << 16 * i for i in range(2)
    )


def product24(a: int, b: int, sign: str) -> int:
    return wrap(a, f"{sign}24") * wrap(b, f"{sign}24")


def dot(x: int, y: int, z: int, left: str, right: str, width: int, first: int = 0) -> int:
    """Add to z the products of the pieces of x with bytes of y, from byte `first` on."""
    return z + sum(piece(x, i, width, left) * piece(y, i + first, 8, right) for i in range(32 // width))


def counted(value: int, width: int) -> int:
    """Return the effective position or length of a bit field: its low 8 bits, but on an H200 all bits for width 64."""
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


def bit_mask(a: int, b: int) -> int:
    return 0 if a > 31 else ((1 << min(b, 32)) - 1) << a


def extend(a: int, n: int, sign: str) -> int:
    return wrap(a, f"{sign}{n}") if n else 0


def highest(a: int) -> int:
    """Return the index of the highest bit that differs from the sign, or -1."""
    return (~a if a < 0 else a).bit_length() - 1


def nth_bit(mask: int, base: int, offset: int) -> int:
    """Return the index of the n-th set bit from `base` on, upwards or downwards, or -1."""
    if offset == 0:
        return base if mask >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    hits = [place for place in places if mask >> place & 1]
    return hits[abs(offset) - 1] if len(hits) >= abs(offset) else -1


def differences(x: int, y: int, width: int, kind: str) -> list[int]:
    return [abs(piece(x, i, width, kind) - piece(y, i, width, kind)) for i in range(32 // width)]


def carried(x: Sequence[int], name: str, width: int, reads: bool, writes: bool) -> int:
    """Return a sum with the carry that the last operand sets, plus three times the resulting carry."""
    mask = (1 << width) - 1
    a, b, c = (value & mask for value in x[:3])
    flag = x[3] & 1 if reads else int(name == "sub")
    # The carry of a difference is that of the sum with the complement.
    high = x[0] * x[1] >> width & mask
    total = {"add": a + b, "sub": a + (mask - b), "mad.lo": (a * b & mask) + c, "mad.hi": high + c}[name] + flag
    return (total & mask) + (3 * (total >> width) if writes else 0)


def less_halves(a: int, b: int) -> Iterator[bool]:
    """Yield whether the low half of `a` is less than that of `b`, as numbers, and then the same for the high halves."""
    for place in range(2):
        left, right = (np.uint16(x >> 16 * place & 0xFFFF).view(np.float16) for x in (a, b))
        yield bool(left < right)


def class_of(pattern: int, kind: str) -> set[str]:
    bits = {"f32": 23, "f64": 52}[kind]
    top = (1 << int(kind[1:]) - 1 - bits) - 1
    exponent, fraction = pattern >> bits & top, pattern & (1 << bits) - 1
    if exponent == top:
        return {"notanumber"} if fraction else {"infinite", "number"}
    return {"finite", "number"} | ({"normal"} if exponent else {"subnormal"} if fraction else set())


def flush(pattern: int, bits: int, width: int) -> int:
    """Flush a subnormal pattern to a zero of its sign; `bits` is the number of fraction bits."""
    sign = 1 << width - 1
    return pattern if pattern & (sign - 1) >> bits << bits else pattern & sign


def signed(change: Callable[[int], int], pattern: int, width: int) -> int:
    """Change the sign of a single- or double-precision number as an H200 does, which changes no sign of a NaN."""
    infinity, nan = {32: (0x7F800000, 0x7FFFFFFF), 64: (0x7FF << 52, pattern | 1 << 51)}[width]
    return nan if pattern & (1 << width - 1) - 1 > infinity else change(pattern)


def permute(a: int, b: int, selector: int) -> int:
    joined = (b << 32 | a).to_bytes(8, "little")
    nibbles = [selector >> 4 * i & 15 for i in range(4)]
    picked = [joined[nibble & 7] for nibble in nibbles]
    signs = [255 * (byte >> 7) if nibble & 8 else byte for byte, nibble in zip(picked, nibbles, strict=True)]
    return int.from_bytes(bytes(signs), "little")


# The PTX manual's selectors of prmt, by mode.
PERMUTATIONS = {
    "f4e": [0x3210, 0x4321, 0x5432, 0x6543],
    "b4e": [0x5670, 0x6701, 0x7012, 0x0123],
    "rc8": [0x0000, 0x1111, 0x2222, 0x3333],
    "ecl": [0x3210, 0x3211, 0x3222, 0x3333],
    "ecr": [0x0000, 0x1110, 0x2210, 0x3210],
    "rc16": [0x1010, 0x3232, 0x1010, 0x3232],
}

# By instruction on d, a, b, c and e: the type of the result, the types of the operands, and the reference. A type that
# ends in <70 means mostly numbers below 70, such as shift counts.
CASES: dict[str, tuple[str, str, Callable[..., int]]] = {
    "cnot.b64 d, a": ("b64", "b64", lambda a: int(a == 0)),
    "lop3.b32 d, a, b, c, 0xe8": ("b32", "b32 b32 b32", lambda a, b, c: a & b | b & c | a & c),
    "add.sat.s32 d, a, b": ("s32", "s32 s32", lambda a, b: clip(a + b)),
    "sub.sat.s32 d, a, b": ("s32", "s32 s32", lambda a, b: clip(a - b)),
    "mad.hi.sat.s32 d, a, b, c": ("s32", "s32 s32 s32", lambda a, b, c: clip((a * b >> 32) + c)),
    "mad24.hi.sat.s32 d, a, b, c": ("s32", "s32 s32 s32", lambda a, b, c: clip((product24(a, b, "s") >> 16) + c)),
    "min.relu.s32 d, a, b": ("s32", "s32 s32", lambda a, b: max(0, min(a, b))),
    "max.relu.s32 d, a, b": ("s32", "s32 s32", lambda a, b: max(0, a, b)),
    "add.u16x2 d, a, b": ("b32", "b32 b32", halves(lambda a, b: a + b, "u")),
    "max.s16x2.relu d, a, b": ("b32", "b32 b32", halves(lambda a, b: max(a, b, 0), "s")),
    "min.s16x2.relu d, a, b": ("b32", "b32 b32", halves(lambda a, b: max(min(a, b), 0), "s")),
    "shf.l.wrap.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) << (n & 31) >> 32),
    "shf.l.clamp.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32),
    "shf.r.wrap.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) >> (n & 31)),
    "shf.r.clamp.b32 d, a, b, c": ("b32", "b32 b32 u32<70", lambda a, b, n: (b << 32 | a) >> min(n, 32)),
    "bmsk.clamp.b32 d, a, b": ("b32", "u32<40 u32<40", bit_mask),
    "bmsk.wrap.b32 d, a, b": ("b32", "u32<40 u32<40", lambda a, b: bit_mask(a & 31, b & 31)),
    "prmt.b32 d, a, b, c": ("b32", "b32 b32 b32", permute),
}
CASES |= {f"fns.b32 d, a, b, {n}": ("b32", "b32 u32=32", lambda a, b, n=n: nth_bit(a, b, n)) for n in (-9, -1, 0, 1, 5)}
# The table 0xea is that of ``a & b | c``. A register that isn't written keeps its 0.
for _join, _joined in {"or": or_, "and": and_}.items():
    for _register, _used in {"d": -1, "_": 0}.items():
        CASES[
            f"setp.eq.u32 p, e, 1; mov.b32 d, 0; lop3.{_join}.b32 {_register}|q, a, b, c, 0xea, p; @q add.u32 d, d, 64"
        ] = (
            "u32", "u32=3 u32=3 u32=2 u32=2",
            lambda a, b, c, e, join=_joined, used=_used: (
                ((a & b | c) & used) + 64 * join((a & b | c) != 0, e == 1)
            ),
        )  # fmt: skip  # a row of a table
# Some of these selectors use only one of the words.
CASES |= {
    f"prmt.b32 d, a, b, {selector:#x}": ("b32", "b32 b32", lambda a, b, n=selector: permute(a, b, n))
    for selector in (0x7430, 0x7654, 0xFCFC, 0x3210)
}
CASES |= {
    f"prmt.b32.{mode} d, a, b, c": ("b32", "b32 b32 b32", lambda a, b, c, t=table: permute(a, b, t[c & 3]))
    for mode, table in PERMUTATIONS.items()
}
for _sign in ("s", "u"):
    _type, _pair, _three = f"{_sign}32", f"{_sign}32 {_sign}32", f"{_sign}32 {_sign}32 {_sign}32"
    CASES |= {
        f"mul24.lo.{_type} d, a, b": (_type, _pair, lambda a, b, s=_sign: product24(a, b, s)),
        f"mul24.hi.{_type} d, a, b": (_type, _pair, lambda a, b, s=_sign: product24(a, b, s) >> 16),
        f"mad24.lo.{_type} d, a, b, c": (_type, _three, lambda a, b, c, s=_sign: product24(a, b, s) + c),
        f"mad24.hi.{_type} d, a, b, c": (_type, _three, lambda a, b, c, s=_sign: (product24(a, b, s) >> 16) + c),
        f"szext.clamp.{_type} d, a, b": (_type, f"{_type} u32<40", lambda a, n, s=_sign: extend(a, min(n, 32), s)),
        f"szext.wrap.{_type} d, a, b": (_type, f"{_type} u32<40", lambda a, n, s=_sign: extend(a, n & 31, s)),
        f"min.{_sign}16x2 d, a, b": ("b32", "b32 b32", halves(min, _sign)),
        f"max.{_sign}16x2 d, a, b": ("b32", "b32 b32", halves(max, _sign)),
    }
for _left, _right in itertools.product(("s32", "u32"), ("s32", "u32")):
    _sum = "u32" if _left == _right == "u32" else "s32"
    for _name, _width, _first in (("dp4a", 8, 0), ("dp2a.lo", 16, 0), ("dp2a.hi", 16, 2)):
        CASES[f"{_name}.{_left}.{_right} d, a, b, c"] = (
            _sum, f"{_left} {_right} {_sum}", partial(dot, left=_left, right=_right, width=_width, first=_first),
        )  # fmt: skip  # a row of a table
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
            f"bfe.{_type} d, a, b, c": (_type, f"{_type} u32<70 u32<70", partial(extract, kind=_type)),
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
            f"bfi.{_type} d, a, b, c, e": (_type, f"{_pair} u32<70 u32<70", partial(insert, width=_width)),
        }


for _type in ("s16", "u16", "s32", "u32", "s64", "u64"):
    _pair = f"{_type} {_type}"
    for _name, _holds in {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}.items():
        CASES[f"setp.{_name}.{_type} p|q, a, b; selp.u32 d, 1, 2, p; @q add.u32 d, d, 4"] = (
            "u32", _pair, lambda a, b, holds=_holds: 1 if holds(a, b) else 6
        )  # fmt: skip  # a row of a table
        CASES[f"set.{_name}.u32.{_type} d, a, b"] = "u32", _pair, lambda a, b, holds=_holds: -int(holds(a, b))
        CASES[f"set.{_name}.f16.{_type} d, a, b"] = "b16", _pair, lambda a, b, holds=_holds: 0x3C00 * holds(a, b)
    for _to in ("s16", "u16", "s32", "u32", "s64", "u64"):
        CASES |= {
            f"cvt.{_to}.{_type} d, a": (_to, _type, lambda a: a),
            f"cvt.sat.{_to}.{_type} d, a": (_to, _type, lambda a, to=_to: clip(a, to)),
        }
for _join, _joined in {"and": and_, "or": or_, "xor": xor}.items():
    CASES[f"setp.lt.s32 p, a, c; setp.lo.{_join}.u32 p|q, b, c, p; selp.u32 d, 1, 2, p; @q add.u32 d, d, 4"] = (
        "u32", "s32 u32 b32",
        lambda a, b, c, join=_joined: (1 if join(b < c, a < wrap(c, "s32")) else 2)
        + (4 if join(b >= c, a < wrap(c, "s32")) else 0),
    )  # fmt: skip  # a row of a table
    CASES |= {
        f"setp.lt.s32 p, c, 0; setp.lt.{_join}.f16x2 p|q, a, b, p; selp.u32 d, 1, 2, p; @q add.u32 d, d, 4": (
            "u32", "b32 b32 s32",
            lambda a, b, c, join=_joined: sum(
                4 * join(h, c < 0) if place else 2 - join(h, c < 0) for place, h in enumerate(less_halves(a, b))
            ),
        ),
        f"setp.lt.s32 p, c, 0; set.lt.{_join}.f16x2.f16x2 d, a, b, p": (
            "b32", "b32 b32 s32",
            lambda a, b, c, join=_joined: sum(
                0x3C00 * join(h, c < 0) << 16 * place for place, h in enumerate(less_halves(a, b))
            ),
        ),
        f"setp.lt.s32 p, c, 0; set.lt.{_join}.s16.f16 d, a, b, p": (
            "b16", "b16 b16 s32", lambda a, b, c, join=_joined: -join(next(less_halves(a, b)), c < 0)
        ),
        f"setp.lt.s32 p, c, 0; set.lt.{_join}.bf16.s64 d, a, b, p": (
            "b16", "s64 s64 s32", lambda a, b, c, join=_joined: 0x3F80 * join(a < b, c < 0)
        ),
    }  # fmt: skip  # rows of a table
CASES |= {
    "slct.b64.s32 d, a, b, c": ("b64", "b64 b64 s32", lambda a, b, c: a if c >= 0 else b),
    "setp.lt.f16x2 p, a, b; selp.u32 d, 1, 2, p": ("u32", "b32 b32", lambda a, b: 2 - next(less_halves(a, b))),
    "cvt.pack.sat.s16.s32 d, a, b": ("b32", "s32 s32", lambda a, b: clip(a, "s16") << 16 | clip(b, "s16") & 0xFFFF),
    "cvt.pack.sat.u4.s32.b32 d, a, b, c": (
        "b32", "s32 s32 b32", lambda a, b, c: c << 8 | clip(a, "u4") << 4 | clip(b, "u4")
    ),
}  # fmt: skip  # rows of a table
for _type, _kind in itertools.product(("s32", "u32"), ("s32", "u32")):
    for _width in (16, 8):
        _name = f"vabsdiff{32 // _width}.{_type}.{_kind}.{_kind}"
        CASES |= {
            f"{_name} d, a, b, c": (
                _type, f"{_kind} {_kind} {_type}",
                lambda a, b, c, how=(_width, _kind): sum(
                    each << how[0] * place for place, each in enumerate(differences(a, b, *how))
                ),
            ),
            f"{_name}.add d, a, b, c": (
                _type, f"{_kind} {_kind} {_type}", lambda a, b, c, how=(_width, _kind): c + sum(differences(a, b, *how))
            ),
        }  # fmt: skip  # rows of a table
# The carry is set beforehand if `e` is odd, and three times the resulting carry is added to the result.
for _type, _name in itertools.product(("s32", "u32", "s64", "u64"), ("add", "sub", "mad.lo", "mad.hi")):
    _bits, _size, _operands = f"u{_type[1:]}", int(_type[1:]), "a, b, c" if "mad" in _name else "a, b"
    for _reads, _writes in ((False, True), (True, False), (True, True)):
        _stem, _, _part = _name.partition(".")
        _opcode = ".".join([_stem + "c" * _reads, *filter(None, [_part, "cc" * _writes]), _type])
        _before = f"and.b{_size} flag, e, 1; add.cc.{_bits} flag, flag, -1; " if _reads else ""
        _after = f"; addc.{_bits} flag, 0, 0; mad.lo.{_bits} d, flag, 3, d" if _writes else ""
        CASES[f"{_before}{_opcode} d, {_operands}{_after}"] = (
            _type, " ".join([_type] * 4), lambda *x, how=(_name, _size, _reads, _writes): carried(x, *how)
        )  # fmt: skip  # a row of a table

for _type, _bits in (("f32", 23), ("f64", 52), ("f16", 10), ("bf16", 7)):
    _size = {"f32": 32, "f64": 64}.get(_type, 16)
    _sign, _operand = 1 << _size - 1, _type if _size > 16 else "b16"
    for _name, _change in {"abs": lambda a, s: a & s - 1, "neg": lambda a, s: a ^ s}.items():
        _change = partial(_change, s=_sign)
        if _size > 16:
            _change = partial(signed, _change, width=_size)
        CASES[f"{_name}.{_type} d, a"] = (f"b{_size}", _operand, _change)
        if _size == 16:
            CASES[f"{_name}.{_type}x2 d, a"] = (
                "b32", "b32", lambda a, f=_change: f(a >> 16) << 16 | f(a & 0xFFFF)
            )  # fmt: skip  # a row of a table
        if _type in ("f32", "f16"):
            CASES[f"{_name}.ftz.{_type} d, a"] = (
                f"b{_size}", _operand, lambda a, f=_change, how=(_bits, _size): f(flush(a, *how))
            )  # fmt: skip  # a row of a table
    if _size > 16:
        for _name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            CASES[f"testp.{_name}.{_type} p, a; selp.u32 d, 1, 0, p"] = (
                "u32", _type, lambda a, how=(_name, _type): int(how[0] in class_of(a, how[1]))
            )  # fmt: skip  # a row of a table

# The number of cases that share a kernel.
GROUP = 40


def _sets(text: str, engine: str) -> list[int]:
    """Return sets of operands that vary by lane, as bit masks; only the NumPy engine's code depends on them."""
    every = (1 << len(CASES[text][1].split())) - 1
    return sorted({0, every, *(every & 1 << place for place in range(4))}) if engine == "numpy" else [every]


def _block(place: int, text: str, sets: list[int]) -> str:
    """Return PTX that stores an instruction's results once for each set of operands that vary by lane."""
    result, operands = CASES[text][0], CASES[text][1].split()
    size = int(result[1:]) // 8
    at = 40 * place
    lines = [f".reg .{result} d, flag; .reg .pred p, q; .reg .b64 at, here; ld.param.u64 at, [params+{at}];"]
    for letter, kind in zip("abce", (kind[:3] for kind in operands), strict=False):
        at += 8
        lines.append(f".reg .{kind} same_{letter}, each_{letter}; ld.param.u64 here, [params+{at}];")
        if len(sets) > 1:
            lines.append(f"ld.global.{kind} same_{letter}, [here];")
        lines.append(f"mad.wide.u32 here, lane, {int(kind[1:]) // 8}, here; ld.global.{kind} each_{letter}, [here];")
    lines.append(f"mad.wide.u32 at, lane, {size}, at;")
    for row, varies in enumerate(sets):
        given = text
        for bit, letter in enumerate("abce"):
            given = re.sub(rf"\b{letter}\b", ("same_", "each_")[varies >> bit & 1] + letter, given)
        # sad computes |d - 0| + 0, which is d. It reads a uniform d, too, of which there is only one lane's value.
        read = f"sad.u{result[1:]} d, d, 0, 0;" if len(sets) > 1 else ""
        lines.append(f"{given}; {read} st.global.{result} [at+{size * LANES * row}], d;")
    return f"{{ {' '.join(lines)} }}\n"


def run(cases: list[str], engine: str, seed: int = 7) -> Iterator[tuple[str, list[Array], Array]]:
    """Run cases in one kernel; yield each case, its operands, and a row of results per set of varying operands."""
    blocks = [_block(place, text, _sets(text, engine)) for place, text in enumerate(cases)]
    entry = f".visible .entry k(.param .align 8 .b8 params[{40 * len(cases)}])"
    module = load_module(f"{HEAD}{entry} {{ .reg .b32 lane; mov.u32 lane, %tid.x; {''.join(blocks)} }}")
    kernels = Kernels(module, engine=engine)
    rng = np.random.default_rng(seed)
    operands = [[_values(kind, rng, place) for place, kind in enumerate(CASES[text][1].split())] for text in cases]
    types = [f"u{int(CASES[text][0][1:]) // 8}" for text in cases]
    sizes = [LANES * len(_sets(text, engine)) for text in cases]
    out = [kernels.zeros(size, dtype) for size, dtype in zip(sizes, types, strict=True)]
    addresses = np.zeros((len(cases), 5), np.uint64)
    for row, address, values in zip(addresses, out, operands, strict=True):
        row[: 1 + len(values)] = address, *map(kernels.put, values)
    kernels.launch("k", 1, LANES, addresses.tobytes())
    assert engine == "numpy" or not kernels.program("k").unsupported_reason
    for text, values, address, size, dtype in zip(cases, operands, out, sizes, types, strict=True):
        yield text, values, kernels.get(address, size, dtype).reshape(-1, LANES)


def _values(kind: str, rng: np.random.Generator, place: int) -> Array:
    if "=" in kind:
        return rng.integers(0, int(kind[4:]), LANES, np.uint32)
    if "<" in kind:
        values = rng.integers(0, int(kind[4:]), LANES, np.uint32)
        values[:7] = 2**32 - 1, 2**31, 300, 256, 255, 32, 0
    elif kind[0] == "f":
        info = np.finfo(f"f{int(kind[1:]) // 8}")
        values = floats(info.dtype, LANES, int(rng.integers(1 << 30))).view(f"u{info.dtype.itemsize}")
        # The limits of the classes: the subnormal numbers, the normal ones, infinity, and the first NaN.
        least, infinity = 1 << info.nmant, (1 << info.nexp) - 1 << info.nmant
        values[:6] = 1, least - 1, least, infinity - 1, infinity, infinity + 1
    else:
        values = integers(TYPES[kind], LANES, int(rng.integers(1 << 30)))
    rng.shuffle(values)
    if kind in TYPES:
        # One lane divides the least integer by -1.
        values[1] = np.iinfo(values.dtype).min if place == 0 else ~values.dtype.type(0)
    return values


def check(text: str, engine: str, values: list[Array], rows: Array) -> None:
    """Compare each row with the reference; each operand varies by lane, or is the first lane's in all lanes."""
    result, _, reference = CASES[text]
    lists = [value.tolist() for value in values]
    for varies, got in zip(_sets(text, engine), rows.tolist(), strict=True):
        by_lane = [each if varies >> i & 1 else each[:1] * LANES for i, each in enumerate(lists)]
        expected = [reference(*lane) % (1 << int(result[1:])) for lane in zip(*by_lane, strict=True)]
        assert got == expected, f"{text}, {bin(varies)}"


@pytest.mark.parametrize("first", list(CASES)[::GROUP])
def test_instructions_give_what_the_manual_says(engine: str, first: str) -> None:
    start = list(CASES).index(first)
    for text, values, rows in run(list(CASES)[start : start + GROUP], engine):
        check(text, engine, values, rows)


def test_all_three_input_functions(engine: str) -> None:
    """The instruction lop3 computes each of the 256 functions of three bits."""
    text = "".join(f"lop3.b32 d, a, b, c, {table}; st.global.u32 [at+{4 * table}], d;" for table in range(256))
    names = {"a": "0xF0", "b": "0xCC", "c": "0xAA"}
    loads = "".join(f"mov.u32 {letter}, {value}; add.u32 {letter}, {letter}, lane;" for letter, value in names.items())
    head = ".reg .b32 lane, a, b, c, d; .reg .b64 at; mov.u32 lane, %laneid; ld.param.u64 at, [p];"
    module = load_module(f"{HEAD}.visible .entry k(.param .u64 p) {{ {head} {loads} {text} }}")
    kernels = Kernels(module, engine=engine)
    out = kernels.zeros(256, np.uint32)
    kernels.launch("k", 1, 1, out)
    assert (kernels.get(out, 256, np.uint32) & 0xFF).tolist() == list(range(256))
