"""Read operands: registers, literals, symbols, addresses in brackets, vectors in braces, calls."""

from __future__ import annotations

import re
import struct

from ..faults import PtxError
from .instructions import Access, Call, Immediate, Operand, Register, Symbol, Vector
from .scopes import Scopes

_INTEGER = re.compile(r"([+-]?)\s*(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0([0-7]+)|(0|[1-9]\d*))U?$")
_BITS = re.compile(r"0(?:[fF]([0-9a-fA-F]{8})|[dD]([0-9a-fA-F]{16}))$")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?$")
# A register that a video instruction negates, or of which it selects bytes or halves.
_SELECTED = re.compile(r"(-?)\s*([A-Za-z_$%][\w$]*)(?:\.(b[0-7]{1,4}|h[0-3]{1,2}))?$")
_LONGEST_QUOTED = 60
_BASES = (16, 2, 8, 10)
_SUM = re.compile(r"([A-Za-z_$%][\w$.]*)\s*([+-]\s*[+-]?\s*\w+)?$")
_CALL = re.compile(
    r"(?:\(([^()]*)\)\s*,\s*)?([A-Za-z_$%][\w$]*)\s*(?:,\s*\(([^()]*)\)\s*)?(?:,\s*([A-Za-z_$%][\w$]*)\s*)?$"
)


def integer(text: str) -> int | None:
    """Return the value of an integer literal of at most 64 bits, or None for any other text."""
    if text.isdigit() and text[0] != "0" and len(text) < 20:
        # A fast path for the usual form: tables of initial values contain thousands of these.
        return int(text)
    match = _INTEGER.match(text)
    if match is None:
        return None
    digits, base = next((group, base) for group, base in zip(match.groups()[1:], _BASES, strict=True) if group)
    if len(digits) > 64:
        return None
    value = int(digits, base)
    if value >= 1 << 64:
        return None
    return -value if match[1] == "-" else value


def literal(text: str) -> Immediate | None:
    """Read an integer or a floating-point literal; return None for any other text."""
    first = text[:1]
    if not (first.isdigit() or first in ("+", "-", ".")):
        return None
    value = integer(text)
    if value is not None:
        return Immediate(value)
    match = _BITS.match(text)
    if match:
        return Immediate(int(match[1], 16), 32) if match[1] else Immediate(int(match[2], 16), 64)
    if _DECIMAL.match(text):
        return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
    return None


def split(text: str) -> list[str]:
    """Split at the commas outside brackets and braces."""
    if "{" not in text and "[" not in text and "(" not in text:
        return [piece.strip() for piece in text.split(",")]
    pieces = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and not depth:
            pieces.append(text[start:position].strip())
            start = position + 1
    pieces.append(text[start:].strip())
    return pieces


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]}…"


def _sum(text: str, scopes: Scopes) -> tuple[Operand, int]:
    """Read a register, literal or symbol, and the number that is added to it."""
    found = scopes.find(text)
    if found is not None:
        return found, 0
    number = literal(text)
    if number is not None:
        return number, 0
    match = _SUM.match(text)
    if match is None:
        raise PtxError(f"operand {_shortened(text)!r} isn't understood")
    offset = 0
    if match[2]:
        sign, rest = match[2][0], match[2][1:].strip()
        value = integer(rest)
        if value is None:
            raise PtxError(f"operand {_shortened(text)!r} isn't understood")
        offset = -value if sign == "-" else value
    meaning = scopes.find(match[1])
    return (Symbol(match[1]) if meaning is None else meaning), offset


def _access(text: str, scopes: Scopes) -> Access:
    pieces = split(text)
    if len(pieces) > 2:
        raise PtxError(f"operand [{_shortened(text)}] isn't understood")
    coordinates = None
    if len(pieces) == 2:
        if pieces[1].startswith("["):
            raise PtxError(f"operand [{_shortened(text)}] has an address among its coordinates")
        vector = read_operand(pieces[1], scopes)
        coordinates = vector if isinstance(vector, Vector) else Vector((vector,))
    base, offset = _sum(pieces[0], scopes)
    if not isinstance(base, (Register, Symbol, Immediate)) or (isinstance(base, Immediate) and base.float_bits):
        raise PtxError(f"operand [{_shortened(text)}] has no address")
    return Access(base, offset, coordinates)


def read_operand(text: str, scopes: Scopes) -> Operand:
    """Read one operand; raise PtxError if the text isn't one."""
    known = scopes.operands.get(text)
    if known is None:
        known = scopes.operands[text] = _read(text, scopes)
    return known


def _read(text: str, scopes: Scopes) -> Operand:
    first, last = text[:1], text[-1:]
    if first == "[" and last == "]":
        return _access(text[1:-1].strip(), scopes)
    if first == "{" and last == "}":
        pieces = split(text[1:-1])
        # PTX has neither, and reading nested vectors recursively could exhaust Python's stack.
        if any(piece.startswith(("{", "[")) for piece in pieces):
            raise PtxError(f"operand {_shortened(text)!r} is a vector of vectors or of addresses")
        return Vector(tuple(read_operand(piece, scopes) for piece in pieces))
    if "|" in text:
        return Vector(tuple(read_operand(piece.strip(), scopes) for piece in text.split("|")))
    if first == "!":
        register = scopes.find(text[1:].strip())
        if isinstance(register, Register):
            return Register(register.name, negated=True)
        raise PtxError(f"operand {_shortened(text)!r} negates something other than a register")
    selected = _SELECTED.match(text) if first == "-" or "." in text else None
    if selected is not None and scopes.find(text) is None:
        register = scopes.find(selected[2])
        if isinstance(register, Register):
            return Register(register.name, selector=selected[1] + (selected[3] or ""))
    plain, offset = _sum(text, scopes)
    if not offset:
        return plain
    if isinstance(plain, Symbol):
        return Symbol(plain.name, plain.offset + offset)
    if isinstance(plain, Register):
        # Some programs write an address as a register plus a number, without brackets.
        return Access(plain, offset)
    raise PtxError(f"operand {_shortened(text)!r} isn't understood")


def read_call(text: str, scopes: Scopes) -> Call:
    """Read the operands of ``call``: results, target and arguments; the prototype of an indirect call is ignored."""
    match = _CALL.match(text)
    if match is None:
        raise PtxError(f"call {_shortened(text)!r} isn't understood")

    def operands(list_: str | None) -> tuple[Operand, ...]:
        return tuple(read_operand(item, scopes) for item in split(list_)) if list_ and list_.strip() else ()

    target = scopes.find(match[2])
    if target is None:
        target = Symbol(match[2])
    if not isinstance(target, (Register, Symbol)):
        raise PtxError(f"call {_shortened(text)!r} has no function")
    return Call(operands(match[1]), target, operands(match[3]))
