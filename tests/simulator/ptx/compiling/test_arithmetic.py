"""Integer opcodes in a kernel give what the manual says, of registers that differ by lane and of those that don't."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import Kernels
from tests.simulator.ptx.operations.references import Array

LANES = 40
SIZES = {"s8": np.int8, "u8": np.uint8} | {
    f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}").type
    for letter, kind in (("u", "u"), ("s", "i"), ("b", "u"))
    for bits in (16, 32, 64)
}


def _majority(a: int, b: int, c: int) -> int:
    return a & b | b & c | a & c


def _fields(a: int, bits: int, kind: str) -> list[int]:
    fields = [a >> start & (1 << bits) - 1 for start in range(0, 32, bits)]
    return [x - (1 << bits) if kind == "s32" and x >> (bits - 1) else x for x in fields]


def _dp4a(a: int, b: int, c: int) -> int:
    return c + sum(x * y for x, y in zip(_fields(a, 8, "u32"), _fields(b, 8, "s32"), strict=True))


# Each instruction of d, a, b and c: the types of the result and of the operands, and what it computes.
CASES: dict[str, tuple[str, str, Callable[..., int]]] = {
    "abs.s64 d, a": ("s64", "s64", abs),
    "neg.s16 d, a": ("s16", "s16", lambda a: -a),
    "not.b32 d, a": ("b32", "b32", lambda a: ~a),
    "cnot.b64 d, a": ("b64", "b64", lambda a: int(a == 0)),
    "lop3.b32 d, a, b, c, 0xe8": ("b32", "b32 b32 b32", _majority),
    "dp4a.u32.s32 d, a, b, c": ("s32", "u32 s32 s32", _dp4a),
    "mul24.lo.u32 d, a, b": ("u32", "u32 u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    "sad.s32 d, a, b, c": ("u32", "s32 s32 u32", lambda a, b, c: abs(a - b) + c),
    "bfe.u64 d, a, 7, 20": ("u64", "u64", lambda a: a >> 7 & 0xFFFFF),
    "bfi.b32 d, a, b, 12, 4": ("b32", "b32 b32", lambda a, b: b & ~0xF000 | (a & 15) << 12),
    "popc.b64 d, a": ("u32", "b64", int.bit_count),
    "clz.b32 d, a": ("u32", "b32", lambda a: 32 - a.bit_length()),
    "shf.l.wrap.b32 d, a, b, 9": ("b32", "b32 b32", lambda a, b: (b << 32 | a) << 9 >> 32),
    "prmt.b32 d, a, b, 0x7430": (
        "b32",
        "b32 b32",
        lambda a, b: a & 0xFF | (a >> 24) << 8 | (b & 0xFF) << 16 | (b >> 24) << 24,
    ),
}
for _type in ("s16", "u16", "s32", "u32", "s64", "u64"):
    _width = int(_type[1:])
    _pair = f"{_type} {_type}"
    CASES |= {
        f"add.{_type} d, a, b": (_type, _pair, lambda a, b: a + b),
        f"sub.{_type} d, a, b": (_type, _pair, lambda a, b: a - b),
        f"mul.lo.{_type} d, a, b": (_type, _pair, lambda a, b: a * b),
        f"mul.hi.{_type} d, a, b": (_type, _pair, lambda a, b, width=_width: a * b >> width),
        f"mad.lo.{_type} d, a, b, c": (_type, f"{_pair} {_type}", lambda a, b, c: a * b + c),
        f"mad.hi.{_type} d, a, b, c": (_type, f"{_pair} {_type}", lambda a, b, c, width=_width: (a * b >> width) + c),
        f"min.{_type} d, a, b": (_type, _pair, min),
        f"max.{_type} d, a, b": (_type, _pair, max),
        f"shr.{_type} d, a, 5": (_type, _type, lambda a: a >> 5),
        f"shr.{_type} d, a, {_width}": (_type, _type, lambda a: a >> 70),
        f"shr.{_type} d, a, 0x10000": (_type, _type, lambda a: a >> 70),
        f"shr.{_type} d, a, b": (_type, f"{_type} u32", lambda a, b: a >> min(b, 70)),
    }
    if _width < 64:
        _wide = f"{_type[0]}{2 * _width}"
        CASES |= {
            f"mul.wide.{_type} d, a, b": (_wide, _pair, lambda a, b: a * b),
            f"mad.wide.{_type} d, a, b, c": (_wide, f"{_pair} {_wide}", lambda a, b, c: a * b + c),
        }
for _type in ("b16", "b32", "b64"):
    _width = int(_type[1:])
    _pair = f"{_type} {_type}"
    CASES |= {
        f"and.{_type} d, a, b": (_type, _pair, lambda a, b: a & b),
        f"or.{_type} d, a, b": (_type, _pair, lambda a, b: a | b),
        f"xor.{_type} d, a, b": (_type, _pair, lambda a, b: a ^ b),
        f"shl.{_type} d, a, 5": (_type, _type, lambda a: a << 5),
        f"shl.{_type} d, a, {_width - 1}": (_type, _type, lambda a, width=_width: a << (width - 1)),
        f"shl.{_type} d, a, {_width}": (_type, _type, lambda a: 0),
        f"shl.{_type} d, a, 0x10000": (_type, _type, lambda a: 0),
        f"shl.{_type} d, a, b": (_type, f"{_type} u32", lambda a, b: a << min(b, 70)),
    }


def _kernel(name: str, instruction: str, result: str, operands: list[str], varies: int) -> str:
    """Write a kernel of an instruction; a bit of `varies` says that an operand's lanes have an element each."""
    letters = "abc"[: len(operands)]
    types = dict(zip(letters, operands, strict=True))
    registers = "".join(f".reg .{kind} {letter};" for letter, kind in {"d": result, **types}.items())
    loads = "".join(f"ld.global.{kind} {letter}, [%{place}];" for place, (letter, kind) in enumerate(types.items(), 1))
    # The sum of |d - 0| and 0 is d, and takes a result that is the same for all lanes from one lane only.
    keep = f"sad.u{result[1:]} d, d, 0, 0"
    text = f"{{{registers} {loads} {instruction}; {keep}; st.global.{result} [%0], d;}}"
    addresses = {"d": f"d + threadIdx.x * {np.dtype(SIZES[result]).itemsize}"}
    for place, (letter, kind) in enumerate(types.items()):
        offset = f" + threadIdx.x * {np.dtype(SIZES[kind]).itemsize}"
        addresses[letter] = letter + offset * (varies >> place & 1)
    parameters = ", ".join(f"char *{letter}" for letter in addresses)
    inputs = ", ".join(f'"l"({address})' for address in addresses.values())
    return f'extern "C" __global__ void {name}({parameters}) {{ asm volatile("{text}" :: {inputs} : "memory"); }}\n'


