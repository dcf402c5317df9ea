"""Loads, stores, atomics and bulk copies of all lanes of a warp.

``load.SPACE.SIZE.COUNT(context, addresses, mask, site)`` returns `COUNT` vectors of elements of `SIZE` bytes, and
``store`` takes them as its last arguments. If the lanes' addresses are contiguous, one access of a long vector serves
all lanes. If a load's addresses are all equal, one element serves all lanes. If either holds within each group of eight
lanes, one load serves each group. Otherwise each lane's elements are accessed separately.

``run.SPACE.COUNT(context, addresses, mask, site)`` is a load of all 32 lanes that returns `COUNT` vectors of adjacent
32-bit words; each word is an access of its own.

``atom.SPACE.OPERATION.TYPE(context, addresses, mask, site, operand[, swapped])`` performs an atomic operation one lane
at a time, and returns the old value for each lane.

``bulk.TO(context, shared, global, sizes, mask)`` makes the lanes' bulk copies between global and shared memory
(``cp.async.bulk``), one after another, to the space `TO`, and returns true; or it copies nothing and returns false if
any copy is misaligned, out of bounds or in several allocations.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions import warps
from ...instructions.values import Value as Number
from ...instructions.values import value_type
from ...operations.matrix_descriptors import UNIT
from ...syntax.types import type_size
from ...windows import RESERVED_SHARED, SHARED_WINDOW
from ..layout import LANES, Context
from ..vectors import I1, I32, I64, PTR, Builder, vector
from .frame import Spilled, begin, each_active, when
from .hosts import address_type, checked, extent_of, kept_by

Value = Any
_GROUP = 8
_ALL = 0xFFFFFFFF
_WORD = 4
# The spaces that are contiguous in the host's memory.
_QUICK = ("global", "shared")


def loaded_type(size: int, count: int) -> ir.Type:
    """Return the type of a load's result."""
    one = vector(ir.IntType(8 * size))
    return one if count == 1 else ir.LiteralStructType([one] * count)


