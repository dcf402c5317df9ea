"""Write moves and packing, and what asks which block of a cluster an address belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...syntax.instructions import Instruction, Vector
from ...syntax.types import dtype_of
from ..forms import Form
from ..writer import Writer


def mov(w: Writer, i: Instruction, form: Form) -> None:
    """Write a move; one from or to a vector packs or unpacks it."""
    destination, source = i.operands[0], i.operands[1]
    ptx_type = form.type
    if form.vector > 1:
        assert isinstance(destination, Vector)
        assert isinstance(source, Vector)
        values = [w.value(item, ptx_type) for item in source.items]
        # All are read before any is written: the vectors may share registers.
        names = [w.temporary() for _ in values]
        for name, (expression, _) in zip(names, values, strict=True):
            w.emit(f"{name} = {expression}")
        for item, name, (_, uniform) in zip(destination.items, names, values, strict=True):
            w.write(item, name, dtype_of(ptx_type), uniform)
        w.emit(f"{' = '.join(names)} = None")
        return
    if ptx_type == "b128" and (isinstance(destination, Vector) or isinstance(source, Vector)):
        _mov_wide(w, destination, source)
        return
    if isinstance(destination, Vector):
        _unpack(w, destination, source, ptx_type)
        return
    if isinstance(source, Vector):
        _pack(w, destination, source, ptx_type)
        return
    expression, uniform = w.value(source, ptx_type)
    w.write(destination, expression, dtype_of(ptx_type), uniform)


def _mov_wide(w: Writer, destination: Any, source: Any) -> None:
    """Write ``mov.b128`` between a register and its two halves."""
    w.bind("join_halves", _join_halves)
    w.bind("halves", _halves)
    if isinstance(source, Vector):
        (low, low_same), (high, high_same) = (w.typed(item, "u8") for item in source.items)
        w.write(destination, f"join_halves({low}, {high})", "c16", low_same and high_same)
        return
    expression, same = w.value(source, "b128")
    for index, item in enumerate(destination.items):
        w.write(item, f"halves({expression})[{index}]", "u8", same)


def _join_halves(low: Any, high: Any) -> Any:
    """Put 64-bit halves together as 128-bit patterns."""
    low, high = np.broadcast_arrays(low, high)
    return np.ascontiguousarray(np.stack([low, high], axis=-1)).view(np.complex128)[..., 0][()]


def _halves(value: Any) -> tuple[Any, Any]:
    """Part 128-bit patterns into 64-bit halves."""
    pairs = np.ascontiguousarray(np.atleast_1d(value)).view(np.uint64).reshape(-1, 2)
    if isinstance(value, np.generic):
        return pairs[0, 0], pairs[0, 1]
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _unpack(w: Writer, destination: Vector, source: Any, ptx_type: str) -> None:
    expression, uniform = w.value(source, "b" + ptx_type[1:] if ptx_type[0] != "b" else ptx_type)
    bits = int(ptx_type[1:]) // len(destination.items)
    name = w.temporary()
    w.emit(f"{name} = {expression}")
    for index, item in enumerate(destination.items):
        shifted = f"({name} >> {w.constant(np.array(index * bits, dtype_of(ptx_type))[()])})" if index else name
        w.write(item, f"{shifted}.astype(u{bits // 8})", f"u{bits // 8}", uniform)
    w.emit(f"{name} = None")


def _pack(w: Writer, destination: Any, source: Vector, ptx_type: str) -> None:
    bits = int(ptx_type[1:]) // len(source.items)
    wide = dtype_of(ptx_type)
    terms = []
    uniform = True
    for index, item in enumerate(source.items):
        expression, same = w.typed(item, f"u{bits // 8}")
        uniform &= same
        term = f"{expression}.astype({wide})"
        terms.append(f"({term} << {w.constant(np.array(index * bits, wide)[()])})" if index else term)
    w.write(destination, " | ".join(terms), wide, uniform)


def mapa(w: Writer, i: Instruction, form: Form) -> None:
    """Write ``mapa{.shared::cluster}.type d, a, rank``."""
    address, same = w.value(i.operands[1], form.type)
    rank, rank_same = w.value(i.operands[2], "u32")
    expression = f"g.chunk.memory.map_address({address}, {rank})"
    w.write(i.operands[0], expression, dtype_of(form.type), same and rank_same)


def getctarank(w: Writer, i: Instruction, form: Form) -> None:
    """Write ``getctarank{.shared::cluster}.type d, a``."""
    address, _ = w.value(i.operands[1], form.type)
    w.write(i.operands[0], f"np.broadcast_to(g.chunk.memory.rank_of(g, {address}), g.n)", "u4", False)
