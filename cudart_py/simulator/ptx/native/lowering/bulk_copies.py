"""Bulk copies (``cp.async.bulk``), and stores and reductions whose bytes a barrier counts (``st.async``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...compiling.forms import Form
from ...syntax.instructions import Access, Instruction
from ...syntax.types import type_size
from ..errors import UnsupportedInstruction
from ..vectors import I1, I32, I64
from .mbarriers import complete
from .memory import atomic, located, store

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any


def lowering(form: Form) -> Callable[..., None]:
    """Return the function that lowers an instruction."""
    if form.row.access != "bulk":
        return counted
    if {"commit_group", "wait_group"}.intersection(form.words):
        return group
    simple = "global" in form.spaces and {"tensor", "multicast::cluster"}.isdisjoint(form.words)
    return bulk_copy if simple else executed


def group(e: Emitter, i: Instruction, form: Form) -> None:
    """Generate no code for the end of a group of copies, or a wait for groups, because copies are made at once."""
    if e.checking is not None:
        raise UnsupportedInstruction("checks of bulk copies from shared memory")


def bulk_copy(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a copy between global and shared memory.

    Python makes the copies that are misaligned or out of bounds, and those that reduce.
    """
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
    if e.checking is not None:
        assert barrier is not None
        e.checking.bulk_copy(e.sites.add(i, e.instance, 1), e.mask, written, read, sizes, barrier[1])
    places = (written, read) if inwards else (read, written)
    copied = I1(0)
    if not form.types:
        copied = e.call(f"bulk.{'shared' if inwards else 'global'}", I1, e.context, *places, sizes, e.mask)
    e.execute(i, condition=b.not_(copied))
    if barrier is not None:
        mask = b.select(copied, e.mask, I32(0))
        complete(e, *barrier, e.sites.add(i, e.instance, 3), b.resized(sizes, I64, False), mask)


def executed(e: Emitter, i: Instruction, form: Form) -> None:
    """Let Python execute a copy of a box or within a cluster, or a change of a tensor map."""
    if e.checking is not None:
        raise UnsupportedInstruction("checks of tensor copies and of bulk copies within a cluster")
    e.execute(i)


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


LOWERINGS: dict[str, Any] = {"tensormap": executed}
