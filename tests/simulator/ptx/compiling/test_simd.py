"""CUDA's SIMD intrinsics, on whole words and on their halves and bytes, agree with Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.simulator.ptx.machine import Kernels
from tests.simulator.ptx.operations.references import integers

COUNT = 256


def _fields(word: int, bits: int, signed: bool) -> list[int]:
    """Return the fields of a word, the lowest first."""
    fields = [word >> place & (1 << bits) - 1 for place in range(0, 32, bits)]
    return [field - (1 << bits) if signed and field >> bits - 1 else field for field in fields]


def _word(fields: list[int], bits: int) -> int:
    return sum((field & (1 << bits) - 1) << bits * place for place, field in enumerate(fields))


def _by_field(bits: int, signed: bool, operation: Callable[..., int]) -> Callable[..., int]:
    """Return the operation on words that does `operation` on their fields."""

    def on_words(*words: int) -> int:
        return _word(
            [operation(*items) for items in zip(*(_fields(w, bits, signed) for w in words), strict=True)], bits
        )

    return on_words


def _wrapped(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> bits - 1 else value


def _extremes() -> dict[str, tuple[int, Callable[..., int]]]:
    """Return ``__vi*`` by name: how many operands, and the operation on words."""
    found: dict[str, tuple[int, Callable[..., int]]] = {}
    for kind, bits, signed in (("s32", 32, True), ("u32", 32, False), ("s16x2", 16, True), ("u16x2", 16, False)):
        for word, best in (("max", max), ("min", min)):

            def add(a: int, b: int, c: int, best=best, bits=bits, signed=signed) -> int:
                return best(_wrapped(a + b, bits, signed), c)

            found[f"__vi{word}3_{kind}"] = 3, _by_field(bits, signed, lambda a, b, c, best=best: best(a, b, c))
            found[f"__viadd{word}_{kind}"] = 3, _by_field(bits, signed, add)
            if signed:
                relu = _by_field(bits, signed, lambda *x, best=best: max(best(*x), 0))
                found[f"__vi{word}_{kind}_relu"] = 2, relu
                found[f"__vi{word}3_{kind}_relu"] = 3, relu
                found[f"__viadd{word}_{kind}_relu"] = (
                    3,
                    _by_field(bits, signed, lambda a, b, c, add=add: max(add(a, b, c), 0)),
                )
    return found


def _packed() -> dict[str, tuple[int, Callable[..., int]]]:
    """Return the operations on halves and bytes by name."""
    found: dict[str, tuple[int, Callable[..., int]]] = {}
    compare = {"eq": "==", "ne": "!=", "ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    for count, bits in ((2, 16), (4, 8)):
        top, least = (1 << bits - 1) - 1, -(1 << bits - 1)
        ones = (1 << bits) - 1

        def put(name: str, operands: int, signed: bool, operation: Callable[..., int], count=count, bits=bits) -> None:
            found[f"__v{name}{count}"] = operands, _by_field(bits, signed, operation)

        put("abs", 1, True, abs)
        put("absss", 1, True, lambda a, top=top: min(abs(a), top))
        put("neg", 1, True, lambda a: -a)
        put("negss", 1, True, lambda a, top=top: min(-a, top))
        put("add", 2, False, lambda a, b: a + b)
        put("addss", 2, True, lambda a, b, top=top, least=least: max(min(a + b, top), least))
        put("addus", 2, False, lambda a, b, ones=ones: min(a + b, ones))
        put("sub", 2, False, lambda a, b: a - b)
        put("subss", 2, True, lambda a, b, top=top, least=least: max(min(a - b, top), least))
        put("subus", 2, False, lambda a, b: max(a - b, 0))
        # Halves are rounded up, those of negative sums away from zero.
        put("avgu", 2, False, lambda a, b: (a + b + 1) // 2)
        put("avgs", 2, True, lambda a, b: (a + b + (a + b >= 0)) >> 1)
        put("haddu", 2, False, lambda a, b: (a + b) // 2)
        put("absdiffu", 2, False, lambda a, b: abs(a - b))
        put("absdiffs", 2, True, lambda a, b: abs(a - b))
        for sign, signed in (("s", True), ("u", False)):
            put(f"max{sign}", 2, signed, max)
            put(f"min{sign}", 2, signed, min)
            found[f"__vsad{sign}{count}"] = (
                2,
                lambda a, b, bits=bits, signed=signed: sum(
                    abs(x - y) for x, y in zip(_fields(a, bits, signed), _fields(b, bits, signed), strict=True)
                ),
            )
        for name, operator in compare.items():
            for sign in ("",) if name in ("eq", "ne") else ("s", "u"):
                holds = eval(f"lambda a, b: a {operator} b")
                put(f"cmp{name}{sign}", 2, sign == "s", lambda a, b, holds=holds, ones=ones: ones * holds(a, b))
                put(f"set{name}{sign}", 2, sign == "s", lambda a, b, holds=holds: int(holds(a, b)))
    return found


OPERATIONS = {**_extremes(), **_packed()}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    kernel = (
        'extern "C" __global__ void {0}(unsigned* out, const unsigned* a, const unsigned* b, const unsigned* c) {{ '
    )
    kernel += "int t = threadIdx.x; out[t] = {0}_({1}); }}\n"
    source = ""
    for name, (count, _) in OPERATIONS.items():
        arguments = ", ".join(f"{operand}[t]" for operand in "abc"[:count])
        source += kernel.replace("{0}_", name).format(f"k{name}", arguments)
    for name in ("s32", "u32", "s16x2", "u16x2"):
        cpp = "int" if name == "s32" else "unsigned"
        for word in ("max", "min"):
            source += f'extern "C" __global__ void kb{word}_{name}(unsigned* out, const unsigned* a, const unsigned* b)'
            source += " { int t = threadIdx.x; bool p = false, q = false; "
            if "x2" in name:
                source += f"out[t] = __vib{word}_{name}(a[t], b[t], &q, &p);"
            else:
                source += f"out[t] = __vib{word}_{name}(({cpp})a[t], ({cpp})b[t], &p);"
            source += f" out[t + {COUNT}] = p | q << 1; }}\n"
    return Kernels(source)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_intrinsic_agrees_with_python(kernels: Kernels, name: str) -> None:
    count, operation = OPERATIONS[name]
    operands = [integers(np.uint32, COUNT, seed) for seed in range(3)]
    out = kernels.zeros(COUNT)
    kernels.launch(f"k{name}", 1, COUNT, out, *(kernels.put(operand) for operand in operands))
    expected = [operation(*(int(operand[t]) for operand in operands[:count])) & 0xFFFFFFFF for t in range(COUNT)]
    np.testing.assert_array_equal(kernels.get(out, COUNT, np.uint32), np.array(expected, np.uint32))


@pytest.mark.parametrize("word", ["max", "min"])
@pytest.mark.parametrize(("kind", "bits"), [("s32", 32), ("u32", 32), ("s16x2", 16), ("u16x2", 16)])
def test_an_extreme_says_which_operand_it_is(kernels: Kernels, word: str, kind: str, bits: int) -> None:
    """The bit of each field is set where the first operand is the result, also where both are equal."""
    a, b = (integers(np.uint32, COUNT, seed) for seed in range(2))
    b[::5] = a[::5]
    out = kernels.zeros(2 * COUNT)
    kernels.launch(f"kb{word}_{kind}", 1, COUNT, out, kernels.put(a), kernels.put(b))
    result = kernels.get(out, 2 * COUNT, np.uint32)
    for t in range(COUNT):
        pairs = list(zip(*(_fields(int(x[t]), bits, kind[0] == "s") for x in (a, b)), strict=True))
        first = [x >= y if word == "max" else x <= y for x, y in pairs]
        assert result[t] == _word([x if chosen else y for (x, y), chosen in zip(pairs, first, strict=True)], bits)
        assert result[t + COUNT] == sum(chosen << place for place, chosen in enumerate(first))
