"""Find the textures and surfaces that lanes use, fetch from textures, and access surfaces.

``fetch.(context, mask, site, handles, coordinates, results, row)`` fetches for each lane from the texture with its
handle. `coordinates` points to one vector of 32-bit words per coordinate, and `results` to one per channel.

``texture.COUNTED.SHIFT.SAMPLING(context, mask, site, object, coordinates, results, row)`` fetches for lanes from one
texture. Unless `COUNTED` is empty, it adds the fetch to the row of counts that `row` points to, for memory that
hardware keeps in tiles (tiled) or in order (linear). Unless `SHIFT` is empty, the checks examine the reads of the
texels; `SHIFT` is as in `checks`. `SAMPLING` is the name of a `Sampling`.
The function is compiled when a launch first meets a texture of that kind.

``surface.load.GEOMETRY.SIZE.COUNT.BOUNDARY(context, mask, site, handles, coordinates, elements)`` loads `COUNT`
adjacent elements of `SIZE` bytes for each lane, and ``surface.store`` stores them. `coordinates` points to one vector
of 32-bit words per coordinate, and `elements` to one vector per element. The result is 0, or a mask of lanes that
include one whose access is an error. `BOUNDARY` is the instruction's mode for accesses outside. With ``.SHIFT`` after
it, which is as in `checks`, the checks examine the accesses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from llvmlite import ir

from ...instructions.images import surfaces
from ...instructions.images.textures import CHANNELS, Sampling, filtered, group_size, located, sampling_of
from ...instructions.values import Value as Number
from ...instructions.values import value_type
from ..layout import LANES, Context, Count, HostCall, ObjectWord
from ..vectors import F64, I32, I64, PTR, Builder, integer_like, lane_type, vector
from .frame import (
    Spilled,
    alike,
    ask_about,
    begin,
    each_active,
    each_group,
    each_number,
    element,
    give_up,
    repeat,
    when,
)
from .hosts import kept_by

Value = Any

_CHANNELS = 4
_SECTOR_SHIFT = 5
_TILE_SHIFT = 4
# The number of words that describe the extent of a surface.
_EXTENTS = 5
_VECTOR_BYTES = 4 * LANES


# --- objects


def each_object(
    b: Builder, context: Value, mask: Value, site: Value, handles: Value, body: Callable[[Value, Value], None]
) -> None:
    """Generate a loop over the objects that lanes use; `body` gets an object and the mask of the lanes that use it.

    The function returns if Python finds no such object.
    """

    def use(lanes: Value) -> None:
        handle = b.extract_element(handles, b.trailing_zeros(lanes))
        body(_found(b, context, site, handle, lanes), lanes)

    each_group(b, mask, alike(b, handles), use)


def _found(b: Builder, context: Value, site: Value, handle: Value, lanes: Value) -> Value:
    """Return the object with a handle from the site's list; Python adds objects to the list."""
    first, kept = b.at(kept_by(b, context, site), 8), b.alloca(PTR)

    def is_other(place: Value) -> Value:
        other = b.icmp_unsigned("!=", b.word(place, ObjectWord.HANDLE), handle)
        return b.and_(other, b.icmp_unsigned("!=", b.word(place, ObjectWord.NEXT), I64(0)))

    (found,) = repeat(b, [b.load(first, typ=PTR)], is_other, lambda place: [b.pointer(place, ObjectWord.NEXT)])
    b.store(found, kept)
    with when(b, b.icmp_unsigned("==", b.word(found, ObjectWord.NEXT), I64(0)), likely=False):
        b.set_word(context, Context.ANSWER, handle)
        ask_about(b, context, HostCall.OBJECT, lanes, site)
        with when(b, b.icmp_unsigned("!=", b.word(context, Context.FAULT), I64(0)), likely=False):
            give_up(b)
        b.store(b.load(first, typ=PTR), kept)
    return b.load(kept, typ=PTR)


# --- textures


