"""Fetches from textures, and accesses to surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.forms import Form
from ...syntax.instructions import Access, Instruction, Vector, items_of
from ...syntax.types import type_size
from ..layout import LANES
from ..vectors import I32, lane_type, vector

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any

_CHANNELS = 4
_VECTOR_BYTES = 4 * LANES


def fetch(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``tex`` to a call of the library, which finds the texture and calls the function for its kind."""
    b = e.b
    destination, access = i.operands[:2]
    assert isinstance(destination, Vector)
    assert isinstance(access, Access)
    result, coordinate = form.types
    site = e.sites.add(i, e.instance, 1)
    handles = e.value(access.base, "u64")
    coordinates = _coordinates(e, access, form, coordinate)
    results = b.alloca(ir.ArrayType(vector(I32), _CHANNELS))
    row = e.count_row(site, "ld", "texture")
    watchers = [name for name, watches in (("counted", row), ("checked", e.checking)) if watches is not None]
    name = ".".join(["fetch", *(watchers or ["plain"])])
    given = [handles, coordinates, results, *([] if row is None else [row])]
    e.accessed = e.sites.calls = True
    e.call(name, ir.VoidType(), e.context, e.mask, I32(site), *given)
    for channel, item in enumerate(destination.items):
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


def load_surface(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``suld.b``, which loads one or more adjacent elements."""
    b = e.b
    destination, access = i.operands
    assert isinstance(access, Access)
    items, kind = items_of(destination), vector(lane_type(form.type))
    place = b.alloca(ir.ArrayType(kind, len(items)))
    _access(e, i, form, "load", access, place, len(items))
    for number, item in enumerate(items):
        e.write(item, b.load(b.at(place, _row_bytes(form) * number), typ=kind, align=32), form.type)


def store_surface(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``sust.b``, which stores one or more adjacent elements."""
    b = e.b
    access, source = i.operands
    assert isinstance(access, Access)
    items = items_of(source)
    place = b.alloca(ir.ArrayType(vector(lane_type(form.type)), len(items)))
    for number, item in enumerate(items):
        b.store(e.value(item, form.type), b.at(place, _row_bytes(form) * number), align=32)
    _access(e, i, form, "store", access, place, len(items))


def _access(e: Emitter, i: Instruction, form: Form, verb: str, access: Access, elements: Value, count: int) -> None:
    """Call the library to move elements between a surface and memory, where there is one vector per element."""
    site = e.sites.add(i, e.instance, int(verb == "load"))
    handles, coordinates = e.value(access.base, "u64"), _coordinates(e, access, form, "s32")
    name = f"surface.{verb}.{form.geometry}.{type_size(form.type)}.{count}.{form.boundary}"
    if e.checking is not None:
        name += f".{e.sites.shift}"
    wrong = e.call(name, I32, e.context, e.mask, I32(site), handles, coordinates, elements)
    # Python reports what is wrong.
    e.execute(i, wrong, condition=e.b.icmp_unsigned("!=", wrong, I32(0)))


def _row_bytes(form: Form) -> int:
    return LANES * type_size(form.type)


LOWERINGS: dict[str, Any] = {"tex": fetch, "suld": load_surface, "sust": store_surface}
