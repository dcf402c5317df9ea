"""Video instructions match the PTX manual, as written with Python's unbounded integers."""

import itertools
import random
import re

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.operations.test_integers import clip, piece, wrap

LANES = 128
LIMITS = (0, 1, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80808080, 0x7F80FF00)
OPERATIONS = {
    "vadd": lambda x, y: x + y, "vsub": lambda x, y: x - y, "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min, "vmax": max,
}  # fmt: skip  # rows of a table
RELATIONS = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip  # rows of a table
SECOND = {"add": lambda x, y: x + y, "min": min, "max": max}
TYPES = ("u32", "s32")
WHOLE = ("", "b0", "b1", "b2", "b3", "h0", "h1")
MASKS = {
    2: ("", "h0", "h1", "h10"),
    4: ("", *("b" + "".join(str(n) for n in (3, 2, 1, 0) if mask >> n & 1) for mask in range(1, 16))),
}


def selected(word: int, selector: str, kind: str) -> int:
    """Return a word, or one of its bytes or halves, as a number of a type."""
    return piece(word, int(selector[1]), {"b": 8, "h": 16}[selector[0]], kind) if selector else wrap(word, kind)


def replaced(word: int, selector: str, value: int) -> int:
    width, place = {"b": 8, "h": 16}[selector[0]], int(selector[1])
    mask = (1 << width) - 1 << width * place
    return word & ~mask | value << width * place & mask


def finished(value: int, words: list[str], selector: str, c: int, to: str) -> int:
    """Saturate a result, and combine it with the third operand."""
    if "sat" in words:
        value = clip(value, to[0] + {"": "32", "h": "16", "b": "8"}[selector[:1]])
    for name, second in SECOND.items():
        if name in words:
            value = second(value, wrap(c, to))
    return replaced(c, selector, value) if selector else value


def scalar(opcode: str, selectors: list[str], a: int, b: int, c: int) -> int:
    name, *words = opcode.split(".")
    to, *kinds = ("u32", *words[1:3]) if name == "vset" else words[:3]
    x, y = (selected(value, *how) for value, how in zip((a, b), zip(selectors[1:3], kinds, strict=True), strict=True))
    if name == "vset":
        value = int(RELATIONS[words[0]](x, y))
    elif name in ("vshl", "vshr"):
        amount = y & 31 if "wrap" in words else min(y, 32)
        # The manual leaves the width open; an H200 keeps 34 bits.
        value = wrap(x << amount, "s34") if name == "vshl" else x >> amount
    else:
        value = OPERATIONS[name](x, y)
    return finished(value, words, selectors[0], c, to)


def multiplied(opcode: str, selectors: list[str], a: int, b: int, c: int) -> int:
    """``vmad``: the third operand has the sign of the product."""
    _, _, *kinds = opcode.split(".")[:4]
    words = opcode.split(".")[4:]
    signs = [selector.startswith("-") for selector in selectors[1:]]
    x, y = (
        selected(value, selector.removeprefix("-"), kind)
        for value, selector, kind in zip((a, b), selectors[1:], kinds, strict=False)
    )
    turned = signs[0] != signs[1]
    product = -x * y if turned else x * y
    signed = "s32" in kinds or turned
    addend = wrap(c, "s32" if signed else "u32")
    value = product + (-addend if signs[2] else addend) + ("po" in words)
    value >>= next((int(word[3:]) for word in words if word.startswith("shr")), 0)
    return clip(value, "s32" if signed or signs[2] else "u32") if "sat" in words else value


