"""Lower instructions on the matrices of whole warps: ``wmma``, ``mma``, ``ldmatrix``, ``stmatrix``, ``movmatrix``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from ...compiling.forms import Form
from ...compiling.fragments import fragment_length, fragment_of, fragments_of, type_of_registers
from ...operations.matrices import (
    HALVES,
    ROW_BYTES,
    Fragment,
    RowPiece,
    first_places,
    lines,
    places,
    row_pieces,
    unit_of,
)
from ...syntax.instructions import Immediate, Instruction, Operand, Vector
from ...windows import SHARED_WINDOW, WINDOW_BYTES
from ..layout import LANES, Fault
from ..library.accesses import joined, loaded_type
from ..library.frame import fault_if
from ..library.matrices import elements_of, packed, vector_bytes, vectors_at
from ..vectors import I16, I32, I64, Builder, lane_type, vector
from .memory import located

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any

_ALL = 0xFFFFFFFF
# The matrices of `ldmatrix` and `stmatrix`: the number of rows, and of words per row.
_ROWS, _WORDS = 8, 4


def multiply_matrices(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``wmma.mma`` and ``mma`` to a call of the library, which reads the registers from memory."""
    b = e.b
    _whole_warp(e, i)
    fragments = fragments_of(form)
    pointers = []
    for operand, fragment in zip(i.operands, fragments, strict=True):
        kind = lane_type(type_of_registers(fragment.kind))
        pointers.append(b.alloca(ir.ArrayType(vector(kind), len(_items(operand)))))
    for operand, fragment, pointer in list(zip(i.operands, fragments, pointers, strict=True))[1:]:
        for number, value in enumerate(_registers(e, operand, fragment.kind)):
            b.store(value, b.at(pointer, vector_bytes(value.type) * number), align=64)
    e.call(f"mma.{form.opcode}", ir.VoidType(), *pointers)
    kind = vector(lane_type(type_of_registers(fragments[0].kind)))
    found = vectors_at(b, pointers[0], kind, len(_items(i.operands[0])))
    _write(e, i.operands[0], found, fragments[0].kind)


