"""Opcodes of integers and of bits give what the manual says, written over Python's unbounded integers.

Those that `tests/conformance` has of a GPU, or that machine code computes too (`tests/simulator/ptx/native`), are here
only where an operand that all lanes share, or a literal, is computed with otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.operations import bits
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


def trunc(a: int, b: int) -> int:
    """Divide toward zero; by zero, all ones."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def piece(value: int, index: int, width: int, kind: str) -> int:
    """Extract a byte or half with the type's sign."""
    return wrap(value >> (width * index), f"{kind[0]}{width}")


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


# Each instruction of d, a, b and c: the types of the result and of the operands, and what it computes. A type that
# ends in <80 is of small numbers, such as amounts of shifts.
CASES: dict[str, tuple[str, str, Callable[..., int]]] = {
    "cnot.b64 d, a": ("b64", "b64", lambda a: int(a == 0)),
    "lop3.b32 d, a, b, c, 0xe8": ("b32", "b32 b32 b32", lambda a, b, c: a & b | b & c | a & c),
    "prmt.b32 d, a, b, c": ("b32", "b32 b32 b32", permute),
    "shf.l.clamp.b32 d, a, b, c": ("b32", "b32 b32 u32<80", lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32),
}  # fmt: skip  # rows of a table
CASES |= {f"fns.b32 d, a, b, {n}": ("b32", "b32 u32=32", lambda a, b, n=n: nth_bit(a, b, n)) for n in (-9, -1, 0, 1, 5)}
# Some selectors leave out one of the words.
CASES |= {
    f"prmt.b32 d, a, b, {selector:#x}": ("b32", "b32 b32", lambda a, b, n=selector: permute(a, b, n))
    for selector in (0x7430, 0x7654, 0xFCFC, 0x3210)
}
CASES |= {
    "add.s64 d, a, b": ("s64", "s64 s64", lambda a, b: a + b),
    "mul.hi.u16 d, a, b": ("u16", "u16 u16", lambda a, b: a * b >> 16),
    "mad.lo.s32 d, a, b, c": ("s32", "s32 s32 s32", lambda a, b, c: a * b + c),
    "mad.wide.s16 d, a, b, c": ("s32", "s16 s16 s32", lambda a, b, c: a * b + c),
    "sad.s32 d, a, b, c": ("s32", "s32 s32 s32", lambda a, b, c: abs(a - b) + c),
    "div.s64 d, a, b": ("s64", "s64 s64", trunc),
    "rem.s32 d, a, b": ("s32", "s32 s32", lambda a, b: a - trunc(a, b) * b if b else -1),
    "min.u64 d, a, b": ("u64", "u64 u64", min),
}
for _width in (16, 32, 64):
    for _type in (f"s{_width}", f"u{_width}"):
        CASES |= {
            f"shr.{_type} d, a, {amount}": (_type, _type, lambda a, n=amount: a >> min(n, 70))
            for amount in (5, _width, 0x10000)
        }
        CASES[f"shr.{_type} d, a, b"] = (_type, f"{_type} u32<80", lambda a, b: a >> min(b, 70))
    _type = f"b{_width}"
    CASES |= {
        f"shl.{_type} d, a, {amount}": (_type, _type, lambda a, n=amount: a << min(n, 70))
        for amount in (5, _width - 1, _width, 0x10000)
    }
    CASES[f"shl.{_type} d, a, b"] = (_type, f"{_type} u32<80", lambda a, b: a << min(b, 70))


def _kernel(number: int, instruction: str, result: str, operands: list[str]) -> str:
    """Write a kernel that stores an instruction's results for each set of the operands that differ by lane."""
    size = int(result[1:]) // 8
    opcode, _, given = instruction.partition(" ")
    lines = [f".reg .{result} d; .reg .b32 lane; .reg .b64 at, here; mov.u32 lane, %tid.x; ld.param.u64 at, [p];"]
    for place, (letter, kind) in enumerate(zip("abc", operands, strict=False), 1):
        kind = kind[:3]
        lines.append(f".reg .{kind} same_{letter}, each_{letter}; ld.param.u64 here, [p+{8 * place}];")
        lines.append(f"ld.global.{kind} same_{letter}, [here]; mad.wide.u32 here, lane, {int(kind[1:]) // 8}, here;")
        lines.append(f"ld.global.{kind} each_{letter}, [here];")
    lines.append(f"mad.wide.u32 at, lane, {size}, at;")
    for varies in range(1 << len(operands)):
        names = {letter: ("same_", "each_")[varies >> place & 1] + letter for place, letter in enumerate("abc")}
        names = dict(list(names.items())[: len(operands)])
        text = ", ".join(names.get(operand, operand) for operand in given.split(", "))
        # The sum of |d - 0| and 0 is d, and takes a result that is the same for all lanes from one lane only.
        lines.append(f"{opcode} {text}; sad.u{result[1:]} d, d, 0, 0;")
        lines.append(f"st.global.{result} [at+{size * LANES * varies}], d;")
    return f".visible .entry k{number}(.param .align 8 .b8 p[32]) {{ {' '.join(lines)} }}\n"


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
    kernels.launch(f"k{list(CASES).index(instruction)}", 1, LANES, addresses.tobytes().ljust(32, b"\0"))
    found = kernels.get(out, sets * LANES, unsigned).reshape(sets, LANES)
    lists = [value.tolist() for value in values]
    for varies, got in enumerate(found.tolist()):
        by_lane = [each if varies >> i & 1 else each[:1] * LANES for i, each in enumerate(lists)]
        assert got == [reference(*lane) % (1 << int(result[1:])) for lane in zip(*by_lane, strict=True)], bin(varies)


def check(function: Callable[..., Array], reference: Callable[..., int], *operands: Array, kind: str) -> None:
    """Compare a function with its reference over all lanes."""
    result = function(*operands)
    assert result.dtype == TYPES[kind]
    lanes = zip(*(o.tolist() for o in operands), strict=True)
    assert result.tolist() == [wrap(reference(*lane), kind) for lane in lanes]


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


def test_all_three_input_functions() -> None:
    """lop3 gives every one of the 256 functions"""
    inputs = np.uint32(0xF0), np.uint32(0xCC), np.uint32(0xAA)
    for table, varying in itertools.product(range(256), itertools.product((False, True), repeat=3)):
        result = bits.lop3(*(np.full(3, x) if each else x for x, each in zip(inputs, varying, strict=True)), table)
        # One value for all lanes is a scalar, not an array of one.
        assert isinstance(result, np.ndarray) == any(varying)
        assert result.shape == ((3,) if any(varying) else ())
        assert (result & 0xFF == table).all()
