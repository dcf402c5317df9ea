"""Load from surfaces, and store to them.

``surface.load.GEOMETRY.SIZE.COUNT.BOUNDARY(context, mask, site, handles, coordinates, elements)`` loads `COUNT`
adjacent elements of `SIZE` bytes for each lane, and ``surface.store`` stores them. `coordinates` points to one vector
of 32-bit words per coordinate, and `elements` to one vector per element. The result is 0, or a mask of lanes that
include one whose access is an error. `BOUNDARY` is the instruction's mode for accesses outside. With ``.SHIFT`` after
it, which is as in `checks`, the checks examine the accesses.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....instructions.images.surfaces import located, operand_types
from ....instructions.values import Value as Number
from ...layout import LANES, Context, ObjectWord
from ...vectors import I32, I64, PTR, vector
from ..frame import Spilled, begin, each_active, element, when
from .objects import each_object

Value = Any

_EXTENTS = 5
_VECTOR_BYTES = 4 * LANES


def build_surface(module: ir.Module, name: str) -> None:
    """Build the accesses to the surfaces that the lanes use."""
    _, verb, geometry, width, length, boundary, *shift = name.split(".")
    size, count = int(width), int(length)
    kind = ir.IntType(8 * size)
    arguments = [PTR, I32, I32, vector(I64), PTR, PTR]
    b, (context, mask, site, handles, coordinates, elements) = begin(module, name, I32, arguments)
    types = operand_types(geometry)[:-_EXTENTS]
    rows = [b.at(elements, size * LANES * index) for index in range(count)]

    def access(surface: Value, lanes: Value) -> None:
        words = [b.load(b.at(coordinates, _VECTOR_BYTES * n), typ=vector(I32), align=64) for n in range(len(types))]
        given = [Number(b, type, word) for type, word in zip(types, words, strict=True)]
        extents = [b.word(surface, ObjectWord.WIDTH + n) for n in range(_EXTENTS)]
        given += [Number(b, "s64", b.splat(extent)) for extent in extents]
        offset, outside = (found.raw for found in located(geometry, size * count, *given))
        beyond = b.bits(outside)
        wrong = b.bits(b.compare("!=", b.and_(offset, b.const(I64, size * count - 1)), 0))
        if boundary == "trap":
            wrong = b.or_(wrong, beyond)
        with when(b, b.icmp_unsigned("!=", b.and_(wrong, lanes), I32(0)), likely=False):
            b.ret(lanes)
        kept = Spilled(b, b.add(offset, b.splat(b.word(surface, ObjectWord.HOST))))
        taking = b.and_(lanes, b.not_(beyond)) if boundary == "zero" else lanes
        if shift:
            place = b.add(offset, b.splat(b.word(surface, ObjectWord.ADDRESS)))
            stored = [] if verb == "load" else [b.load(row, typ=vector(kind), align=32) for row in rows]
            check = f"check.{'fetch' if verb == 'load' else 'store'}.plain.global.{size}.{count}.{shift[0]}"
            b.invoke(check, ir.VoidType(), context, place, taking, site, *stored)
            # A check that raises a doubt may not have saved the memory.
            with when(b, b.icmp_unsigned("!=", b.word(context, Context.FAULT), I64(0)), likely=False):
                b.ret(I32(0))
        if verb == "load" and boundary == "zero":
            for row in rows:
                before = b.load(row, typ=vector(kind), align=32)
                b.store(b.select(b.truth(lanes), b.const(kind, 0), before), row, align=32)

        def move(lane: Value) -> None:
            number = b.zext(lane, I64)
            start = kept.get(number)
            for index, row in enumerate(rows):
                place, register = b.inttoptr(b.add(start, I64(size * index)), PTR), element(b, row, number, kind)
                source, to = (place, register) if verb == "load" else (register, place)
                b.store(b.load(source, typ=kind, align=size), to, align=size)

        each_active(b, taking, move)

    each_object(b, context, mask, site, handles, access)
    b.ret(I32(0))
