"""Count the sectors, wavefronts and conflicts of warps' accesses, with the same results as the NumPy engine's observer.

``count.SPACE.KIND.WORDS(row, addresses, mask)`` adds an access of WORDS 32-bit words per lane (1 also stands for less
than a word) to a row of counts. The kind is load, store or atomic, or bypass for a copy around the L1 cache. The counts
that `AccessCount` calls `first` and `second` depend only on the mask of lanes, on the distances of their addresses from
the first lane's address, and on the offset of that address in its sector or bank. If all of these are the same as last
time, the last counts are added again. A generic access has three rows of counts, for its lanes in global, shared and
local memory.

``most.different(words, mask)`` returns the largest number of different words of shared memory in one bank, and
``most.all`` the largest number of lanes that access one bank; both are 0 for an empty mask. For wider accesses, `words`
are each lane's first words: if these share a bank, so do the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from llvmlite import ir

from ...windows import SHARED_WINDOW
from ..layout import LANES, Count
from ..vectors import I8, I32, I64, PTR, Builder, vector
from .frame import Spilled, begin, each_active, when
from .hosts import address_type, each_window, safe_addresses

Value = Any
_ALL = 0xFFFFFFFF
_BYTES = 8 * Count.WORDS
# The spaces of the rows of a generic access.
_GENERIC = ("global", "shared", "local")
# The bits of an address that are its offset in its sector, and in its bank.
_IN_SECTOR = 31
_IN_BANK = 3
_SECTOR_SHIFT = 5
_WORD_SHIFT = 2
_BANKS = 32
# A copy around the L1 cache is split into groups of 8 lanes. An atomic of 8 bytes has this number of words.
_BYPASSING = 0xFF
_DOUBLE = 2
# The turn of an atomic is placed above the bits of a sector's number.
_TURN_SHIFT = 48
# In local memory, a sector holds the words of ``1 << _GROUP_SHIFT`` lanes.
_GROUP_SHIFT = 3


def build_count(module: ir.Module, name: str) -> None:
    """Build the function that counts accesses of one kind to one space."""
    _, space, kind, words = name.split(".")
    b, (row, given, mask) = begin(module, name, ir.VoidType(), [PTR, address_type(space), I32])
    if space == "generic":
        _by_window(b, f"{kind}.{words}", row, given, mask)
        return
    addresses = safe_addresses(b, given, mask)
    first = b.extract_element(addresses, I32(0))
    distances = b.sub(addresses, b.splat(first))
    bits = b.and_(first, first.type(_IN_BANK if space == "shared" else _IN_SECTOR))
    place = bits if bits.type == I64 else b.zext(bits, I64)
    lanes = b.zext(mask, I64)
    last = b.load(b.at(row, 8 * Count.DISTANCES), typ=distances.type, align=64)
    alike = b.every(b.icmp_unsigned("==", distances, last))
    for word, value in ((Count.LAST_MASK, lanes), (Count.LAST_PLACE, place)):
        alike = b.and_(alike, b.icmp_unsigned("==", b.word(row, word), value))
    with when(b, alike, likely=True):
        _add(b, row, b.word(row, Count.LAST_FIRST), b.word(row, Count.LAST_SECOND))
        b.ret_void()
    count: Callable[..., tuple[Value, Value]] = {"global": _global, "shared": _shared, "local": _local}[space]
    one, other = count(b, addresses, mask, int(words), kind)
    b.store(distances, b.at(row, 8 * Count.DISTANCES), align=64)
    for word, value in (
        (Count.LAST_MASK, lanes),
        (Count.LAST_PLACE, place),
        (Count.LAST_FIRST, one),
        (Count.LAST_SECOND, other),
    ):
        b.set_word(row, word, value)
    _add(b, row, one, other)
    b.ret_void()


def _add(b: Builder, row: Value, one: Value, other: Value) -> None:
    for word, value in ((Count.TIMES, I64(1)), (Count.FIRST, one), (Count.SECOND, other)):
        b.set_word(row, word, b.add(b.word(row, word), value))


def _by_window(b: Builder, kind: str, row: Value, given: Value, mask: Value) -> None:
    """Count the lanes whose addresses are in a window in the row of the window's space."""
    addresses = safe_addresses(b, given, mask)
    with when(b, b.icmp_unsigned("<", b.reduced("umax", addresses), I64(SHARED_WINDOW)), likely=True):
        b.invoke(f"count.global.{kind}", ir.VoidType(), row, addresses, mask)
        b.ret_void()
    for space, offsets, lanes in each_window(b, addresses, mask):
        if space in _GENERIC:
            place = b.at(row, _GENERIC.index(space) * _BYTES)
            b.invoke(f"count.{space}.{kind}", ir.VoidType(), place, offsets, lanes)
    b.ret_void()