def packed(opcode: str, selectors: list[str], a: int, b: int, c: int) -> int:
    name, *words = opcode.split(".")
    count = int(name[-1])
    width = 32 // count
    to, *kinds = ("u32", *words[1:3]) if name[:4] == "vset" else words[:3]
    sides = []
    for selector, kind, start in ((selectors[1], kinds[0], 0), (selectors[2], kinds[1], count)):
        digits = [int(digit) for digit in reversed(selector[1:])] or range(start, start + count)
        sides.append([piece((a, b)[digit // count], digit % count, width, kind) for digit in digits])
    function = RELATIONS[words[0]] if name[:4] == "vset" else OPERATIONS[name[:-1]]
    results = [int(function(x, y)) for x, y in zip(*sides, strict=True)]
    if "sat" in words:
        results = [clip(result, f"{to[0]}{width}") for result in results]
    chosen = [int(digit) for digit in selectors[0][1:]] or range(count)
    letter = {2: "h", 4: "b"}[count]
    for place in chosen:
        c = c + results[place] if "add" in words else replaced(c, f"{letter}{place}", results[place])
    return c


def spellings(name: str, rng: random.Random, count: int) -> list[tuple[str, list[str]]]:
    """Return random spellings of an opcode, with the selectors of its operands."""
    found = []
    for _ in range(count):
        types, second = [rng.choice(TYPES) for _ in range(3)], rng.choice(("", "add", "min", "max"))
        sat, relation = rng.choice(("", "sat")), rng.choice(list(RELATIONS))
        selectors = [rng.choice(WHOLE) for _ in range(3)]
        if second:
            selectors[0] = ""
        tail = [sat, second]
        if name[-1] in "24":
            each = int(name[-1])
            parts = ["".join(str(rng.randrange(2 * each)) for _ in range(each)) for _ in range(2)]
            selectors = [rng.choice(MASKS[each]), *(rng.choice(("", "bh"[each == 2] + part)) for part in parts)]
            tail = [rng.choice(("add", "sat", "")) if name[:4] != "vset" else rng.choice(("add", ""))]
        if name[:4] == "vset":
            types, tail = [relation, *types[1:]], [word for word in tail if word != "sat"]
        elif name in ("vshl", "vshr"):
            types[2], tail = "u32", [sat, rng.choice(("clamp", "wrap")), second]
        elif name == "vmad":
            extra = rng.choice(("po", "ab", "c", ""))
            tail = ["po" if extra == "po" else "", sat, rng.choice(("", "shr7", "shr15"))]
            minus = [rng.choice(("", "-")) if extra == "ab" else "" for _ in range(2)] + ["-" if extra == "c" else ""]
            selectors = ["", *(sign + part for sign, part in zip(minus, (*selectors[1:], ""), strict=True))]
        found.append((".".join([name, *types, *filter(None, tail)]), [*selectors, ""][:4]))
    return found


# `vmad` on whole words, whose products need 64 bits or more.
WHOLE_PRODUCTS = [
    (".".join(filter(None, ("vmad.u32", *kinds, "po" * (sign == "po"), sat, scale))), ["", a, "", c])
    for kinds in itertools.product(TYPES, repeat=2)
    for sign, a, c in (("", "", ""), ("po", "", ""), ("a", "-", ""), ("c", "", "-"))
    for sat in ("", "sat")
    for scale in ("", "shr7", "shr15")
]


def operand(register: str, selector: str) -> str:
    sign, part = re.match("(-?)(.*)", selector).groups()
    return f"{sign}{register}{'.' * bool(part)}{part}"


NAMES = [*OPERATIONS, "vshl", "vshr", "vset", "vmad", *(f"{name}{n}" for name in (*OPERATIONS, "vset") for n in (2, 4))]


@pytest.mark.parametrize("name", NAMES)
def test_video_instructions_give_what_the_manual_says(engine: str, name: str) -> None:
    rng = random.Random()
    reference = multiplied if name == "vmad" else packed if name[-1] in "24" else scalar
    cases = spellings(name, rng, 40) + (WHOLE_PRODUCTS if name == "vmad" else [])
    generator = np.random.default_rng(rng.randrange(1 << 32))
    words = generator.integers(0, 1 << 32, (3, LANES), np.uint32)
    words = np.where(
        generator.random(words.shape) < 0.3, generator.choice(np.array(LIMITS, np.uint32), words.shape), words
    )
    pairs = list(itertools.product(LIMITS, repeat=2))
    words[:2, : len(pairs)] = np.transpose(pairs)
    body = "".join(f"ld.global.u32 {letter}, [at+{4 * LANES * row}];" for row, letter in enumerate("abc"))
    for row, (opcode, selectors) in enumerate(cases):
        texts = ", ".join(map(operand, "dabc", selectors))
        body += f"mov.u32 d, 77; {opcode} {texts}; st.global.u32 [to+{4 * LANES * row}], d;\n"
    head = ".reg .b32 lane, a, b, c, d; .reg .b64 at, to; ld.param.u64 at, [p]; ld.param.u64 to, [q];"
    head += "mov.u32 lane, %tid.x; mad.wide.u32 at, lane, 4, at; mad.wide.u32 to, lane, 4, to;"
    text = f"{HEAD}.visible .entry k(.param .u64 p, .param .u64 q) {{ {head} {body} }}"
    kernels = Kernels(load_module(text), engine=engine)
    out = kernels.zeros(len(cases) * LANES, np.uint32)
    kernels.launch("k", 1, LANES, kernels.put(words), out)
    assert engine == "numpy" or kernels.ran_natively("k")
    rows = kernels.get(out, len(cases) * LANES, np.uint32).reshape(-1, LANES)
    for (opcode, selectors), got in zip(cases, rows, strict=True):
        expected = [reference(opcode, selectors, *column) & 0xFFFFFFFF for column in words.T.tolist()]
        assert got.tolist() == expected, (opcode, selectors)
