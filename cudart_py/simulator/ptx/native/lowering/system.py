"""Calls of the system, and asynchronous copies, which happen at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.forms import Form
from ...syntax.instructions import Access, Immediate, Instruction
from ..errors import NotNative
from ..layout import Context
from ..library.accesses import loaded_type
from ..system import CALLBACK, SLOT
from ..vectors import I32, I64
from .memory import located

if TYPE_CHECKING:
    from ..emitter import Emitter

__all__ = ["LOWERINGS"]

# The values that go through the exchange; the last one is the result.
RESULT = 7


def system_call(e: Emitter, i: Instruction, form: Form) -> None:
    """Write a call of printf, the heap or a failed assertion, which Python answers."""
    b = e.b
    passed = e.code.call_sites[id(i)]
    exchange = b.pointer(e.context, Context.EXCHANGE)
    for index, pieces in enumerate(passed.arguments):
        if len(pieces) != 1 or index >= RESULT:
            raise NotNative("a call of the system with a structure")
        ((_, slot),) = pieces.items()
        b.store(b.as_integer(e.register(slot)), b.at(exchange, index * SLOT), align=64)
    site = I32(e.sites.add(i, e.instance))
    e.accessed = e.sites.calls = True
    function = b.declared(CALLBACK, ir.VoidType(), [I64, I32, I32])
    b.call(function, [b.ptrtoint(e.context, I64), site, e.mask])
    if passed.results and passed.results[0]:
        (((_, size), slot),) = passed.results[0].items()
        value = b.load(b.at(exchange, RESULT * SLOT), typ=ir.VectorType(ir.IntType(8 * size), 32), align=64)
        e.write_slot(slot, value, f"b{8 * size}")


def copy(e: Emitter, i: Instruction, form: Form) -> None:
    """Write ``cp.async``: a copy at once; groups of copies and waits for them do nothing."""
    b = e.b
    if "wait_group" in form.words or "commit_group" in form.words or "wait_all" in form.words:
        return
    if "mbarrier" in form.words:
        raise NotNative("cp.async.mbarrier")
    if e.checking is not None:
        raise NotNative("cp.async that checks watch")
    operands = i.operands[:-1] if "L2::cache_hint" in form.words else i.operands
    to, source, size = operands[:3]
    assert isinstance(to, Access)
    assert isinstance(source, Access)
    assert isinstance(size, Immediate)
    if len(operands) > 3 and operands[3] != size:
        raise NotNative("cp.async that fills with zeros")
    element, count = (4, 1) if size.value == 4 else (8, size.value // 8)
    e.accessed = True
    space, address = located(e, source, "global")
    site = e.sites.add(i, e.instance)
    e.observe("ld", space, address, size.value, site)
    name = f"load.{space}.{element}.{count}"
    loaded = e.call(name, loaded_type(element, count), e.context, address, e.mask, I32(site))
    values = [loaded] if count == 1 else [b.extract_value(loaded, index) for index in range(count)]
    space, address = located(e, to, "shared")
    site = e.sites.add(i, e.instance)
    e.observe("st", space, address, size.value, site)
    e.call(f"store.{space}.{element}.{count}", ir.VoidType(), e.context, address, e.mask, I32(site), *values)


LOWERINGS: dict[str, Any] = {"call": system_call, "cp": copy}
