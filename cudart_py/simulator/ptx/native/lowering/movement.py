"""Moves and packing, and what changes no registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.forms import Form
from ...syntax.instructions import Instruction, Vector
from ...syntax.types import type_size
from ..errors import NotNative
from ..layout import Context
from ..vectors import I32, I64, lane_type, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter


def mov(e: Emitter, i: Instruction, form: Form) -> None:
    """Write a move; one from or to a vector packs or unpacks it."""
    b = e.b
    destination, source = i.operands[0], i.operands[1]
    if form.vector > 1:
        assert isinstance(destination, Vector)
        assert isinstance(source, Vector)
        values = [e.value(item, form.type) for item in source.items]
        for item, value in zip(destination.items, values, strict=True):
            e.write(item, value, form.type)
        return
    if form.type == "b128":
        raise NotNative("registers of 128 bits")
    if isinstance(destination, Vector):
        bits = 8 * type_size(form.type) // len(destination.items)
        whole = e.value(source, "b" + form.type[1:])
        for index, item in enumerate(destination.items):
            part = b.lshr(whole, b.like(whole, index * bits)) if index else whole
            e.write(item, b.trunc(part, vector(ir.IntType(bits))), f"b{bits}")
        return
    if isinstance(source, Vector):
        bits = 8 * type_size(form.type) // len(source.items)
        wide = lane_type("b" + form.type[1:])
        total = None
        for index, item in enumerate(source.items):
            part = b.zext(e.typed(item, ir.IntType(bits)), vector(wide))
            shifted = b.shl(part, b.like(part, index * bits)) if index else part
            total = shifted if total is None else b.or_(total, shifted)
        e.write(destination, total, "b" + form.type[1:])
        return
    e.write(destination, e.value(source, form.type), form.type)


def map_address(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``mapa``, which changes nothing in a launch without clusters."""
    e.write(i.operands[0], e.value(i.operands[1], form.type), form.type)


def nap(e: Emitter, i: Instruction, form: Form) -> None:
    """Write a nap, which only lets the time pass: as long as the lane that sleeps longest."""
    b = e.b
    wanted = b.select(e.flags(), e.value(i.operands[0], "u32"), b.const(I32, 0))
    longest = b.zext(b.reduced("umax", wanted), I64)
    b.set_word(e.context, Context.SLEPT, b.add(b.word(e.context, Context.SLEPT), longest))


def nothing(e: Emitter, i: Instruction, form: Form) -> None:
    """Write nothing for what changes no values, such as a prefetch."""


def policy(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``createpolicy``, whose result only tells caches what to keep."""
    e.write(i.operands[0], e.b.const(I64, 0), "b64")


def fence(e: Emitter, i: Instruction, form: Form) -> None:
    """Write nothing but what the checks note: all accesses happen in order."""
    if e.checking is not None:
        e.accessed = True
        e.checking.fence(i, e.mask)


LOWERINGS: dict[str, Any] = {
    "mov": mov, "mapa": map_address,
    "prefetch": nothing, "prefetchu": nothing, "discard": nothing, "applypriority": nothing, "membar": fence,
    "fence": fence, "createpolicy": policy, "griddepcontrol": nothing, "nanosleep": nap, "pmevent": nothing,
    "setmaxnreg": nothing,
}  # fmt: skip  # rows of a table
