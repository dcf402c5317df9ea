"""Find the form of an opcode that fits its operands, by their kinds and the patterns of the opcode table."""

from __future__ import annotations

import re
from functools import cache
from typing import TypeAlias

from ..faults import PtxError
from ..syntax.types import register_fits, type_size
from .forms import Form
from .fragments import fragment_length, register_type

# The kind of an operand: a register's type, a word in parentheses for another operand, or a tuple for a vector.
Kind: TypeAlias = "str | tuple[Kind, ...]"
INTEGER, SINGLE, DOUBLE = "(integer)", "(float 32)", "(float 64)"
SPECIAL, ADDRESS, SINK = "(special)", "(symbol)", "(_)"
MEMORY, TEXTURE = "(address)", "(texture)"
# The beginning of the kind of a register with a selector: the selector, a space and the register's type follow.
SELECTED = "(selected)"
# The selectors that sources of video instructions may have, by the number of the parts that are selected.
_SOURCES = {"1": r"b[0-3]|h[01]", "2": r"h[0-3]{2}", "4": r"b[0-7]{4}"}
# The selectors of destinations; those of several parts are masks, from the highest part to the lowest.
_DESTINATIONS = {"1": r"b[0-3]|h[01]", "2": r"h1?0|h1", "4": r"b(?=.)3?2?1?0?"}
LITERALS = {INTEGER, SINGLE, DOUBLE}
# The size in bytes of the largest vector that an instruction moves.
_LARGEST_VECTOR = 32


@cache
def fitting(forms: tuple[Form, ...], kinds: tuple[Kind, ...]) -> Form:
    """Return the form that fits operands of these kinds, or raise PtxError with the mistake for the last form."""
    mistake = ""
    for form in forms:
        mistake = _mistake(form, kinds)
        if not mistake:
            return form
    raise PtxError(mistake)


def _mistake(form: Form, kinds: tuple[Kind, ...]) -> str:
    """Return the mistake in the operands of an instruction, or an empty string if there is none."""
    if form.operands == ("=P", "P"):
        return _moved(form, kinds)
    patterns = list(form.operands)
    if patterns and patterns[-1] == "H?":
        # The cache policy is the last operand, present only if the opcode has `L2::cache_hint`.
        patterns.pop()
        if "L2::cache_hint" in form.words:
            if not kinds or _source(kinds[-1], "b64"):
                return "the cache policy is not a 64-bit register"
            kinds = kinds[:-1]
    least = sum(not pattern.endswith("?") for pattern in patterns)
    if not least <= len(kinds) <= len(patterns):
        expected = str(least) if least == len(patterns) else f"{least} to {len(patterns)}"
        return f"{form.opcode} has {expected} operands, not {len(kinds)}"
    for place, (pattern, kind) in enumerate(zip(patterns, kinds, strict=False)):
        found = _misfit(form, pattern.removesuffix("?"), kind, place)
        if found:
            return f"operand {place + 1} {found}"
    return ""


def _misfit(form: Form, pattern: str, kind: Kind, place: int) -> str:
    """Return how an operand differs from what its pattern requires, or an empty string if it fits."""
    if isinstance(kind, str) and kind.startswith(SELECTED):
        selector, kind = kind.removeprefix(SELECTED).split()
        if selector[0] == "-" and pattern[0] != "-":
            return "is negated"
        selector = selector.removeprefix("-")
        allowed = (_DESTINATIONS if pattern[0] == "=" else _SOURCES).get(pattern.partition(".")[2], "")
        if selector and not re.fullmatch(allowed, selector):
            return f"has the selector .{selector}"
    if pattern[0] == "=" and pattern[1] != "F":
        return _destination(form, pattern[1:], kind)
    pattern = pattern.lstrip("=+")
    if pattern == "M":
        return "" if kind == MEMORY else "is not an address in brackets"
    if pattern == "V":
        items = kind if isinstance(kind, tuple) else (kind,)
        if found := _size_mistake(form, items):
            return found
        return next(filter(None, (_source(item, form.types[0], wider=True) for item in items)), "")
    if pattern == "F":
        return _fragment(kind, fragment_length(form, place), register_type(form, place))
    if pattern == "F4":
        return _fragment(kind, 4, "b32")
    if pattern in ("X", "S"):
        types = form.coordinate_types(form.type if pattern == "X" else "s32")
        return _located(kind, "a texture or surface", types, 4)
    if pattern == "G":
        axes = len(form.coordinate_types("f32")) - (form.geometry[0] == "a")
        return _fragment(kind, axes, "f32") and _fragment(kind, 4, "f32")
    if pattern == "D":
        types = form.coordinate_types("s32")
        return _located(kind, "the address of a tensor map", types, len(types))
    if pattern[0] in "#@":
        return "" if kind == INTEGER else "is not a literal"
    if pattern in ("B", "N"):
        return _source(kind, "u32") if kind != SPECIAL else "is a special register"
    if pattern == "Z":
        return "" if kind == "pred" else _source(kind, "u32")
    if pattern == "A":
        return _source(kind, "u64") and _source(kind, "u32")
    return _source(kind, form.type_of(pattern), pattern.endswith("~"))