def build_fetch(module: ir.Module, name: str) -> None:
    """Build a fetch from the textures that the lanes use."""
    arguments = [PTR, I32, I32, vector(I64), PTR, PTR, PTR]
    b, (context, mask, site, handles, *given) = begin(module, name, ir.VoidType(), arguments)

    def fetch(texture: Value, lanes: Value) -> None:
        b.invoke_at(b.at(texture, 8 * ObjectWord.FETCH), context, lanes, site, texture, *given)

    each_object(b, context, mask, site, handles, fetch)
    b.ret_void()


def build_texture(module: ir.Module, name: str) -> None:
    """Build a fetch from one texture."""
    _, counted, shift, sampling = name.split(".", 3)
    how = sampling_of(sampling)
    arguments = [PTR, I32, I32, PTR, PTR, PTR, PTR]
    b, (context, lanes, site, texture, coordinates, results, row) = begin(module, name, ir.VoidType(), arguments)
    found = located(how, *_operands(b, how, texture, coordinates))
    offsets, rest = [offset.raw for offset in found[: how.corners]], found[how.corners :]
    # The lanes that read a texel for each corner, and don't get the border's color instead.
    readers = [lanes] * how.corners
    if how.has_border:
        readers = [b.and_(lanes, b.not_(b.bits(beyond.raw))) for beyond in rest[: how.corners]]
    start = b.splat(b.word(texture, ObjectWord.ADDRESS))
    places = [b.add(start, offset) for offset in offsets]
    if counted:
        sectors = [b.lshr(place, b.const(I64, _SECTOR_SHIFT)) for place in places]
        if counted == "tiled":
            pitch = b.splat(b.word(texture, ObjectWord.PITCH))
            sectors = [_tile(b, offset, pitch) for offset in offsets]
        _count(b, row, sectors, readers, lanes, group_size(how.geometry, how.filter == "index"))
    if shift:
        check = f"check.fetch.plain.global.{how.channel[1]}.{how.channels}.{shift}"
        for place, reading in zip(places, readers, strict=True):
            b.invoke(check, ir.VoidType(), context, place, reading, site)
    host = b.splat(b.word(texture, ObjectWord.HOST))
    texels = _texels(b, how, [b.add(host, offset) for offset in offsets])
    border = [_number(b, texture, ObjectWord.BORDER + channel) for channel in range(_CHANNELS)]
    for channel, value in enumerate(filtered(how, *texels, *rest, *border)):
        raw = b.as_integer(b.canonical(value.raw) if value.loose else value.raw)
        to = b.at(results, _VECTOR_BYTES * channel)
        b.store(b.select(b.truth(lanes), raw, b.load(to, typ=vector(I32), align=64)), to, align=64)
    b.ret_void()


def _operands(b: Builder, how: Sampling, texture: Value, coordinates: Value) -> list[Number]:
    """Return the operands of `located`."""
    given = how.operand_types[:-5]
    operands = []
    for number, kind in enumerate(given):
        place = b.at(coordinates, _VECTOR_BYTES * number)
        operands.append(Number(b, kind, b.load(place, typ=vector(lane_type(kind)), align=64)))
    extents = [_number(b, texture, word) for word in (ObjectWord.WIDTH, ObjectWord.HEIGHT, ObjectWord.DEPTH)]
    pitches = [b.splat(b.word(texture, word)) for word in (ObjectWord.PITCH, ObjectWord.SLICE_PITCH)]
    return [*operands, *extents, *(Number(b, "s64", pitch) for pitch in pitches)]


def _number(b: Builder, texture: Value, word: int) -> Number:
    return Number(b, "f64", b.splat(b.load(b.at(texture, 8 * word), typ=F64)))


