"""Moves, packing, selections, and conversions of addresses between state spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.forms import Form
from ...syntax.instructions import Instruction, Vector
from ...syntax.types import type_size
from ...windows import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ..errors import NotNative
from ..layout import Context
from ..vectors import F32, I32, I64, follows_from_constants, lane_type, vector
from .floats import flush

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}


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


def cvta(e: Emitter, i: Instruction, form: Form) -> None:
    """Write the conversion of an address to or from a generic one."""
    b = e.b
    value = e.value(i.operands[1], form.type)
    window = _WINDOWS.get(form.space)
    if window is not None:
        value = (b.sub if "to" in form.words else b.add)(value, b.const(I64, window))
    e.write(i.operands[0], value, form.type)


def isspacep(e: Emitter, i: Instruction, form: Form) -> None:
    """Write the question whether a generic address lies in a state space."""
    b = e.b
    value = e.value(i.operands[1], "u64")
    if form.space in _WINDOWS:
        inside = b.compare("<", b.sub(value, b.const(I64, _WINDOWS[form.space])), WINDOW_BYTES)
    else:
        inside = b.compare("<", value, SHARED_WINDOW)
    e.write(i.operands[0], inside, "pred")


def selp(e: Emitter, i: Instruction, form: Form) -> None:
    """Write a selection by a predicate."""
    b = e.b
    x, y = (e.value(operand, form.type) for operand in i.operands[1:3])
    if b.flushes and not any(map(follows_from_constants, (x, y))) and type_size(form.type) == type_size("f32"):
        # A comparison and a selection of the same operands become one instruction, which would flush the result.
        x = b.hidden(x)
    e.write(i.operands[0], b.select(e.value(i.operands[3], "pred"), x, y), form.type)


def slct(e: Emitter, i: Instruction, form: Form) -> None:
    """Write a selection by the sign of a number."""
    b = e.b
    kind, chooser = form.types
    x, y = (e.value(operand, kind) for operand in i.operands[1:3])
    by = e.value(i.operands[3], chooser)
    if "ftz" in form.words:
        by = flush(b, by)
    chosen = b.floats("oge", by, b.const(F32, 0)) if chooser == "f32" else b.compare(">=", by, 0, True)
    e.write(i.operands[0], b.select(chosen, x, y), kind)


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
    "mov": mov, "cvta": cvta, "isspacep": isspacep, "selp": selp, "slct": slct, "mapa": map_address,
    "prefetch": nothing, "prefetchu": nothing, "discard": nothing, "applypriority": nothing, "membar": fence,
    "fence": fence, "createpolicy": policy, "griddepcontrol": nothing, "nanosleep": nap, "pmevent": nothing,
    "setmaxnreg": nothing,
}  # fmt: skip  # rows of a table
