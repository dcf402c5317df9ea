"""Emit warp-wide operations: shuffles, votes, matches, reductions and elections."""

from __future__ import annotations

from ...syntax.instructions import Immediate, Instruction, Symbol, Vector, items_of
from ...syntax.types import dtype_of
from ..forms import Form
from ..writer import Writer, spread


def shuffle(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``shfl{.sync}.mode.b32 d|p, a, b, c{, mask}``."""
    mode = form.modifiers[-1]
    a = spread(w.value(i.operands[1], "b32"), "u4")
    b, c = (w.value(operand, "u32")[0] for operand in i.operands[2:4])
    if w.environment.observed:
        w.emit(f"g.chunk.state.observer.shuffle(g, {w.site()}, {mode!r}, {b}, {c})")
    result = w.temporary()
    w.emit(f"{result} = g.chunk.warps.shuffle(g, {mode!r}, {a}, {b}, {c})")
    destination = i.operands[0]
    if isinstance(destination, Vector):
        w.write(destination.items[0], f"{result}[0]", "u4", False)
        w.write(destination.items[1], f"{result}[1]", "?", False)
    else:
        w.write(destination, f"{result}[0]", "u4", False)
    w.emit(f"{result} = None")


def vote(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``vote{.sync}.mode.type d, p{, mask}``; without a mask, all active lanes vote."""
    mode = form.modifiers[-1]
    predicate = spread(w.value(i.operands[1], "pred"), "np.bool_")
    mask, _ = w.value(i.operands[2] if len(i.operands) > 2 else Immediate(-1), "b32")
    w.write(i.operands[0], f"g.chunk.warps.vote(g, {mode!r}, {predicate}, {mask})", dtype_of(form.type), False)


def match(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``match.mode.sync.type d|p, a, mask``."""
    dtype = dtype_of(form.type)
    value = spread(w.value(i.operands[1], form.type), dtype)
    mask, _ = w.value(i.operands[2], "b32")
    result = w.temporary()
    w.emit(f"{result} = g.chunk.warps.match(g, {form.words[0]!r}, {value}, {mask})")
    destination = i.operands[0]
    items = items_of(destination)
    w.write(items[0], f"{result}[0]", "u4", False)
    if len(items) > 1:
        w.write(items[1], f"{result}[1]", "?", False)
    w.emit(f"{result} = None")


def redux(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``redux.sync.operation.type d, a, mask``."""
    dtype = dtype_of(form.type)
    value = spread(w.value(i.operands[1], form.type), dtype)
    mask, _ = w.value(i.operands[2], "b32")
    w.write(i.operands[0], f"g.chunk.warps.reduce(g, {form.words[1]!r}, {value}, {mask})", dtype, False)


def activemask(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``activemask.b32 d``."""
    w.write(i.operands[0], "g.chunk.warps.active(g)", "u4", False)


def elect(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``elect.sync d|p, mask``."""
    mask, _ = w.value(i.operands[1], "b32")
    result = w.temporary()
    w.emit(f"{result} = g.chunk.warps.elect(g, {mask})")
    destination = i.operands[0]
    items = destination.items if isinstance(destination, Vector) else (Symbol("_"), destination)
    w.write(items[0], f"{result}[0]", "u4", False)
    w.write(items[1], f"{result}[1]", "?", False)
