"""Bulk copies (``cp.async.bulk``), and stores and reductions whose bytes a barrier counts (``st.async``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Access, Instruction
from ...syntax.types import type_size
from ..errors import UnsupportedInstruction
from ..layout import HostCall
from ..library.frame import ask_about, when
from ..vectors import I1, I32, I64
from .mbarriers import complete
from .memory import atomic, located, store

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any


def lowering(form: Form) -> Callable[..., None]:
    """Return the function that lowers an instruction; raise UnsupportedInstruction if there is none."""
    if form.row.access != "bulk":
        return counted
    if "tensor" in form.words and "multicast::cluster" not in form.words:
        return tensor_copy
    groups = {"commit_group", "wait_group"}.intersection(form.words)
    if not groups and ("multicast::cluster" in form.words or "global" not in form.spaces):
        raise UnsupportedInstruction("bulk copies within a cluster")
    return bulk_copy


def bulk_copy(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a copy between global and shared memory.

    Python makes the copies that are misaligned or out of bounds, and those that reduce.
    """
    if "commit_group" in form.words or "wait_group" in form.words:
        if e.checking is not None:
            raise UnsupportedInstruction("checks of bulk copies from shared memory")
        return
    if e.checking is not None and "bulk_group" in form.words:
        raise UnsupportedInstruction("checks of bulk copies from shared memory")
    b = e.b
    to, source, size, *rest = i.operands
    assert isinstance(to, Access)
    assert isinstance(source, Access)
    (_, written), (_, read) = located(e, to, form.spaces[0]), located(e, source, form.spaces[1])
    inwards = form.spaces[1] == "global"
    sizes = e.value(size, "u32")
    barrier = located(e, rest[0], "shared") if rest and isinstance(rest[0], Access) else None
    site = e.sites.add(i, e.instance)
    e.accessed = e.sites.calls = True
    if e.checking is not None:
        assert barrier is not None
        e.checking.bulk_copy(e.sites.add(i, e.instance, 1), e.mask, written, read, sizes, barrier[1])
    places = (written, read) if inwards else (read, written)
    copied = I1(0)
    if not form.types:
        copied = e.call(f"bulk.{'shared' if inwards else 'global'}", I1, e.context, *places, sizes, e.mask)
    with when(b, b.not_(copied), likely=False):
        operands = (written, read, sizes, *([] if barrier is None else [barrier[1]]))
        words = (b.resized(values, I64, False) for values in operands)
        ask_about(b, e.context, HostCall.BULK, e.mask, site, *words)
    if barrier is not None:
        mask = b.select(copied, e.mask, I32(0))
        complete(e, *barrier, e.sites.add(i, e.instance, 3), b.resized(sizes, I64, False), mask)


def tensor_copy(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a tensor copy to a call of Python."""
    if e.checking is not None:
        raise UnsupportedInstruction("checks of tensor copies")
    b = e.b
    loads = form.spaces[0] == "shared"
    shared, tensor = i.operands[:2] if loads else i.operands[1::-1]
    assert isinstance(tensor, Access)
    assert isinstance(shared, Access)
    assert tensor.coordinates is not None
    values = [located(e, tensor, "generic")[1], located(e, shared, "shared")[1]]
    if loads:
        barrier = i.operands[2]
        assert isinstance(barrier, Access)
        values.append(located(e, barrier, "shared")[1])
    values = [b.resized(value, I64, False) for value in values]
    values += [b.resized(e.value(item, "s32"), I64, True) for item in tensor.coordinates.items]
    site = e.sites.add(i, e.instance)
    e.accessed = e.sites.calls = True
    ask_about(b, e.context, HostCall.TENSOR, e.mask, site, *values)


def counted(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``st.async`` and ``red.async``."""
    if e.checking is not None:
        raise UnsupportedInstruction("checks of stores whose bytes a barrier counts")
    (store if form.row.access == "st" else atomic)(e, i, form)
    barrier = i.operands[-1]
    assert isinstance(barrier, Access)
    space, address = located(e, barrier, form.space)
    site = e.sites.add(i, e.instance, len(i.operands) - 1)
    complete(e, space, address, site, e.b.const(I64, type_size(form.type) * form.vector), e.mask)