def _name(instruction: str, varies: int) -> str:
    return f"k{list(CASES).index(instruction)}_{varies}"


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(
        "".join(
            _kernel(_name(instruction, varies), instruction, result, operands.split(), varies)
            for instruction, (result, operands, _) in CASES.items()
            for varies in range(1 << len(operands.split()))
        )
    )


def _values(kind: str, rng: np.random.Generator) -> Array:
    info = np.iinfo(SIZES[kind])
    values = rng.integers(info.min, info.max, LANES, info.dtype, endpoint=True)
    values[:4] = info.min, info.max, 0, 1
    rng.shuffle(values)
    return values


@pytest.mark.parametrize("instruction", CASES)
def test_an_instruction_gives_what_the_manual_says(
    kernels: Kernels, instruction: str, rng: np.random.Generator
) -> None:
    """Each set of the operands differs by lane in turn, and the others are the first lane's."""
    result, operands, reference = CASES[instruction]
    values = [_values(kind, rng) for kind in operands.split()]
    if instruction.endswith(", b") and operands.endswith(" u32") and instruction.startswith("sh"):
        values[1] %= np.uint32(2 * LANES)  # amounts of shifts, some beyond the width
    bits = 8 * np.dtype(SIZES[result]).itemsize
    for varies in range(1 << len(values)):
        out = kernels.zeros(LANES, SIZES[result])
        kernels.launch(_name(instruction, varies), 1, LANES, out, *map(kernels.put, values))
        lists = [value.tolist() for value in values]
        operands_by_lane = [each if varies >> i & 1 else each[:1] * LANES for i, each in enumerate(lists)]
        lanes = zip(*operands_by_lane, strict=True)
        expected = np.array([reference(*lane) % (1 << bits) for lane in lanes], f"u{bits // 8}")
        np.testing.assert_array_equal(kernels.get(out, LANES, SIZES[result]).view(expected.dtype), expected)


@pytest.mark.parametrize("results", ["p|q", "q|p"])
@pytest.mark.parametrize("join", ["and", "or", "xor"])
def test_a_comparison_and_its_opposite_are_joined_with_a_predicate_that_one_of_them_replaces(
    join: str, results: str
) -> None:
    """Both are joined with what the predicate was before."""
    kernels = Kernels(
        load_module(
            f""".version 8.7
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 out) {{
                .reg .b32 lane, odd, x, y; .reg .pred p, q; .reg .b64 to, offset;
                mov.u32 lane, %tid.x; and.b32 odd, lane, 1; setp.ne.u32 p, odd, 0;
                setp.lt.{join}.u32 {results}, lane, 20, p;
                selp.u32 x, 1, 0, {results[0]}; selp.u32 y, 2, 0, {results[2]}; or.b32 x, x, y;
                ld.param.u64 to, [out]; mul.wide.u32 offset, lane, 4; add.u64 to, to, offset; st.global.u32 [to], x;
            }}"""
        )
    )
    out = kernels.zeros(LANES)
    kernels.launch("k", 1, LANES, out)
    less, odd = np.arange(LANES) < 20, np.arange(LANES) % 2 == 1
    joined = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[join]
    expected = joined(less, odd) + 2 * joined(~less, odd)
    np.testing.assert_array_equal(kernels.get(out, LANES), expected)