def _size_mistake(form: Form, items: tuple[Kind, ...]) -> str:
    """Return how a vector has the wrong number of elements, or more bytes than any instruction moves."""
    if len(items) != form.vector or items[0] == TEXTURE:
        return f"has {len(items)} elements, not {form.vector}"
    size = form.vector * type_size(form.types[0])
    return f"has {size} bytes, more than {_LARGEST_VECTOR}" if size > _LARGEST_VECTOR else ""


def _source(kind: Kind, wanted: str, wider: bool = False) -> str:
    """Return why an operand can't be read as a type."""
    if isinstance(kind, tuple):
        return "is a vector"
    if kind in LITERALS:
        return _literal(kind, wanted)
    if kind in (SPECIAL, ADDRESS):
        if (
            wanted[0] not in "bus"
            or wanted.endswith("x2")
            or wanted.startswith("bf")
            or type_size(wanted) not in (2, 4, 8)
        ):
            return f"is not a value of .{wanted}"
        return ""
    if kind[0] == "(":
        return "is not a value"
    return "" if register_fits(kind, wanted, wider) else f"is a register of .{kind}, not of .{wanted}"


def _literal(kind: str, wanted: str) -> str:
    """Return why a literal can't be read as a type."""
    if wanted == "b128":
        return "is a literal of 128 bits"
    if kind == INTEGER or wanted in ("f32", "f64"):
        return ""
    size = 4 if kind == SINGLE else 8
    return "" if type_size(wanted) == size and wanted != "pred" else f"is a floating-point literal, not of .{wanted}"


def _destination(form: Form, pattern: str, kind: Kind) -> str:
    """Return why an operand can't be written as a type."""
    if pattern == "V":
        items = kind if isinstance(kind, tuple) else (kind,)
        if found := _size_mistake(form, items):
            return found
        return next(filter(None, (_register(item, form.types[0], True) for item in items)), "")
    wanted, wider = form.type_of(pattern), pattern.endswith("~")
    if not isinstance(kind, tuple):
        return "is a register without a predicate next to it" if "&" in pattern else _register(kind, wanted, wider)
    if not ("|" in pattern or "&" in pattern) or len(kind) != 2:
        return "is a vector"
    return _register(kind[0], wanted, wider) or _register(kind[1], "pred", False)


def _register(kind: Kind, wanted: str, wider: bool) -> str:
    if kind == SINK:
        return ""
    if isinstance(kind, tuple) or kind[0] == "(":
        return "is not a register"
    return "" if register_fits(kind, wanted, wider) else f"is a register of .{kind}, not of .{wanted}"


def _moved(form: Form, kinds: tuple[Kind, ...]) -> str:
    """Return the mistake in the operands of ``mov``, which packs and unpacks vectors too."""
    if len(kinds) != 2:
        return f"{form.opcode} has 2 operands, not {len(kinds)}"
    whole = form.types[0]
    to, source = kinds
    if isinstance(to, tuple) and isinstance(source, tuple):
        return "both operands are vectors"
    for vector, other in ((to, source), (source, to)):
        if isinstance(vector, tuple):
            bits = 8 * type_size(whole) // len(vector)
            if whole[0] not in "bus" or bits * len(vector) != 8 * type_size(whole) or bits not in (8, 16, 32, 64):
                return f"a vector of {len(vector)} is not a .{whole}"
            check = _register if vector is to else lambda item, wanted, wider: _source(item, wanted, wider)
            found = next(filter(None, (check(item, f"b{bits}", False) for item in vector)), "")
            return found or (_source(other, whole) if vector is to else _register(other, whole, False))
    return _register(to, whole, False) or _source(source, whole)


def _fragment(kind: Kind, length: int, wanted: str) -> str:
    """Return why an operand isn't the vector that a matrix or a texture fetch requires."""
    if not isinstance(kind, tuple) or kind[0] == TEXTURE:
        return "is not a vector"
    if len(kind) != length:
        return f"has {len(kind)} elements, not {length}"
    return next(filter(None, (_source(item, wanted) if item != SINK else "" for item in kind)), "")


def _located(kind: Kind, what: str, types: list[str], most: int) -> str:
    """Return why an operand isn't `what`, given by 64 bits, with coordinates of these types, or padded to `most`."""
    if not isinstance(kind, tuple) or kind[0] != TEXTURE:
        return f"is not {what} with coordinates"
    if len(kind) - 2 not in (len(types), most):
        return f"has {len(kind) - 2} coordinates, not {len(types)}"
    found = (_source(item, wanted) for item, wanted in zip(kind[2:], types, strict=False))
    return _source(kind[1], "u64") or next(filter(None, found), "")