def move_matrix(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``movmatrix``, which transposes a matrix."""
    _whole_warp(e, i)
    e.write(i.operands[0], _moved(e.b, [e.value(i.operands[1], "b32")], HALVES, HALVES, True)[0], "b32")


# --- loads and stores of wmma


def access_units(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``wmma.load`` and ``wmma.store`` to an access for each unit of a lane, or a load of adjacent words."""
    b = e.b
    _whole_warp(e, i)
    fragment, by_columns = fragment_of(form), "col" in form.words
    size = unit_of(fragment, by_columns).itemsize
    space, addresses = _units(e, i, form, fragment, by_columns)
    site = e.sites.add(i, e.instance, int(form.row.access == "ld"))
    e.accessed = True
    if form.row.access == "st":
        registers = _registers(e, i.operands[1], fragment.kind)
        units = [one.raw for one in elements_of(b, registers, fragment)] if size < 4 else registers
        for unit, address in zip(units, addresses, strict=True):
            e.check("store", space, address, size, 1, site, [unit])
            e.call(f"store.{space}.{size}.1", ir.VoidType(), e.context, address, e.mask, I32(site), unit)
        return
    for address in addresses:
        e.check("load", space, address, size, 1, site)
    given, count = (e.context, addresses[0], e.mask, I32(site)), len(addresses)
    if space in ("global", "shared") and _are_adjacent(fragment, by_columns):
        loaded = e.call(f"run.{space}.{count}", loaded_type(size, count), *given)
        units = [b.extract_value(loaded, number) for number in range(count)]
    else:
        name, kind = f"load.{space}.{size}.1", loaded_type(size, 1)
        units = [e.call(name, kind, e.context, address, e.mask, I32(site)) for address in addresses]
    _write(e, i.operands[0], packed(b, units), fragment.kind)


def _are_adjacent(fragment: Fragment, by_columns: bool) -> bool:
    """Return whether the units of each lane are words that are adjacent in memory for every stride."""
    major, minor = lines(fragment, by_columns)
    following = (np.diff(minor, axis=0) * fragment.size == 4).all() and not np.diff(major, axis=0).any()
    return bool(following) and len(minor) > 1


def _units(e: Emitter, i: Instruction, form: Form, fragment: Fragment, by_columns: bool) -> tuple[str, list[Value]]:
    """Return the space of an access, and a vector of the lanes' addresses for each unit of the fragment."""
    b = e.b
    space, base = located(e, i.access, form.space)
    kind = base.type.element
    given = i.operands[2:]
    if not given:
        steps = b.const(kind, fragment.rows if by_columns else fragment.columns)
    elif isinstance(given[0], Immediate):
        steps = b.const(kind, given[0].value)
    else:
        steps = b.resized(e.value(given[0], "u32"), kind, False)
    size = fragment.size
    found = []
    for major, minor in zip(*lines(fragment, by_columns), strict=True):
        distance = b.add(b.mul(b.each(kind, (major * size).tolist()), steps), b.each(kind, (minor * size).tolist()))
        found.append(b.add(base, distance))
    return space, found


# --- rows of ldmatrix and stmatrix


def access_rows(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``ldmatrix`` and ``stmatrix``: each lane accesses the row whose address it gives.

    The lanes exchange words or halves after a load or before a store.
    """
    b, loads = e.b, form.row.access == "ld"
    _whole_warp(e, i)
    count, transposed = fragment_length(form, 0), "trans" in form.words
    site, rows = _rows(e, i, form, int(loads), count)
    e.observe("ldsm" if loads else "st", "shared", rows, ROW_BYTES, site, I32(_counted(count)))
    e.accessed = True
    if loads:
        if e.checking is not None:
            for piece in row_pieces(count, transposed):
                e.check("load", "shared", _address(e, rows, piece), piece.size, 1, site)
        loaded = e.call("load.shared.8.2", loaded_type(8, 2), e.context, rows, e.mask, I32(site))
        pair = [b.extract_value(loaded, index) for index in range(2)]
        _write(e, i.operands[0], _moved(b, pair, *_fragments(count, transposed), transposed), "b16")
        return
    registers = _registers(e, i.operands[1], "b16")
    for piece in row_pieces(count, transposed):
        value = registers[piece.register]
        if piece.size == 2:
            value = b.trunc(b.lshr(value, b.const(I32, 8 * piece.within)), vector(I16))
        e.check("store", "shared", _address(e, rows, piece), piece.size, 1, site, [value])
    held, wanted = reversed(_fragments(count, transposed))
    words = _moved(b, registers, held, wanted, transposed)
    e.call("store.shared.4.4", ir.VoidType(), e.context, rows, I32(_counted(count)), I32(site), *words)


def _rows(e: Emitter, i: Instruction, form: Form, place: int, count: int) -> tuple[int, Value]:
    """Return a site and the address of a row for each lane; lanes beyond the last row repeat earlier rows."""
    space, address = located(e, i.access, form.space)
    site = e.sites.add(i, e.instance, place)
    rows = _shuffled(e, address, np.arange(LANES) % (_ROWS * count))
    return site, rows if space == "shared" else _in_shared_memory(e, site, rows)


def _in_shared_memory(e: Emitter, site: int, addresses: Value) -> Value:
    """Return generic addresses as addresses in shared memory; end the launch if some are in another memory."""
    b = e.b
    offsets = b.sub(addresses, b.const(I64, SHARED_WINDOW))
    outside = b.bits(b.compare(">=", offsets, WINDOW_BYTES))
    fault_if(b, e.context, outside, Fault.WINDOW, site, addresses)
    return b.trunc(offsets, vector(I32))


def _counted(count: int) -> int:
    """Return the mask of the lanes whose addresses count."""
    return (1 << _ROWS * count) - 1


def _address(e: Emitter, rows: Value, piece: RowPiece) -> Value:
    """Return the address of a piece for each lane."""
    return e.b.add(_shuffled(e, rows, piece.lanes), e.b.each(I32, piece.offsets.tolist()))


def _fragments(count: int, transposed: bool) -> tuple[Fragment, Fragment]:
    """Return `count` matrices, one below the other, with a row in each lane, and as registers hold them."""
    if transposed:
        return Fragment("b16", _ROWS * count, 8, 8), Fragment("b16", _ROWS * count, 8, 2 * count, 2)
    return Fragment("s32", _ROWS * count, _WORDS, _WORDS), Fragment("s32", _ROWS * count, _WORDS, count, 1)


def _moved(b: Builder, registers: Sequence[Value], held: Fragment, wanted: Fragment, transposed: bool) -> list[Value]:
    """Return the registers of one fragment from those of another, with every 8 x 8 matrix transposed if requested."""
    numbers = places(wanted).T
    if transposed:
        row, column = np.divmod(numbers, wanted.columns)
        numbers = (row // _ROWS * _ROWS + column) * wanted.columns + row % _ROWS
    lanes, items = np.divmod(first_places(held)[numbers], held.count)
    element = ir.IntType(8 * held.size)
    each = registers[0].type.element.width // element.width
    half = max(1, len(registers) // 2)
    sides = [joined(b, list(side)) for side in (registers[:half], registers[-half:])]
    elements = [b.bitcast(side, vector(element, side.type.count * each)) for side in sides]
    chosen = (items // each * LANES + lanes) * each + items % each
    return packed(b, [b.shuffle_vector(*elements, b.each(I32, one)) for one in chosen.tolist()])


# --- what all share


def _whole_warp(e: Emitter, i: Instruction) -> None:
    """End the launch unless all lanes of the warp execute an instruction."""
    b = e.b
    partial = b.select(b.icmp_unsigned("==", e.mask, I32(_ALL)), I32(0), e.mask)
    fault_if(b, e.context, partial, Fault.PARTIAL, e.sites.add(i, e.instance))


def _shuffled(e: Emitter, value: Value, lanes: Any) -> Value:
    """Return the values of other lanes."""
    return e.b.shuffle_vector(value, value, e.b.each(I32, lanes.tolist()))


def _items(operand: Operand) -> tuple[Operand, ...]:
    assert isinstance(operand, Vector)
    return operand.items


def _registers(e: Emitter, operand: Operand, kind: str) -> list[Value]:
    """Return the registers of a fragment, as integers."""
    return [e.value(item, type_of_registers(kind)) for item in _items(operand)]


def _write(e: Emitter, operand: Operand, registers: Sequence[Value], kind: str) -> None:
    """Assign integers to the registers of a fragment."""
    for item, value in zip(_items(operand), registers, strict=True):
        e.write(item, value, type_of_registers(kind))
