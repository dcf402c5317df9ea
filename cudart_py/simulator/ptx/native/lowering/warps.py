"""Warp-wide operations: shuffles, votes, matches and reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...instructions import values as instructions
from ...instructions import warps
from ...syntax.instructions import Immediate, Instruction, items_of
from ..vectors import I32, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
WORDS = vector(I32)


def _words(e: Emitter, *raw: Value) -> tuple[instructions.Value, ...]:
    """Return vectors of words as values that the shared lowerings compute with."""
    return tuple(instructions.Value(e.b, "u32", one) for one in raw)


def _write(e: Emitter, i: Instruction, *results: instructions.Value) -> None:
    """Assign a word, and the predicate if there is one and the instruction names it."""
    for item, result in zip(items_of(i.operands[0]), results, strict=False):
        e.write(item, result.raw, result.type)


def shuffle(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``shfl``; a lane gets its own value if its source is out of range, and 0 if its source isn't active."""
    b, mode = e.b, form.modifiers[-1]
    value = e.value(i.operands[1], "b32")
    operands = (e.value(operand, "u32") for operand in i.operands[2:4])
    target, inside = warps.shuffle_source(mode, *_words(e, b.lanes(), *operands))
    source, within = target.raw, inside.raw
    present = b.compare("!=", b.and_(b.lshr(b.splat(e.mask), source), b.const(I32, 1)), 0)
    if e.checking is not None:
        absent = b.and_(b.bits(b.and_(within, b.not_(present))), e.mask)
        e.checking.absent(absent, i, e.instance)
    result = b.select(present, e.call("permute", WORDS, value, source), b.const(I32, 0))
    _write(e, i, target.of(result), inside)


def collective(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``vote``, ``match`` and ``redux``; without a member mask, all active lanes vote."""
    b = e.b
    value = e.value(i.operands[1], form.type_of(form.operands[1]))
    members = e.value(i.operands[2] if len(i.operands) > 2 else Immediate(-1), "b32")
    if form.row.name == "redux":
        present = b.and_(b.splat(e.mask), members)
        e.write(i.operands[0], e.call(f"redux.{form.words[1]}.{form.type}", WORDS, value, present), form.type)
        return
    if form.row.name == "vote":
        votes = b.splat(b.and_(b.bits(value), e.mask))
        _write(e, i, warps.vote(form.modifiers[-1], *_words(e, votes, b.splat(e.mask), members)))
        return
    words = _words(e, e.call(f"match.{form.type}", WORDS, value), b.splat(e.mask), members)
    _write(e, i, *(warps.match_all(*words) if form.words[0] == "all" else [warps.match_any(*words)]))


def activemask(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``activemask``."""
    e.write(i.operands[0], e.b.splat(e.mask), "b32")


def elect(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``elect``."""
    _write(e, i, *warps.elect(*_words(e, e.b.lanes(), e.b.splat(e.mask), e.value(i.operands[1], "b32"))))
