"""Assign the values that calls and returns pass to the registers of functions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...compiling.analysis.control_flow import CallSite
from ..errors import UnsupportedInstruction
from ..instances import Instance
from ..vectors import I64, integer_like, lane_type
from .emitter import Emitter

Value = Any


def assigned(
    e: Emitter, arguments: list[dict[tuple[int, int], int]], inner: Instance, names: list[str]
) -> list[tuple[Instance, int, Value]]:
    """Return the callee's registers for its parameters, with the values that the caller passes."""
    found = []
    for name, pieces in zip(names, arguments, strict=False):
        for key, slot in inner.code.parameter_pieces.get(name, {}).items():
            found.append((inner, slot, _piece(e, pieces, key, _storage(inner, slot))))
    return found


def returned(
    e: Emitter, site: CallSite, caller: Instance, results: list[dict[tuple[int, int], int]]
) -> list[tuple[Instance, int, Value]]:
    """Return the caller's registers for a call's results, with the values that the callee returns."""
    found = []
    for pieces, wanted in zip(results, site.results, strict=False):
        for key, slot in wanted.items():
            found.append((caller, slot, _piece(e, pieces, key, _storage(caller, slot))))
    return found


def _storage(instance: Instance, slot: int) -> ir.Type:
    return lane_type(instance.code.types[slot])


def _piece(e: Emitter, pieces: dict[tuple[int, int], int], key: tuple[int, int], element: ir.Type) -> Value:
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
