"""Products of matrices that are distributed over the lanes of a warp.

``mma.OPCODE(d, a, b, c)`` computes what an instruction with that opcode does. Its arguments are pointers to the
registers of each fragment, one vector of 32 lanes per register. Each iteration of a loop computes one element of the
result per lane. Tables in memory contain the factors of each element, in the lanes that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from ...compiling.fragments import fragments_of
from ...compiling.opcode_table.opcodes import find_forms
from ...instructions import matrices
from ...instructions.matrices import Factor
from ...instructions.values import Value as Typed
from ...instructions.values import value_type
from ...operations.matrices import Fragment, first_places, places
from ..layout import LANES
from ..vectors import F32, F64, I32, I64, PTR, Builder, integer_like, lane_type, vector
from .frame import begin, each_number, element, when

Value = Any
_REGISTER = 32


def build_product(module: ir.Module, name: str) -> None:
    """Build the product for one opcode."""
    b, (d, *factors, c) = begin(module, name, ir.VoidType(), [PTR] * 4)
    form = find_forms(name.partition(".")[2])[0]
    wanted, rows, columns, last = fragments_of(form)
    rounding = next((word for word in form.modifiers if word in ("rz", "rm", "rp")), "rn")
    clamps = "satfinite" in form.modifiers
    row, column = np.divmod(places(wanted).T[:, None], wanted.columns)
    depth = np.arange(rows.columns)[:, None]
    tables = [
        _stored_factors(b, factors[0], rows, row * rows.columns + depth),
        _stored_factors(b, factors[1], columns, depth * columns.columns + column),
    ]
    kinds = wanted.kind, rows.kind, last.kind
    added = elements_of(b, _loaded(b, c, last), last)
    kept, kind = _stored(b, [one.raw for one in added]), added[0].raw.type
    result = vector(lane_type(value_type(wanted.kind)))
    results = b.alloca(ir.ArrayType(result, wanted.count))

    def multiply(number: Value) -> None:
        left, right = (factors_of(number) for factors_of in tables)
        term = added[0].of(b.load(element(b, kept, number, kind), typ=kind, align=64))
        found, suspect = matrices.element(kinds, left, right, term, rounding=rounding, clamps=clamps)
        place = element(b, results, number, result)
        b.store(_raw(b, found), place, align=64)
        if suspect is not None:
            with when(b, b.icmp_unsigned("!=", b.bits(suspect.raw), I32(0)), likely=False):
                plain = _raw(b, matrices.plain_element(kinds, left, right, term))
                b.store(b.select(suspect.raw, plain, b.load(place, typ=result, align=64)), place, align=64)

    each_number(b, wanted.count, multiply)
    for number, register in enumerate(packed(b, vectors_at(b, results, result, wanted.count))):
        b.store(register, b.at(d, vector_bytes(register.type) * number), align=64)
    b.ret_void()


def _raw(b: Builder, found: Typed) -> Value:
    return b.canonical(found.raw) if found.loose else found.raw


def _stored_factors(
    b: Builder, pointer: Value, fragment: Fragment, wanted: NDArray[Any]
) -> Callable[[Value], list[Factor]]:
    """Store the factors in a fragment, and return a function that loads the factors of an element of the result.

    `wanted` contains the index of the matrix element that each lane needs; its shape is (elements of the result, depth,
    lanes). Factors that are the same for all lanes of each half of a warp are loaded as scalars and broadcast. Others
    are stored as vectors, which elements of the result with the same factors share.
    """
    elements = [matrices.factor(fragment.kind, one) for one in elements_of(b, _loaded(b, pointer, fragment), fragment)]
    columns = list(zip(*elements, strict=True))
    lanes, items = np.divmod(first_places(fragment)[wanted], fragment.count)
    # The place of each lane's factor among the vectors of all elements, by element and lane.
    places = (items * LANES + lanes).reshape(*wanted.shape[:2], 2, LANES // 2)
    offsets, steps = places[..., 0], np.diff(places[..., 0], axis=0)
    stored: list[Value]
    if (places == offsets[..., None]).all() and (steps == steps.flat[0]).all():
        stored = [_stored(b, [one.raw for one in column]) for column in columns]

        def load(place: Value, kind: ir.VectorType, number: Value) -> list[Value]:
            element, size = kind.element, integer_like(kind.element).width // 8
            start = b.at(place, b.mul(b.zext(number, I64), I64(int(steps.flat[0]) * size)))
            found = []
            for pair in offsets[0].tolist():
                words = [b.load(b.at(start, size * offset), typ=element, align=size) for offset in pair]
                halves = [b.splat(word, LANES // 2) for word in words]
                found.append(b.shuffle_vector(*halves, b.each(I32, range(LANES))))
            return found

    else:
        lines = [one.tobytes() for one in wanted]
        different = list(dict.fromkeys(lines))
        chosen = [one for line in different for one in wanted[lines.index(line)]]
        stored = [
            _stored(b, [gathered(b, [e.raw for e in column], fragment, one) for one in chosen]) for column in columns
        ]
        order = b.each(I64, [different.index(line) for line in lines])

        def load(place: Value, kind: ir.VectorType, number: Value) -> list[Value]:
            line = b.mul(b.extract_element(order, number), I64(wanted.shape[1] * vector_bytes(kind)))
            return vectors_at(b, b.at(place, line), kind, wanted.shape[1])

    def factors(number: Value) -> list[Factor]:
        found = [
            [column[0].of(one) for one in load(place, column[0].raw.type, number)]
            for place, column in zip(stored, columns, strict=True)
        ]
        return [Factor(*one) for one in zip(*found, strict=True)]

    return factors


def gathered(b: Builder, raws: Sequence[Value], fragment: Fragment, wanted: NDArray[Any]) -> Value:
    """Return a vector that contains, for each lane, the matrix element with the index in `wanted`.

    `raws` are the vectors of the fragment's elements.
    """
    lanes, items = np.divmod(first_places(fragment)[wanted], fragment.count)
    result: Value = None
    for item in np.unique(items):
        chosen = items == item
        if result is None:
            result = b.shuffle_vector(raws[item], raws[item], b.each(I32, np.where(chosen, lanes, 0).tolist()))
        else:
            # The lanes of the second vector follow those of the first.
            numbers = np.where(chosen, LANES + lanes, np.arange(LANES))
            result = b.shuffle_vector(result, raws[item], b.each(I32, numbers.tolist()))
    return result


def _loaded(b: Builder, pointer: Value, fragment: Fragment) -> list[Value]:
    """Return the registers of a fragment from memory, as integers."""
    return vectors_at(b, pointer, vector(I64 if fragment.size == 8 else I32), fragment.registers)


def elements_of(b: Builder, registers: Sequence[Value], fragment: Fragment) -> list[Typed]:
    """Return the elements in the registers of a fragment, as bit patterns or numbers."""
    size = fragment.size
    type = value_type(fragment.kind)
    found = []
    for raw in registers:
        register = Typed(b, f"u{raw.type.element.width}", raw)
        parts = [register >> 8 * size * part for part in range(max(1, 4 // size))]
        found += [part.to(f"u{8 * size}").read_as(type) for part in parts]
    return found


def packed(b: Builder, values: Sequence[Value]) -> list[Value]:
    """Pack the elements of a result into registers, as integers."""
    width = values[0].type.element.width if values[0].type.element not in (F32, F64) else _REGISTER
    each = max(1, _REGISTER // width)
    registers = []
    for first in range(0, len(values), each):
        register = b.as_integer(values[first])
        for part in range(1, each):
            wide = [b.resized(one, I32, False) for one in (register, values[first + part])]
            register = b.or_(wide[0], b.shl(wide[1], b.const(I32, part * width)))
        registers.append(register)
    return registers


def _stored(b: Builder, values: Sequence[Value]) -> Value:
    """Store vectors one after another in local memory of the function, and return its address."""
    kind = values[0].type
    place = b.alloca(ir.ArrayType(kind, len(values)))
    for number, value in enumerate(values):
        b.store(value, b.at(place, vector_bytes(kind) * number), align=64)
    return place


def vectors_at(b: Builder, place: Value, kind: ir.VectorType, count: int) -> list[Value]:
    """Load vectors that are stored one after another."""
    return [b.load(b.at(place, vector_bytes(kind) * number), typ=kind, align=64) for number in range(count)]


def vector_bytes(kind: ir.VectorType) -> int:
    """Return the size of a vector of 32 lanes."""
    width: int = integer_like(kind.element).width
    return width // 8 * LANES