# --- global and local memory


def _global(b: Builder, addresses: Value, mask: Value, words: int, kind: str) -> tuple[Value, Value]:
    """Return the numbers of sectors and of different addresses.

    For atomics, the second number is that of the 16-byte halves of sectors if an atomic has 8 bytes, and otherwise that
    of the sectors if the lanes of complete warps are combined.
    """
    sectors = b.lshr(addresses, b.const(I64, _SECTOR_SHIFT))
    if kind == "bypass":
        parts = [b.and_(mask, I32(_BYPASSING << first)) for first in range(0, LANES, _BYPASSING.bit_length())]
        each = [_different(b, sectors, part) for part in parts]
        return reduce(b.add, each), _different(b, addresses, mask)
    if kind != "atomic":
        return _different(b, sectors, mask), _different(b, addresses, mask)
    # Lanes that access the same word take turns, and each turn accesses its sectors again.
    turns = Spilled(b, b.const(I64, 0))

    def turn(lane: Value, alike: Value) -> None:
        before = b.and_(alike, b.sub(b.shl(I32(1), lane), I32(1)))
        turns.put(lane, b.zext(b.ones(before), I64))

    _each_alike(b, b.lshr(addresses, b.const(I64, _WORD_SHIFT)), mask, turn)
    taken = b.shl(turns.whole, b.const(I64, _TURN_SHIFT))
    different = _different(b, b.or_(sectors, taken), mask)
    if words == _DOUBLE:
        return different, _different(b, b.or_(b.lshr(addresses, b.const(I64, _SECTOR_SHIFT - 1)), taken), mask)
    return different, b.select(b.icmp_unsigned("==", mask, I32(_ALL)), I64(1), different)


def _local(b: Builder, addresses: Value, mask: Value, words: int, kind: str) -> tuple[Value, Value]:
    """Return the number of sectors of local memory, in which the lanes' words at one address are adjacent."""
    # A lane has much less than 2^32 bytes of local memory.
    own = b.and_(b.trunc(addresses, vector(I32)), b.const(I32, 0xFFFFFFFC))
    sectors = b.or_(own, b.lshr(b.lanes(), b.const(I32, _GROUP_SHIFT)))
    return b.mul(_different(b, sectors, mask), I64(words)), I64(0)


def _different(b: Builder, keys: Value, mask: Value) -> Value:
    """Return the number of different keys among the lanes of a mask."""
    total = b.alloca(I64)
    before = b.shuffle_vector(keys, keys, b.each(I32, [max(lane - 1, 0) for lane in range(LANES)]))
    rises = b.every(b.icmp_unsigned(">=", keys, before))
    rises = b.and_(rises, b.icmp_unsigned("==", mask, I32(_ALL)))
    b.store(b.add(b.zext(b.ones(b.bits(b.icmp_unsigned("!=", keys, before))), I64), I64(1)), total)
    with when(b, b.not_(rises)):
        b.store(I64(0), total)

        def look(lane: Value, alike: Value) -> None:
            first = b.icmp_unsigned("==", b.trailing_zeros(alike), lane)
            b.store(b.add(b.load(total, typ=I64), b.zext(first, I64)), total)

        _each_alike(b, keys, mask, look)
    return b.load(total, typ=I64)