def _texels(b: Builder, how: Sampling, addresses: list[Value]) -> list[Number]:
    """Return the channels of the texels at the addresses of each corner."""
    kind = CHANNELS[how.channel]
    word, size, channels = integer_like(lane_type(kind)), int(how.channel[1]), int(how.channels)
    kept = [Spilled(b, address) for address in addresses]
    found = [Spilled(b, ir.Constant(vector(word), ir.Undefined)) for _ in range(len(addresses) * channels)]

    def load(lane: Value) -> None:
        for number, row in enumerate(found):
            corner, channel = divmod(number, channels)
            place = b.inttoptr(b.add(kept[corner].get(lane), I64(size * channel)), PTR)
            row.put(lane, b.load(place, typ=word, align=size))

    each_number(b, LANES, load)
    return [Number(b, value_type(kind), b.as_type(row.whole, lane_type(kind))) for row in found]


def _tile(b: Builder, offset: Value, pitch: Value) -> Value:
    """Return the number of the sector that has a byte of a tiled texture; see `offsets_in_tiles`."""
    row = b.udiv(offset, pitch)
    column = b.sub(offset, b.mul(row, pitch))
    pieces = b.lshr(b.add(pitch, b.const(I64, 15)), b.const(I64, _TILE_SHIFT))
    return b.add(b.mul(b.lshr(row, b.const(I64, 1)), pieces), b.lshr(column, b.const(I64, _TILE_SHIFT)))


def _count(b: Builder, row: Value, sectors: list[Value], readers: list[Value], lanes: Value, size: int) -> None:
    """Add a fetch to a row of counts: the sectors of its texels for each group of lanes, and the groups."""
    known = b.alloca(I64)
    b.store(I64(0), known)

    def look(corner: int, lane: Value) -> None:
        sector = b.splat(b.extract_element(sectors[corner], lane))
        group = b.shl(I32((1 << size) - 1), b.and_(lane, I32(-size)))
        alike = [b.bits(b.icmp_unsigned("==", sectors[other], sector)) for other in range(corner + 1)]
        earlier = [b.and_(one, b.and_(mask, group)) for one, mask in zip(alike, readers, strict=False)]
        earlier[corner] = b.and_(earlier[corner], b.sub(b.shl(I32(1), lane), I32(1)))
        is_new = b.icmp_unsigned("==", reduce(b.or_, earlier), I32(0))
        b.store(b.add(b.load(known, typ=I64), b.zext(is_new, I64)), known)

    for corner, mask in enumerate(readers):
        each_active(b, mask, partial(look, corner))
    parts = [b.and_(lanes, I32(((1 << size) - 1) << first)) for first in range(0, LANES, size)]
    groups = reduce(b.add, [b.zext(b.icmp_unsigned("!=", part, I32(0)), I64) for part in parts])
    for word, count in ((Count.TIMES, I64(1)), (Count.FIRST, b.load(known, typ=I64)), (Count.SECOND, groups)):
        b.set_word(row, word, b.add(b.word(row, word), count))


# --- surfaces


def build_surface(module: ir.Module, name: str) -> None:
    """Build the accesses to the surfaces that the lanes use."""
    _, verb, geometry, width, length, boundary, *shift = name.split(".")
    size, count = int(width), int(length)
    kind = ir.IntType(8 * size)
    arguments = [PTR, I32, I32, vector(I64), PTR, PTR]
    b, (context, mask, site, handles, coordinates, elements) = begin(module, name, I32, arguments)
    types = surfaces.operand_types(geometry)[:-_EXTENTS]
    rows = [b.at(elements, size * LANES * index) for index in range(count)]

    def access(surface: Value, lanes: Value) -> None:
        words = [b.load(b.at(coordinates, _VECTOR_BYTES * n), typ=vector(I32), align=64) for n in range(len(types))]
        given = [Number(b, type, word) for type, word in zip(types, words, strict=True)]
        extents = [b.word(surface, ObjectWord.WIDTH + n) for n in range(_EXTENTS)]
        given += [Number(b, "s64", b.splat(extent)) for extent in extents]
        offset, outside = (found.raw for found in surfaces.located(geometry, size * count, *given))
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
