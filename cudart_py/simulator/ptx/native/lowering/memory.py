"""Loads, stores and atomics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.forms import Form
from ...syntax.instructions import Access, Instruction, Register, Symbol, items_of
from ...syntax.types import type_size
from ..errors import UnsupportedInstruction
from ..layout import Context
from ..library.accesses import loaded_type
from ..vectors import I32, I64, integer_like, lane_type, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any


def located(e: Emitter, access: Access, space: str) -> tuple[str, Value]:
    """Return the space of an access, and each lane's address with its offset."""
    b, base = e.b, access.base
    space = e.code.space_of(access, space, e.program.entry.shared_offsets)
    element = I32 if space == "shared" else I64
    if isinstance(base, Register):
        slot = e.code.slot(base.name)
        value = e.typed(base, I64 if e.code.types[slot] == "b64" else I32)
        address = b.resized(value, element, False)
    else:
        address = e.typed(base, element)
    offset = access.offset & (1 << element.width) - 1
    return space, b.add(address, b.const(element, offset)) if offset else address


def load(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a load; a load of a parameter at a known offset needs no check of its address."""
    b = e.b
    destination, access = i.operands[0], i.operands[1]
    assert isinstance(access, Access)
    items = items_of(destination)
    kind, size = form.type, type_size(form.type)
    if form.space == "param":
        if e.code.is_parameter(access):
            for item, slot in zip(items, e.code.parameter_slots(i), strict=True):
                e.write(item, e.viewed(e.register(slot), lane_type(kind)), kind)
            return
        offsets = {parameter.name: parameter.offset for parameter in e.program.entry.params}
        if isinstance(access.base, Symbol) and access.base.name in offsets:
            start = offsets[access.base.name] + access.base.offset + access.offset
            for index, item in enumerate(items):
                place = b.at(b.pointer(e.context, Context.PARAMETERS), start + index * size)
                e.write(item, b.splat(b.load(place, typ=lane_type(kind), align=1)), kind)
            return
    space, address = located(e, access, form.space)
    size, count = _elements(size, len(items))
    site = e.sites.add(i, e.instance, 1)
    e.accessed = True
    if form.space != "const":
        e.observe("ld", space, address, size * count, site)
        if e.checking is not None:
            e.check(e.checking.kind_of_load(i, e.code), space, address, size, count, site)
    else:
        if isinstance(access.base, Register):
            # Counted only if the address is in a register: in hardware, a constant at a fixed address is an
            # instruction's operand.
            e.observe("ld", "const", address, size * count, site)
        if e.checking is not None:
            e.checking.constant(address, size, count, site, e.mask)
    name = f"load.{space}.{size}.{count}"
    result = e.call(name, loaded_type(size, count), e.context, address, e.mask, I32(site))
    values = [result] if count == 1 else [b.extract_value(result, index) for index in range(count)]
    if kind == "b128":
        values = [b.joined(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
    for item, value in zip(items, values, strict=True):
        e.write(item, b.as_type(value, lane_type(kind)), kind)


def _elements(size: int, count: int) -> tuple[int, int]:
    """Return the size and number of the elements that an access moves: elements of 128 bits are moved in halves."""
    return (8, 2 * count) if size == 16 else (size, count)


def store(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a store; the parameters of a call are kept in register slots instead of memory."""
    b = e.b
    access, source = i.operands[0], i.operands[1]
    assert isinstance(access, Access)
    items = items_of(source)
    kind, size = form.type, type_size(form.type)
    if form.space == "param" and e.code.is_parameter(access):
        for item, slot in zip(items, e.code.parameter_slots(i), strict=True):
            e.write_slot(slot, e.value(item, kind), kind)
        return
    if form.space == "param":
        raise UnsupportedInstruction("a store to a parameter")
    values = [b.as_integer(e.value(item, kind)) for item in items]
    if kind == "b128":
        values = [half for value in values for half in b.halves(value)]
    space, address = located(e, access, form.space)
    size, count = _elements(size, len(items))
    site = e.sites.add(i, e.instance)
    e.accessed = True
    e.observe("st", space, address, size * count, site)
    e.check("store", space, address, size, count, site, values)
    e.call(f"store.{space}.{size}.{count}", ir.VoidType(), e.context, address, e.mask, I32(site), *values)


def atomic(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``atom`` and ``red``; each element of a vector is a separate atomic."""
    b = e.b
    returns = form.row.access == "atom"
    access, *sources = i.operands[1:] if returns else i.operands
    assert isinstance(access, Access)
    kind, size = form.type, type_size(form.type)
    space, address = located(e, access, form.space)
    operands = sources[:2] if form.operation == "cas" else sources[:1]
    e.sites.atomics = True
    site = e.sites.add(i, e.instance, int(returns))
    e.accessed = True
    e.observe(form.row.access, space, address, size * form.vector, site)
    element = integer_like(lane_type(kind))
    name = f"atom.{space}.{form.operation}.{kind}"
    results = items_of(i.operands[0]) if returns else ()
    # All operands are read before the first result is written, because that may be a register of an operand.
    values = [[b.as_integer(e.value(item, kind)) for item in items_of(operand)] for operand in operands]
    former = []
    for index, one in enumerate(zip(*values, strict=True)):
        place = b.add(address, b.like(address, size * index)) if index else address
        e.check("atomic", space, place, size, 1, site)
        former.append(e.call(name, vector(element), e.context, place, e.mask, I32(site), *one))
    for item, value in zip(results, former, strict=False):
        e.write(item, b.as_type(value, lane_type(kind)), kind)


LOWERINGS: dict[str, Any] = {"ld": load, "ldu": load, "st": store, "atom": atomic, "red": atomic}
