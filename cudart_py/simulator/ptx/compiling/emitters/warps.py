"""Emit warp-wide operations: shuffles, votes, matches, reductions and elections."""

from __future__ import annotations

from ...syntax.instructions import Immediate, Instruction
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
    w.write_all(i.operands[0], f"g.chunk.warps.shuffle(g, {mode!r}, {a}, {b}, {c})", "u4", "?")


def collective(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``vote``, ``match`` and ``redux``: ``d, a{, mask}``; without a mask, all active lanes vote."""
    mode = next(word for word in form.modifiers if word != "sync")
    result, kind = (dtype_of(form.type_of(pattern)) for pattern in form.operands[:2])
    value = spread(w.typed(i.operands[1], kind), kind)
    mask, _ = w.value(i.operands[2] if len(i.operands) > 2 else Immediate(-1), "b32")
    call = f"g.chunk.warps.collective(g, {form.row.name!r}, {mode!r}, {value}, {mask})"
    w.write_all(i.operands[0], call, result, "?")


def activemask(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``activemask.b32 d``: a vote in which all active lanes vote yes."""
    mask, _ = w.value(Immediate(-1), "b32")
    w.write_all(i.operands[0], f"g.chunk.warps.collective(g, 'vote', 'ballot', np.full(g.n, True), {mask})", "u4")


def elect(w: Writer, i: Instruction, form: Form) -> None:
    """Emit ``elect.sync d|p, mask``."""
    mask, _ = w.value(i.operands[1], "b32")
    w.write_all(i.operands[0], f"g.chunk.warps.collective(g, 'elect', '', None, {mask})", "u4", "?")
