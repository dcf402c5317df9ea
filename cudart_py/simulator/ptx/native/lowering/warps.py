"""What the lanes of a warp do together: shuffles, votes, matches and reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Instruction, Vector
from ..vectors import I32, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any
WORDS = vector(I32)


def shuffle(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``shfl``; a lane whose source is out of range or takes no part keeps its own value."""
    b, mode = e.b, form.words[1]
    value = e.value(i.operands[1], "b32")
    distance, control = (e.value(operand, "u32") for operand in i.operands[2:4])
    five = b.const(I32, 31)
    lanes = b.lanes()
    offset = b.and_(distance, five)
    segment = b.and_(b.lshr(control, b.const(I32, 8)), five)
    first = b.and_(lanes, segment)
    limit = b.or_(first, b.and_(b.and_(control, five), b.not_(segment)))
    if mode == "up":
        source = b.sub(lanes, offset)
        within = b.compare(">=", source, limit, True)
    else:
        source = {
            "down": lambda: b.add(lanes, offset),
            "bfly": lambda: b.xor(lanes, offset),
            "idx": lambda: b.or_(first, b.and_(offset, b.not_(segment))),
        }[mode]()
        within = b.compare("<=", source, limit, True)
    source = b.and_(b.select(within, source, lanes), five)
    present = b.compare("!=", b.and_(b.lshr(b.splat(e.mask), source), b.const(I32, 1)), 0)
    if e.checking is not None:
        absent = b.and_(b.bits(b.and_(within, b.not_(present))), e.mask)
        e.checking.absent(absent, i, e.instance)
    source = b.select(present, source, lanes)
    result = e.call("permute", WORDS, value, source)
    destination = i.operands[0]
    if isinstance(destination, Vector):
        e.write(destination.items[0], result, "b32")
        e.write(destination.items[1], within, "pred")
    else:
        e.write(destination, result, "b32")


def vote(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``vote``."""
    b, mode = e.b, form.words[1]
    truth, members = e.value(i.operands[1], "pred"), e.value(i.operands[2], "b32")
    votes = b.and_(b.splat(b.and_(b.bits(truth), e.mask)), members)
    if mode == "ballot":
        e.write(i.operands[0], votes, "b32")
        return
    present = b.and_(b.splat(e.mask), members)
    if mode == "any":
        result = b.compare("!=", votes, 0)
    else:
        result = b.icmp_unsigned("==", votes, present)
        if mode == "uni":
            result = b.or_(result, b.compare("==", votes, 0))
    e.write(i.operands[0], result, "pred")


def match(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``match``."""
    b = e.b
    value, members = e.value(i.operands[1], form.type), e.value(i.operands[2], "b32")
    present = b.and_(b.splat(e.mask), members)
    found = b.and_(e.call(f"match.{form.type}", WORDS, value), present)
    destination = i.operands[0]
    if form.words[0] == "any":
        e.write(destination, found, "b32")
        return
    alike = b.icmp_unsigned("==", found, present)
    items = destination.items if isinstance(destination, Vector) else (destination,)
    e.write(items[0], b.select(alike, present, b.const(I32, 0)), "b32")
    if len(items) > 1:
        e.write(items[1], alike, "pred")


def reduce(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``redux``."""
    b = e.b
    value, members = e.value(i.operands[1], form.type), e.value(i.operands[2], "b32")
    present = b.and_(b.splat(e.mask), members)
    e.write(i.operands[0], e.call(f"redux.{form.words[1]}.{form.type}", WORDS, value, present), form.type)


def active(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``activemask``."""
    e.write(i.operands[0], e.b.splat(e.mask), "b32")


def elect(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``elect``."""
    b = e.b
    present = b.and_(b.splat(e.mask), e.value(i.operands[1], "b32"))
    leader = b.intrinsic("ctpop", b.sub(b.and_(present, b.sub(b.const(I32, 0), present)), b.const(I32, 1)))
    destination = i.operands[0]
    items = destination.items if isinstance(destination, Vector) else (None, destination)
    if items[0] is not None:
        e.write(items[0], leader, "b32")
    e.write(items[1], b.icmp_unsigned("==", leader, b.lanes()), "pred")


def warp_barrier(e: Emitter, i: Instruction, form: Form) -> None:
    """Write nothing for ``bar.warp.sync``: the lanes have come together at the block's beginning."""


LOWERINGS: dict[str, Any] = {
    "shfl": shuffle, "vote": vote, "match": match, "redux": reduce, "activemask": active, "elect": elect,
    "bar": warp_barrier,
}  # fmt: skip  # rows of a table
