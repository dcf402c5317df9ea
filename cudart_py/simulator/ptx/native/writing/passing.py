"""Assign the values that calls and returns pass to the registers of functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import ir

from ...compiling.analysis.control_flow import Code
from ...syntax.instructions import Param
from ..errors import UnsupportedInstruction
from ..instances import Instance
from ..vectors import I64, integer_like, lane_type
from .emitter import Emitter

Value = Any

# The slots of a parameter's pieces, keyed by their offsets and sizes.
Pieces = dict[tuple[int, int], int]


def pieces_of(code: Code, parameters: Iterable[Param]) -> list[Pieces]:
    """Return the pieces of parameters, or of results, that a function uses."""
    return [code.parameter_pieces.get(parameter.name, {}) for parameter in parameters]


def passed(e: Emitter, given: list[Pieces], to: Instance, wanted: list[Pieces]) -> list[tuple[Instance, int, Value]]:
    """Return the registers to which parameters or results are passed, with the values that the code passes."""
    found = []
    for pieces, slots in zip(given, wanted, strict=False):
        for key, slot in slots.items():
            found.append((to, slot, _piece(e, pieces, key, lane_type(to.code.types[slot]))))
    return found


def _piece(e: Emitter, pieces: Pieces, key: tuple[int, int], element: ir.Type) -> Value:
    """Return a piece of a parameter, assembled from its bits if it was stored in different pieces."""
    if key in pieces:
        value = e.register(pieces[key])
        return value if value.type.element == element else e.viewed(value, element)
    b = e.b
    offset, size = key
    if size > I64.width // 8 or any(length > I64.width // 8 for _, length in pieces):
        raise UnsupportedInstruction("a parameter of 16 bytes that is read in other pieces than it is written")
    total = b.const(I64, 0)
    for (start, length), slot in pieces.items():
        if start + length <= offset or start >= offset + size:
            continue
        part = b.resized(b.as_integer(e.register(slot)), I64, False)
        shift = b.const(I64, 8 * abs(start - offset))
        total = b.or_(total, b.shl(part, shift) if start >= offset else b.lshr(part, shift))
    return b.as_type(b.resized(total, integer_like(element), False), element)
