"""Moves of 128 bits, sleeping, and instructions that have no effect on values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Instruction, Vector
from ..layout import Context
from ..vectors import I32, I64

if TYPE_CHECKING:
    from ..writing.emitter import Emitter


def move_wide(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``mov.b128``, which may pack or unpack two 64-bit halves."""
    b, (destination, source) = e.b, i.operands
    if isinstance(source, Vector):
        value = b.joined(*(e.value(item, "b64") for item in source.items))
    else:
        value = e.value(source, "b128")
    if not isinstance(destination, Vector):
        e.write(destination, value, "b128")
        return
    for item, half in zip(destination.items, b.halves(value), strict=True):
        e.write(item, half, "b64")


def nap(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``nanosleep``, which only advances the time by the longest sleep among the lanes."""
    b = e.b
    wanted = b.select(e.flags(), e.value(i.operands[0], "u32"), b.const(I32, 0))
    longest = b.zext(b.reduced("umax", wanted), I64)
    b.set_word(e.context, Context.SLEPT, b.add(b.word(e.context, Context.SLEPT), longest))


def nothing(e: Emitter, i: Instruction, form: Form) -> None:
    """Generate no code for an instruction that changes no values, such as a prefetch."""


def policy(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``createpolicy``; its result is 0, because it is only a hint to caches."""
    e.write(i.operands[0], e.b.const(I64, 0), "b64")


def fence(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a fence only for the checks, if there are any: all accesses happen in program order anyway."""
    if e.checking is not None:
        e.accessed = True
        e.checking.fence(i, e.mask)


LOWERINGS: dict[str, Any] = {
    "mov": move_wide,
    "prefetch": nothing, "prefetchu": nothing, "discard": nothing, "applypriority": nothing, "membar": fence,
    "fence": fence, "createpolicy": policy, "griddepcontrol": nothing, "nanosleep": nap, "pmevent": nothing,
    "setmaxnreg": nothing,
}  # fmt: skip  # rows of a table