def _each_alike(b: Builder, keys: Value, mask: Value, body: Callable[[Value, Value], None]) -> None:
    """Generate a loop over the lanes of a mask; `body` gets a lane's index and the mask of the lanes with its key."""
    kept = Spilled(b, keys)

    def look(lane: Value) -> None:
        body(lane, b.and_(b.bits(b.icmp_unsigned("==", keys, b.splat(kept.get(lane)))), mask))

    each_active(b, mask, look)


# --- shared memory


def _shared(b: Builder, addresses: Value, mask: Value, words: int, kind: str) -> tuple[Value, Value]:
    """Return the number of wavefronts and of bank conflicts; see `cudart_py.simulator.counters.banks`."""
    places = b.lshr(addresses, b.const(I32, _WORD_SHIFT))
    lanes = LANES // words
    parts = [b.and_(mask, I32(((1 << lanes) - 1) << first)) for first in range(0, LANES, lanes)]
    most = [_most(b, places, part, distinct=kind != "atomic") for part in parts]
    if kind == "load" and words > 1:
        joined = _joins(b, places, mask)
        for low in range(0, words, 2):
            together = _most(b, places, b.or_(parts[low], parts[low + 1]), distinct=True)
            most[low] = b.select(joined, together, most[low])
            most[low + 1] = b.select(joined, I64(0), most[low + 1])
    beyond = [b.select(b.icmp_unsigned("==", one, I64(0)), one, b.sub(one, I64(1))) for one in most]
    return reduce(b.add, most), reduce(b.add, beyond)


def _joins(b: Builder, places: Value, mask: Value) -> Value:
    """Return whether every lane has the address of its partner, for one of two pairings (lanes 1 or 2 apart)."""
    result: Value = ir.IntType(1)(0)
    for distance, even in ((1, 0x55555555), (2, 0x33333333)):
        other = b.shuffle_vector(places, places, b.each(I32, [lane ^ distance for lane in range(LANES)]))
        up = b.shl(b.and_(mask, I32(even)), I32(distance))
        down = b.and_(b.lshr(mask, I32(distance)), I32(even))
        both = b.and_(mask, b.or_(up, down))
        alike = b.or_(b.bits(b.icmp_unsigned("==", places, other)), b.not_(both))
        result = b.or_(result, b.icmp_unsigned("==", alike, I32(_ALL)))
    return result


def _most(b: Builder, places: Value, mask: Value, *, distinct: bool) -> Value:
    return b.invoke("most.different" if distinct else "most.all", I64, places, mask)


def build_most(module: ir.Module, name: str) -> None:
    """Build the function that finds the bank with the most words or lanes."""
    b, (given, mask) = begin(module, name, I64, [vector(I32), I32])
    with when(b, b.icmp_unsigned("==", mask, I32(0))):
        b.ret(I64(0))
    words = safe_addresses(b, given, mask)
    distinct = name.endswith(".different")
    if distinct:
        span = b.sub(b.reduced("umax", words), b.reduced("umin", words))
        with when(b, b.icmp_unsigned("<", span, I32(_BANKS))):
            # Different words are in different banks.
            b.ret(I64(1))
    kept, counts, most = Spilled(b, words), Spilled(b, b.const(I8, 0)), b.alloca(I8)
    b.store(I8(0), most)

    def look(lane: Value) -> None:
        word = kept.get(lane)
        counted: Value = I8(1)
        if distinct:
            alike = b.and_(b.bits(b.icmp_unsigned("==", words, b.splat(word))), mask)
            counted = b.zext(b.icmp_unsigned("==", b.trailing_zeros(alike), lane), I8)
        bank = b.and_(word, I32(_BANKS - 1))
        count = b.add(counts.get(bank), counted)
        counts.put(bank, count)
        before = b.load(most, typ=I8)
        b.store(b.select(b.icmp_unsigned(">", count, before), count, before), most)

    each_active(b, mask, look)
    b.ret(b.zext(b.load(most, typ=I8), I64))
