"""Data movement: moves and packing, permutation of bytes, and conversions of addresses between state spaces."""

from __future__ import annotations

from functools import reduce
from operator import or_

from ..windows import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from .values import Value, maximum, minimum, where

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}


def mov(count: int, *sources: Value) -> Value | tuple[Value, ...]:
    """``mov``: move registers, pack several into one, or unpack one into `count`, the lowest bits first."""
    if len(sources) == count:
        return sources
    if count == 1:
        width = sources[0].width
        wide = f"u{len(sources) * width}"
        if wide == "u128":
            return sources[0].of(sources[0].builder.joined(*(source.raw for source in sources)), wide)
        return reduce(or_, (source.to(wide) << width * index for index, source in enumerate(sources)))
    whole = sources[0].bits
    if whole.width == 128:
        return tuple(whole.of(half, "u64") for half in whole.builder.halves(whole.raw))
    width = whole.width // count
    return tuple((whole >> width * index).to(f"u{width}") for index in range(count))


def prmt(a: Value, b: Value, selectors: Value, *, mode: str = "") -> Value:
    """``prmt``: pick four bytes of the pair by nibbles, whose top bit selects eight copies of the byte's sign instead.

    With a `mode`, the nibbles follow from the selector's low bits: "f4e" and "b4e" extract four bytes upward and
    downward from the selected one, "rc8" and "rc16" replicate a byte or a half, and "ecl" and "ecr" clamp the
    positions of bytes to the selected one from below and from above.
    """
    nibbles = [_nibble(selectors, index, mode) for index in range(4)]
    pick = _picked_by_literal if selectors.known is not None else _picked
    return reduce(or_, (pick(a, b, nibble) << 8 * index for index, nibble in enumerate(nibbles)))


def _nibble(selectors: Value, index: int, mode: str) -> Value:
    """Return the selector of one byte."""
    chosen = selectors & 3
    match mode:
        case "f4e":
            return chosen + index
        case "b4e":
            return (chosen - index) & 7
        case "rc8":
            return chosen
        case "rc16":
            return (selectors & 1) << 1 | index & 1
        case "ecl":
            return maximum(chosen, index)
        case "ecr":
            return minimum(chosen, index)
    return selectors >> 4 * index


def _picked(a: Value, b: Value, nibble: Value) -> Value:
    joined = b.to("u64") << 32 | a.to("u64")
    byte = (joined >> ((nibble & 7) << 3)).to("u32") & 0xFF
    return where((nibble & 8).differs(0), _sign_of(byte), byte)


def _picked_by_literal(a: Value, b: Value, nibble: Value) -> Value:
    assert nibble.known is not None
    byte = ((b if nibble.known & 4 else a) >> 8 * (nibble.known & 3)) & 0xFF
    return _sign_of(byte) if nibble.known & 8 else byte


def _sign_of(byte: Value) -> Value:
    """Return eight copies of a byte's top bit."""
    return (byte >> 7) * 0xFF


def cvta(space: str, address: Value, *, to: bool = False) -> Value:
    """``cvta``: convert an address in a state space to a generic one, or with ``to`` the reverse."""
    if space not in _WINDOWS:
        return address
    return address - _WINDOWS[space] if to else address + _WINDOWS[space]


def isspacep(space: str, address: Value) -> Value:
    """``isspacep``: return whether a generic address is in a state space."""
    if space not in _WINDOWS:
        return address < SHARED_WINDOW
    return address - _WINDOWS[space] < WINDOW_BYTES