class _Access:
    """The function for one kind of load or store, while it is built."""

    def __init__(self, module: ir.Module, name: str) -> None:
        verb, self.space, size, count = name.split(".")
        self.size, self.count = int(size), int(count)
        self.whole = self.size * self.count
        self.kind = ir.IntType(8 * self.size)
        self.loads = verb == "load"
        given = [] if self.loads else [vector(self.kind)] * self.count
        result = loaded_type(self.size, self.count) if self.loads else ir.VoidType()
        self.b, arguments = begin(module, name, result, [PTR, address_type(self.space), I32, I32, *given])
        self.context, self.given, self.mask, self.site, *self.values = arguments

    def build(self) -> None:
        b = self.b
        full = b.icmp_unsigned("==", self.mask, I32(_ALL))
        if self.space in _QUICK:
            with when(b, full, likely=True):
                self._quick()
            if self.count == 1 and self.size >= _WORD:
                with when(b, b.icmp_unsigned("!=", self.mask, I32(0)), likely=True):
                    self._partly()
        hosts = checked(b, self.space, self.context, self.given, self.mask, self.site, self.whole)
        if self.space in ("shared", "generic"):
            follow, _ = self._order(hosts)
            with when(b, b.and_(full, follow)):
                self._run(b.inttoptr(b.extract_element(hosts, I32(0)), PTR))
        self._one_by_one(hosts)

    # --- fast paths

    def _known(self, first: Value, end: Value) -> Value:
        """Return whether all bytes between two addresses may be accessed, by a quick test that may miss some cases."""
        b = self.b
        low, high = _bounds(b, self.space, self.context, self.site)
        zero = first.type(0)
        aligned = b.icmp_unsigned("==", b.and_(first, first.type(self.whole - 1)), zero)
        inside = b.and_(b.icmp_unsigned(">=", first, low), b.icmp_unsigned("<=", end, high))
        ordered = b.icmp_unsigned("<=", first, end)
        return b.and_(b.and_(inside, aligned), ordered)

    def _host(self, address: Value) -> Value:
        return _host(self.b, self.space, self.context, address)

    def _order(self, addresses: Value, count: int = LANES) -> tuple[Value, Value]:
        """Return whether addresses are contiguous in every group of `count` lanes, and whether they are equal there."""
        b = self.b
        heads = b.each(I32, [lane // count * count for lane in range(LANES)])
        distance = b.sub(addresses, b.shuffle_vector(addresses, addresses, heads))
        steps = b.each(addresses.type.element, [lane % count * self.whole for lane in range(LANES)])
        return b.every(b.icmp_unsigned("==", distance, steps)), b.every(b.compare("==", distance, 0))

    def _quick(self) -> None:
        """Serve all lanes at once if their addresses are contiguous or, for a load, equal."""
        b = self.b
        first = b.extract_element(self.given, I32(0))
        kind = first.type
        follow, same = self._order(self.given)
        with (
            when(b, follow, likely=True),
            when(b, self._known(first, b.add(first, kind(LANES * self.whole))), likely=True),
        ):
            self._run(self._host(first))
        if not self.loads:
            return
        with when(b, same), when(b, self._known(first, b.add(first, kind(self.whole))), likely=True):
            place = self._host(first)
            places = [b.at(place, index * self.size) for index in range(self.count)]
            _give(b, [b.splat(b.load(one, typ=self.kind, align=self.size)) for one in places])
        if self.count == 1:
            self._in_groups()

    def _in_groups(self) -> None:
        """Load for eight lanes at a time if addresses are contiguous in every such group, or equal in every group."""
        b = self.b
        follow, same = self._order(self.given, _GROUP)
        with when(b, b.or_(follow, same)):
            hosts = checked(b, self.space, self.context, self.given, self.mask, self.site, self.whole)
            places = [b.inttoptr(b.extract_element(hosts, I32(lane)), PTR) for lane in range(0, LANES, _GROUP)]
            with when(b, same):
                parts = [b.splat(b.load(place, typ=self.kind, align=self.size), _GROUP) for place in places]
                b.ret(joined(b, parts))
            parts = [b.load(place, typ=vector(self.kind, _GROUP), align=self.size) for place in places]
            b.ret(joined(b, parts))

    def _partly(self) -> None:
        """Serve some of the lanes at once if their addresses fit into a contiguous access by the whole warp."""
        b = self.b
        lane = b.trailing_zeros(self.mask)
        first = b.extract_element(self.given, lane)
        kind = first.type
        lane, last = (_to(b, value, kind) for value in (lane, b.sub(I32(31), b.leading_zeros(self.mask))))
        start = b.sub(first, b.mul(lane, kind(self.whole)))
        wanted = b.add(b.splat(start), b.lanes(kind, self.whole))
        follow = b.bits(b.icmp_unsigned("==", self.given, wanted))
        all_follow = b.icmp_unsigned("==", b.and_(follow, self.mask), self.mask)
        end = b.add(start, b.mul(b.add(last, kind(1)), kind(self.whole)))
        with when(b, all_follow), when(b, self._known(first, end), likely=True):
            place, flags, suffix = self._host(start), b.truth(self.mask), f"v{LANES}i{8 * self.size}.p0"
            if self.loads:
                nothing = b.const(self.kind, 0)
                b.ret(b.invoke(f"llvm.masked.load.{suffix}", nothing.type, place, flags, nothing))
            else:
                b.invoke(f"llvm.masked.store.{suffix}", ir.VoidType(), self.values[0], place, flags)
                b.ret_void()

    def _run(self, place: Value) -> None:
        """Access contiguous elements of all lanes."""
        b = self.b
        if self.loads:
            data = b.load(place, typ=vector(self.kind, LANES * self.count), align=self.size)
            _give(b, [_taken(b, data, index, self.count) for index in range(self.count)])
            return
        b.store(_woven(b, self.values), place, align=self.size)
        b.ret_void()

    # --- lane by lane

    def _one_by_one(self, hosts: Value) -> None:
        b = self.b
        if self.loads:
            results = [ir.Constant(vector(self.kind), ir.Undefined)] * self.count
            for lane in range(LANES):
                place = b.inttoptr(b.extract_element(hosts, I32(lane)), PTR)
                for index in range(self.count):
                    value = b.load(b.at(place, index * self.size), typ=self.kind, align=self.size)
                    results[index] = b.insert_element(results[index], value, I32(lane))
            _give(b, results)
            return
        places, kept = Spilled(b, hosts), [Spilled(b, values) for values in self.values]

        def put(lane: Value) -> None:
            place = b.inttoptr(places.get(lane), PTR)
            for index, values in enumerate(kept):
                b.store(values.get(lane), b.at(place, index * self.size), align=self.size)

        with when(b, b.icmp_unsigned("==", self.mask, I32(_ALL))):
            # Without a loop, which takes longer to find the lanes than to store their elements.
            for lane in range(LANES):
                put(I64(lane))
            b.ret_void()
        each_active(b, self.mask, put)
        b.ret_void()


def build_access(module: ir.Module, name: str) -> None:
    """Build a load or a store."""
    _Access(module, name).build()


def build_run(module: ir.Module, name: str) -> None:
    """Build a load of adjacent words."""
    _, space, length = name.split(".")
    count = int(length)
    result = loaded_type(_WORD, count)
    b, (context, given, mask, site) = begin(module, name, result, [PTR, address_type(space), I32, I32])
    element_type = given.type.element
    ends = b.add(given, b.const(element_type, _WORD * count))
    low, high = (b.splat(bound) for bound in _bounds(b, space, context, site))
    known = b.and_(b.compare(">=", given, low), b.compare("<=", ends, high))
    known = b.and_(known, b.and_(b.compare("<=", given, ends), b.compare("==", b.and_(given, b.like(given, 3)), 0)))
    with when(b, b.every(known), likely=True):
        hosts = [_host(b, space, context, b.extract_element(given, I32(lane))) for lane in range(LANES)]
        _give(b, _transposed(b, [b.load(host, typ=vector(I32, count), align=_WORD) for host in hosts], count))
    words = []
    for number in range(count):
        address = b.add(given, b.const(element_type, _WORD * number))
        words.append(b.invoke(f"load.{space}.{_WORD}.1", vector(I32), context, address, mask, site))
    _give(b, words)


def _transposed(b: Builder, rows: list[Value], count: int) -> list[Value]:
    """Return the columns of a matrix whose rows have `count` elements."""
    each = 1
    while len(rows) > 1:
        # A row holds `each` neighbours of every column. Those of the next row go behind them.
        length = count * each
        numbers = [
            column * each + part + side * length for column in range(count) for side in range(2) for part in range(each)
        ]
        rows = [b.shuffle_vector(x, y, b.each(I32, numbers)) for x, y in zip(rows[::2], rows[1::2], strict=True)]
        each *= 2
    (whole,) = rows
    return [
        b.shuffle_vector(whole, whole, b.each(I32, range(column * each, (column + 1) * each)))
        for column in range(count)
    ]


def _bounds(b: Builder, space: str, context: Value, site: Value) -> tuple[Value, Value]:
    """Return the limits of an allocation that a site used, or of shared memory."""
    if space == "shared":
        return I32(RESERVED_SHARED), b.trunc(b.word(context, Context.SHARED_LIMIT), I32)
    cache = kept_by(b, context, site)
    return b.load(cache, typ=I64), b.load(b.at(cache, 8), typ=I64)


def _host(b: Builder, space: str, context: Value, address: Value) -> Value:
    wide = address if address.type == I64 else b.zext(address, I64)
    base = Context.SHARED if space == "shared" else Context.DELTA
    return b.inttoptr(b.add(wide, b.word(context, base)), PTR)


def _give(b: Builder, results: list[Value]) -> None:
    """Return one vector, or several as a structure."""
    if len(results) == 1:
        b.ret(results[0])
        return
    value: Value = ir.Constant(ir.LiteralStructType([result.type for result in results]), ir.Undefined)
    for index, result in enumerate(results):
        value = b.insert_value(value, result, index)
    b.ret(value)


def _to(b: Builder, word: Value, kind: ir.Type) -> Value:
    return word if word.type == kind else b.zext(word, kind)


def joined(b: Builder, parts: list[Value]) -> Value:
    """Concatenate short vectors."""
    while len(parts) > 1:
        length = 2 * parts[0].type.count
        numbers = b.each(I32, range(length))
        parts = [b.shuffle_vector(x, y, numbers) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _taken(b: Builder, data: Value, index: int, count: int) -> Value:
    """Return every `count`-th element from `index` on."""
    if count == 1:
        return data
    numbers = b.each(I32, [lane * count + index for lane in range(LANES)])
    return b.shuffle_vector(data, ir.Constant(data.type, ir.Undefined), numbers)


def _woven(b: Builder, values: list[Value]) -> Value:
    """Interleave vectors, so that the elements of each lane are contiguous."""
    if len(values) == 1:
        return values[0]
    whole = joined(b, values)
    count = len(values)
    numbers = b.each(I32, [part * LANES + lane for lane in range(LANES) for part in range(count)])
    return b.shuffle_vector(whole, ir.Constant(whole.type, ir.Undefined), numbers)


# --- atomics and bulk copies


def build_atomic(module: ir.Module, name: str) -> None:
    """Build an atomic operation."""
    _, space, operation, ptx_type = name.split(".")
    size = type_size(ptx_type)
    kind, type = ir.IntType(8 * size), value_type(ptx_type)
    count = 2 if operation == "cas" else 1
    arguments = [PTR, address_type(space), I32, I32, *[vector(kind)] * count]
    b, (context, given, mask, site, *values) = begin(module, name, vector(kind), arguments)
    hosts = checked(b, space, context, given, mask, site, size)
    places, found = Spilled(b, hosts), Spilled(b, b.const(kind, 0))
    kept = [Spilled(b, value) for value in values]

    def update(lane: Value) -> None:
        number = b.zext(lane, I64)
        place = b.inttoptr(places.get(number), PTR)
        operands = [one.get(number) for one in kept]
        old = b.load(place, typ=kind, align=size)
        # Float additions in global memory flush subnormal numbers; additions in shared memory don't.
        flushes = _in_global(b, space, given, number) if operation == "add" and ptx_type == "f32" else False
        words = (Number(b, f"u{8 * size}", b.splat(word)).read_as(type) for word in (old, *operands))
        new = warps.updated(operation, ptx_type, flushes, *words)
        b.store(b.extract_element(new.bits.raw, I32(0)), place, align=size)
        found.put(number, old)

    each_active(b, mask, update)
    b.ret(found.whole)


def _in_global(b: Builder, space: str, given: Value, number: Value) -> bool | Number:
    """Return whether a lane's address is in global memory."""
    if space != "generic":
        return space == "global"
    truth = b.icmp_unsigned("<", b.extract_element(given, b.trunc(number, I32)), I64(SHARED_WINDOW))
    return Number(b, "pred", b.splat(truth))


def build_bulk_copy(module: ir.Module, name: str) -> None:
    """Build the bulk copies in one direction."""
    to = name.partition(".")[2]
    types = [PTR, vector(I32), vector(I64), vector(I32), I32]
    b, (context, inside, outside, sizes, mask) = begin(module, name, I1, types)
    kept = [Spilled(b, values) for values in (b.zext(inside, vector(I64)), outside, b.zext(sizes, vector(I64)))]

    def operands(lane: Value) -> list[Value]:
        return [values.get(lane) for values in kept]

    def check(lane: Value) -> None:
        here, there, size = operands(lane)
        aligned = b.icmp_unsigned("==", b.and_(b.or_(b.or_(here, there), size), I64(UNIT - 1)), I64(0))
        fits = b.icmp_unsigned("<=", b.add(here, size), b.word(context, Context.SHARED_LIMIT))
        good = b.and_(b.and_(aligned, fits), b.icmp_unsigned(">=", here, I64(RESERVED_SHARED)))
        place, _, end = extent_of(b, context, there)
        found = b.and_(b.icmp_signed(">=", place, I64(0)), b.icmp_unsigned("<=", b.add(there, size), end))
        with when(b, b.not_(b.and_(good, found)), likely=False):
            b.ret(I1(0))

    def copy(lane: Value) -> None:
        here, there, size = operands(lane)
        ends = [
            b.inttoptr(b.add(address, b.word(context, base)), PTR)
            for address, base in ((here, Context.SHARED), (there, Context.DELTA))
        ]
        ends = ends if to == "shared" else ends[::-1]
        b.invoke("llvm.memcpy.p0.p0.i64", ir.VoidType(), *ends, size, I1(0))

    each_active(b, mask, check)
    each_active(b, mask, copy)
    b.ret(I1(1))
