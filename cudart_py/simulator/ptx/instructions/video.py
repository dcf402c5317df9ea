"""Video instructions: arithmetic on selected bytes and halves of words.

`selectors` has the selector of each operand, the destination's first, which is empty if an operand has none. Those of
scalar instructions are ``b0`` to ``b3``, ``h0`` and ``h1``; those on four bytes or two halves are such as ``b7540`` and
``h31``. A scalar instruction calculates without overflow, and then truncates the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, sub

from .comparisons import OPERATORS
from .conversions import clamp, range_of
from .integer_math.integers import piece
from .integer_math.logic import limited
from .values import Value, maximum, minimum, where

_HIGHEST = 63


def _absolute_difference(a: Value, b: Value) -> Value:
    return maximum(a, b) - minimum(a, b)


_OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "vadd": add, "vsub": sub, "vabsdiff": _absolute_difference, "vmin": minimum, "vmax": maximum,
}  # fmt: skip  # one row


# --- scalars ------------------------------------------------------------------------------------------------------


def _operated(name: str, relation: str, left: Value, right: Value) -> Value:
    """Return the result of an opcode for two numbers; a comparison gives 1 or 0."""
    if name == "vset":
        return left.compare(OPERATORS[relation], right).to(left.type)
    return _OPERATIONS[name](left, right)


def scalar(
    selectors: Sequence[str],
    name: str,
    relation: str,
    to: str,
    a: Value,
    b: Value,
    *c: Value,
    sat: bool = False,
    secondary: str = "",
) -> Value:
    """``vadd``, ``vsub``, ``vabsdiff``, ``vmin``, ``vmax`` and ``vset``: calculate with words, halves or bytes."""
    left, right = (_whole(x, selector) for x, selector in zip((a, b), selectors[1:], strict=False))
    result = _operated(name, relation, left, right)
    return _finished(result, selectors[0], "u32" if name == "vset" else to, c, sat, secondary)


def shift(
    selectors: Sequence[str],
    name: str,
    to: str,
    a: Value,
    b: Value,
    *c: Value,
    mode: str,
    sat: bool = False,
    secondary: str = "",
) -> Value:
    """``vshl`` and ``vshr``: shift by at most 32 bits, or by the low five bits of `b` (`mode` is "wrap")."""
    left = _whole(a, selectors[1])
    amount = limited(_selected(b, selectors[2]), mode)
    # An H200 keeps 34 bits of the shifted word.
    shifted = left << amount << 30 >> 30 if name == "vshl" else left >> amount
    return _finished(shifted, selectors[0], to, c, sat, secondary)


def _selected(a: Value, selector: str) -> Value:
    """Return a word, or the selected byte or half of it, extended with zeros or the sign as the type says."""
    return piece(a, int(selector[1]), _bits(selector)) if selector else a


def _bits(selector: str) -> int:
    return {"": 32, "h": 16, "b": 8}[selector[:1]]


def _whole(a: Value, selector: str) -> Value:
    """Return a source in 64 bits, in which no sum or difference of two of them overflows."""
    return _selected(a, selector).to("s64")


def _finished(result: Value, selector: str, to: str, c: Sequence[Value], sat: bool, secondary: str) -> Value:
    """Saturate and truncate a result, after a second operation with `c`, or replace the selected part of `c` by it."""
    if sat:
        result = clamp(result, *range_of(f"{to[0]}{_bits(selector)}"))
    if secondary:
        result = {"add": add, "min": minimum, "max": maximum}[secondary](result, c[0].to("s64"))
    word = result.to("u32")
    return _replaced(c[0], [(selector, word)]).read_as(to) if selector else word.read_as(to)


def _replaced(c: Value, parts: Sequence[tuple[str, Value]]) -> Value:
    """Return a word in which the parts with these selectors are replaced by the low bits of words."""
    word = c.read_as("u32")
    for selector, part in parts:
        bits = _bits(selector)
        mask, place = (1 << bits) - 1, bits * int(selector[1])
        word = word & ~(mask << place) | (part.read_as("u32") & mask) << place
    return word


def vmad(
    selectors: Sequence[str],
    to: str,
    a: Value,
    b: Value,
    c: Value,
    *,
    plus_one: bool = False,
    scale: int = 0,
    sat: bool = False,
) -> Value:
    """``vmad``: add a word to a product or its negation, or 1 too (``.po``); shift right, saturate and truncate."""
    negates = [selector[:1] == "-" for selector in selectors[1:]]
    left, right = (_whole(x, selector.removeprefix("-")) for x, selector in zip((a, b), selectors[1:], strict=False))
    unsigned = not (a.signed or b.signed)
    turned = negates[0] != negates[1]
    signed = not unsigned or turned or negates[2]
    # 128-bit numbers, as pairs of 64 bits: the product of two signed words needs 64 bits, its negation one more.
    low = (left * right).read_as("u64")
    high = low.like(0).read_as("s64") if unsigned else low.read_as("s64") >> _HIGHEST
    addend = c.read_as("s32" if not unsigned or turned else "u32").to("s64")
    if turned:
        low, high = ~low, ~high
    elif negates[2]:
        addend = ~addend
    low, carry = _sum(low, addend.read_as("u64"))
    high = high + (addend >> _HIGHEST) + carry
    if plus_one or turned or negates[2]:
        low, carry = _sum(low, low.like(1))
        high = high + carry
    if scale:
        low, high = low >> scale | high.read_as("u64") << 64 - scale, high >> scale
    if sat:
        kind = "s" if signed else "u"
        least, greatest = range_of(f"{kind}32")
        inside = low.read_as(f"{kind}64")
        extended = inside >> _HIGHEST if signed else inside.like(0)
        beyond = where(high < 0, inside.like(least), inside.like(greatest))
        low = where(high.equals(extended.read_as("s64")), clamp(inside, least, greatest), beyond).read_as("u64")
    return low.to("u32").read_as(to)


def _sum(x: Value, y: Value) -> tuple[Value, Value]:
    """Return the sum of unsigned numbers of 64 bits, and the carry."""
    total = x + y
    return total, (total < x).to("s64")


# --- two halves or four bytes -------------------------------------------------------------------------------------


def packed(
    selectors: Sequence[str], name: str, relation: str, a: Value, b: Value, c: Value, *, sat: bool = False
) -> Value:
    """``vadd4``, ``vset2`` and so on: calculate with four bytes or two halves, which replace those of `c`."""
    results = _results(selectors, name, relation, a, b)
    if sat:
        results = [clamp(result, *range_of(f"{c.type[0]}{32 // len(results)}")) for result in results]
    return _replaced(c, _masked(selectors[0], results)).read_as(c.type)


def accumulated(selectors: Sequence[str], name: str, relation: str, a: Value, b: Value, c: Value) -> Value:
    """``vadd4.add``, ``vset2.add`` and so on: calculate with four bytes or two halves, and add the results to `c`."""
    for _, result in _masked(selectors[0], _results(selectors, name, relation, a, b)):
        c = c + result.read_as(c.type)
    return c


def _results(selectors: Sequence[str], name: str, relation: str, a: Value, b: Value) -> list[Value]:
    """Return the results for the parts of both sources, the lowest first; a comparison's are 1 or 0."""
    pairs = _pairs(selectors, a, b, int(name[-1]))
    return [_operated(name[:-1], relation, *pair) for pair in pairs]


def _pairs(selectors: Sequence[str], a: Value, b: Value, count: int) -> list[tuple[Value, Value]]:
    """Return the parts of both sources, the lowest first, as signed words.

    A selector has a digit for each part, the highest first. Its digits count the parts of `a` and then those of `b`.
    The parts have the sign of the source to which the selector belongs.
    """
    sides = []
    for source, selector, first in ((a, selectors[1], 0), (b, selectors[2], count)):
        digits = [int(digit) for digit in reversed(selector[1:])] or range(first, first + count)
        words = [word.read_as(source.type) for word in (a, b)]
        sides.append([piece(words[digit // count], digit % count, 32 // count).read_as("s32") for digit in digits])
    return list(zip(*sides, strict=True))


def _masked(selector: str, results: Sequence[Value]) -> list[tuple[str, Value]]:
    """Return the results that a destination's selector names, each with the selector of its part."""
    letter = "b" if len(results) == 4 else "h"
    chosen = [int(digit) for digit in selector[1:]] or range(len(results))
    return [(f"{letter}{place}", results[place]) for place in chosen]
