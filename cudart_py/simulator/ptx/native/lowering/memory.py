"""Loads, stores and atomics, accesses to textures and surfaces, system calls, and instructions without values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.emitters.memory import is_runtime_function
from ...compiling.forms import Form
from ...syntax.instructions import Access, Instruction, Register, Symbol, items_of
from ...syntax.types import type_size
from ..errors import UnsupportedInstruction
from ..layout import LANES, Context
from ..library.accesses import loaded_type
from ..vectors import I32, I64, PTR, integer_like, lane_type, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any

_CHANNELS = 4
_VECTOR_BYTES = 4 * LANES


def located(e: Emitter, access: Access, space: str) -> tuple[str, Value]:
    """Return the space of an access, and each lane's address with its offset."""
    b, base = e.b, access.base
    space = e.code.space_of(access, space, e.environment.shared_addresses)
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
    destination, access = i.operands[0], i.access
    items = items_of(destination)
    kind, size = form.type, type_size(form.type)
    if form.space == "param":
        if e.code.is_parameter(access):
            for item, slot in zip(items, e.code.parameter_slots(i), strict=True):
                e.write(item, e.viewed(e.register(slot), lane_type(kind)), kind)
            return
        if isinstance(access.base, Symbol) and access.base.name in e.environment.parameters:
            start = e.environment.parameters[access.base.name] + access.base.offset + access.offset
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
        e.check("load", space, address, size, count, site)
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
    access, source = i.access, i.operands[1]
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
    access, sources = i.access, i.operands[1 + returns :]
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


# --- textures and surfaces


def texture(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``tex`` to a call of the library, which finds the texture and calls the function for its kind."""
    b = e.b
    access = i.access
    result, coordinate = form.types
    site = e.sites.add(i, e.instance, 1)
    handles = e.value(access.base, "u64")
    coordinates = _coordinates(e, access, form, coordinate)
    results = b.alloca(ir.ArrayType(vector(I32), _CHANNELS))
    row = ir.Constant(PTR, None) if e.counting is None else e.counting.row(site, "ld", "texture")
    e.accessed = e.sites.calls = True
    e.call("fetch.", ir.VoidType(), e.context, e.mask, I32(site), handles, coordinates, results, row)
    for channel, item in enumerate(items_of(i.operands[0])):
        value = b.load(b.at(results, _VECTOR_BYTES * channel), typ=vector(I32), align=64)
        e.write(item, b.as_type(value, lane_type(result)), result)


def _coordinates(e: Emitter, access: Access, form: Form, ptx_type: str) -> Value:
    """Return the pointer to the coordinates, preceded by the layer if there is one: one vector of words for each."""
    assert access.coordinates is not None
    kinds = form.coordinate_types(ptx_type)
    place = e.b.alloca(ir.ArrayType(vector(I32), len(kinds)))
    for number, (item, kind) in enumerate(zip(access.coordinates.items, kinds, strict=False)):
        e.b.store(e.b.as_integer(e.value(item, kind)), e.b.at(place, _VECTOR_BYTES * number), align=64)
    return place


def surface(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``suld.b`` and ``sust.b``, which load or store one or more adjacent elements."""
    b, loads = e.b, form.row.name == "suld"
    access = i.access
    items, kind = items_of(i.operands[0 if loads else 1]), vector(lane_type(form.type))
    elements = b.alloca(ir.ArrayType(kind, len(items)))
    places = [b.at(elements, LANES * type_size(form.type) * number) for number in range(len(items))]
    if not loads:
        for item, place in zip(items, places, strict=True):
            b.store(e.value(item, form.type), place, align=32)
    site, verb = e.sites.add(i, e.instance, int(loads)), "load" if loads else "store"
    handles, coordinates = e.value(access.base, "u64"), _coordinates(e, access, form, "s32")
    name = f"surface.{verb}.{form.geometry}.{type_size(form.type)}.{len(items)}.{form.boundary}"
    if e.checking is not None:
        name += f".{e.sites.shift}"
    wrong = e.call(name, I32, e.context, e.mask, I32(site), handles, coordinates, elements)
    # Python reports what is wrong.
    e.execute(i, wrong, condition=b.icmp_unsigned("!=", wrong, I32(0)))
    if loads:
        for item, place in zip(items, places, strict=True):
            e.write(item, b.load(place, typ=kind, align=32), form.type)


def system_call(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a call to printf, the heap's functions or the handler of a failed assertion, which Python answers."""
    target = i.call.target
    assert isinstance(target, Symbol)
    if is_runtime_function(target.name):
        raise UnsupportedInstruction("a call of the runtime's functions for kernels")
    e.execute(i)
    e.take_results(i)


# --- sleeping, and instructions that have no effect on values


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
