"""Write moves, packing, selections, and conversions of addresses between state spaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...operations.floats.exact import flush_f32
from ...syntax.instructions import Instruction, Vector
from ...syntax.types import dtype_of
from ...windows import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ..forms import Form
from ..writer import Writer
from .functions import call

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}


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


def cvta(w: Writer, i: Instruction, form: Form) -> None:
    """Write the conversion of an address to or from a generic one."""
    dtype = dtype_of(form.type)
    window = _WINDOWS.get(form.space)
    expression, uniform = w.value(i.operands[1], form.type)
    if window is not None:
        sign = "-" if "to" in form.words else "+"
        expression = f"{expression} {sign} {w.constant(np.array(window, dtype)[()])}"
    w.write(i.operands[0], expression, dtype, uniform)


def isspacep(w: Writer, i: Instruction, form: Form) -> None:
    """Write the question whether a generic address lies in a state space."""
    expression, uniform = w.value(i.operands[1], "u64")
    if form.space in _WINDOWS:
        low = w.constant(np.uint64(_WINDOWS[form.space]))
        w.write(i.operands[0], f"({expression} - {low}) < {w.constant(np.uint64(WINDOW_BYTES))}", "?", uniform)
    else:
        w.write(i.operands[0], f"{expression} < {w.constant(np.uint64(SHARED_WINDOW))}", "?", uniform)


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


def selp(w: Writer, i: Instruction, form: Form) -> None:
    """Write a selection by a predicate."""
    dtype = dtype_of(form.type)
    (a, a_same), (b, b_same) = w.value(i.operands[1], form.type), w.value(i.operands[2], form.type)
    p, p_same = w.value(i.operands[3], "pred")
    if p_same and a_same and b_same:
        w.write(i.operands[0], f"{a} if {p} else {b}", dtype, True)
    else:
        w.write(i.operands[0], f"np.where({p}, {a}, {b})", dtype, False)


def slct(w: Writer, i: Instruction, form: Form) -> None:
    """Write a selection by the sign of a number."""
    ptx_type, chooser = form.types
    (a, a_same), (b, b_same) = w.value(i.operands[1], ptx_type), w.value(i.operands[2], ptx_type)
    c, c_same = w.value(i.operands[3], chooser)
    if "ftz" in form.words:
        c, _ = call(w, "flush_f32", flush_f32, [(c, c_same)])
    same = a_same and b_same and c_same
    chosen = f"({a} if {c} >= 0 else {b})" if same else f"np.where({c} >= 0, {a}, {b})"
    w.write(i.operands[0], chosen, dtype_of(ptx_type), same)
