"""The vector clocks of a block's warps, which barriers in memory pass on; `checks.races.warp_clocks` defines them.

``clock.KIND.SPACE(context, addresses, mask, site, arrivals)`` records, before an operation on barriers, an arrival
that releases ("arrive"), one that doesn't ("relaxed"), or a wait ("wait"). `Clock` describes the clocks of a block.
Times are shifted as in records.

A block keeps at most `MOST` barriers; with more, the NumPy engine runs the launch.

``strong.KIND.SPACE(context, addresses, mask)`` examines a strong access before it happens: lanes may release by it what
they have fenced, or acquire what others released, of which Python is told. `KIND` is "st" for an access that only
writes (including ``red``), "ld" for one that only reads, and "at" for an atomic that returns the previous value.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....instructions import barriers
from ....windows import LOCAL_WINDOW, RESERVED_SHARED, RUNTIME_SHARED, SHARED_WINDOW, WINDOW_BYTES
from ...layout import LANES, BlockCheck, Clock, Context, Doubt, HostCall
from ...vectors import I8, I32, I64, PTR, Builder, vector
from ..frame import ask_python, begin, each_group, element, lowest, when
from ..hosts import address_type, shared_offsets
from .copies import complete_copies
from .records import TICK, block_word, doubt_if, of_warps, raise_doubt

Value = Any

MOST = LANES
_CLOCK = vector(I64, Clock.ENTRIES)
# The number of hash values of an address. The hash is the lowest bits of the index of the address's 32-bit word.
HASHES = 1 << 12
# A flag in a warp's word at `BlockCheck.FENCED`, above the mask of lanes: set if its lanes have executed a fence or an
# acquire since they last synchronised.
EVENT = 1 << LANES


def clock_of_warp(b: Builder, context: Value, warp: Value) -> Value:
    """Return the pointer to the clock of a warp."""
    clocks = b.pointer(context, Context.CLOCKS)
    return element(b, clocks, b.add(b.mul(warp, I64(Clock.ENTRIES)), I64(Clock.WARPS)), I64)


def clocks_of_barrier(b: Builder, context: Value, number: Value) -> tuple[Value, Value]:
    """Return the pointers to a barrier's clock for all arrivals, and for those of completed phases."""
    rows = b.add(b.word(context, Context.WARPS), b.shl(number, I64(1)))
    place = clock_of_warp(b, context, rows)
    return place, b.at(place, 8 * Clock.ENTRIES)


def get(b: Builder, place: Value) -> Value:
    """Return a clock."""
    return b.load(place, typ=_CLOCK, align=8)


def put(b: Builder, clock: Value, place: Value) -> None:
    """Store a clock."""
    b.store(clock, place, align=8)


def join(b: Builder, clock: Value, place: Value) -> None:
    """Add to the clock at a place what another clock contains."""
    put(b, b.greatest(clock, get(b, place), False), place)


def build_clock(module: ir.Module, name: str) -> None:
    """Build the function that records an operation on barriers."""
    _, kind, space = name.split(".")
    words = vector(I64)
    b, (context, given, mask, site, arrivals) = begin(
        module, name, ir.VoidType(), [PTR, address_type(space), I32, I32, words]
    )
    wide, _ = shared_offsets(b, space, given, mask)
    low, end = I64(RESERVED_SHARED), b.sub(b.word(context, Context.SHARED_END), I64(8))
    inside = b.and_(b.icmp_unsigned(">=", wide, b.splat(low)), b.icmp_unsigned("<=", wide, b.splat(end)))
    inside = b.and_(inside, b.compare("==", b.and_(wide, b.const(I64, 7)), 0))
    with when(b, b.icmp_unsigned("!=", b.and_(b.bits(inside), mask), mask), likely=False):
        # The barriers of CUDA's headers are not recorded. All others are beyond the variables, or faults.
        theirs = b.and_(b.bits(b.compare("<", wide, RUNTIME_SHARED)), mask)
        with when(b, b.icmp_unsigned("!=", theirs, mask)):
            raise_doubt(b, context, site, Doubt.FINDING)
        b.ret_void()
    warp = b.word(context, Context.WARP_AT_HAND)
    mine = clock_of_warp(b, context, warp)
    passed = _passed(b, context, warp) if kind == "arrive" else None

    def record(same: Value) -> None:
        address = b.extract_element(wide, b.trailing_zeros(same))
        word = b.load(b.inttoptr(b.add(address, b.word(context, Context.SHARED)), PTR), typ=I64)
        number = number_of(b, context, site, address, word)
        arrived, completed = clocks_of_barrier(b, context, number)
        if kind == "wait":
            join(b, get(b, completed), mine)
            waited = b.word(context, Context.BULK_WAITED)
            with when(b, b.icmp_unsigned("!=", waited, I64(0))):
                place = element(b, b.inttoptr(waited, PTR), b.add(b.mul(warp, I64(MOST)), number), I32)
                b.store(b.or_(b.load(place, typ=I32), same), place)
            return
        if kind == "arrive":
            join(b, passed, arrived)
        total = b.reduced("add", b.select(b.truth(same), arrivals, b.const(I64, 0)))
        with when(b, b.icmp_unsigned(">", total, b.and_(word, I64(barriers.MISSING)))):
            put(b, get(b, arrived), completed)

    each_group(b, mask, lowest(b, wide), record)
    if kind == "wait":
        _note_known(b, context, warp)
    b.ret_void()


def _passed(b: Builder, context: Value, warp: Value) -> Value:
    """Advance the time, and return the clock that an arrival of a warp passes on."""
    now = b.add(b.word(context, Context.NOW), I64(TICK))
    b.set_word(context, Context.NOW, now)
    kept = b.alloca(_CLOCK)
    put(b, get(b, clock_of_warp(b, context, warp)), kept)
    b.store(now, element(b, kept, warp, I64))
    b.store(complete_copies(b, context, warp), element(b, kept, b.add(warp, I64(Clock.COPIES)), I64))
    return get(b, kept)


def build_named(module: ir.Module, name: str) -> None:
    """Build ``named.arrive(context, number)`` and ``named.release(context, number, warp)``, for barriers of some warps.

    A named barrier is kept among the others, at an address below all of theirs.
    """
    arrives = name.endswith("arrive")
    b, (context, number, *rest) = begin(module, name, ir.VoidType(), [PTR, I64, *[I64] * (not arrives)])
    row = number_of(b, context, I32(0), b.add(number, I64(1)), I64(0))
    arrived, _ = clocks_of_barrier(b, context, row)
    if arrives:
        join(b, _passed(b, context, b.word(context, Context.WARP_AT_HAND)), arrived)
    else:
        join(b, get(b, arrived), clock_of_warp(b, context, rest[0]))
        _note_known(b, context, rest[0])
    b.ret_void()


def build_barrier_number(module: ir.Module, name: str) -> None:
    """Build ``barrier.(context, address, word)``: the number of a barrier, or `MOST` if there are too many.

    The function also notices if a phase has been completed.
    """
    b, (context, address, word) = begin(module, name, I64, [PTR, I64, I64])
    clocks = b.pointer(context, Context.CLOCKS)
    found = b.bits(
        b.icmp_unsigned("==", b.load(b.at(clocks, 8 * Clock.KEYS), typ=vector(I64), align=8), b.splat(address))
    )
    parity = b.lshr(word, I64(barriers.PARITY))
    with when(b, b.icmp_unsigned("==", found, I32(0)), likely=False):
        count = b.load(clocks, typ=I64)
        with when(b, b.icmp_unsigned("==", count, I64(MOST)), likely=False):
            b.ret(I64(MOST))
        b.store(b.add(count, I64(1)), clocks)
        b.store(address, element(b, b.at(clocks, 8 * Clock.KEYS), count, I64))
        b.store(parity, element(b, b.at(clocks, 8 * Clock.PARITIES), count, I64))
        for place in clocks_of_barrier(b, context, count):
            put(b, b.each(I64, [0] * Clock.ENTRIES), place)
        b.ret(count)
    number = b.zext(b.trailing_zeros(found), I64)
    known = element(b, b.at(clocks, 8 * Clock.PARITIES), number, I64)
    # Only an arrival completes a phase, so at most one phase has been completed since the last look.
    with when(b, b.icmp_unsigned("!=", parity, b.load(known, typ=I64))):
        b.store(parity, known)
        arrived, completed = clocks_of_barrier(b, context, number)
        put(b, get(b, arrived), completed)
    b.ret(number)


def number_of(b: Builder, context: Value, site: Value, address: Value, word: Value) -> Value:
    """Return the number of a barrier; return from a function, with a doubt, if there are too many."""
    number = b.invoke("barrier.", I64, context, address, word)
    doubt_if(b, context, b.icmp_unsigned("==", number, I64(MOST)), site)
    return number


def _note_known(b: Builder, context: Value, warp: Value) -> None:
    """Note the time up to which the accesses of all warps happen before a warp's next one."""
    times = b.load(clock_of_warp(b, context, warp), typ=vector(I64), align=8)
    known = element(b, block_word(b, context, BlockCheck.KNOWN), warp, I64)
    b.store(b.reduced("umin", of_warps(b, context, times)), known)


# --- fences


def build_strong(module: ir.Module, name: str) -> None:
    """Build the function that examines a strong access of one kind to one space."""
    _, kind, space = name.split(".")
    b, (context, addresses, mask) = begin(module, name, ir.VoidType(), [PTR, vector(I64), I32])
    if space == "generic":
        # Only shared and local memory are left out. The grid's barriers are in a window of their own, and are included.
        for window in (SHARED_WINDOW, LOCAL_WINDOW):
            offsets = b.sub(addresses, b.const(I64, window))
            mask = b.and_(mask, b.bits(b.compare(">=", offsets, WINDOW_BYTES)))
    writers: Value = I64(0)
    readers: Value = I64(0)
    if kind != "ld":
        warp = b.word(context, Context.WARP_AT_HAND)
        fenced = b.load(element(b, block_word(b, context, BlockCheck.FENCED), warp, I64), typ=I64)
        writers = b.and_(fenced, b.zext(mask, I64))
    if kind != "st":
        released = b.pointer(context, Context.RELEASED)
        hashes = b.and_(b.lshr(addresses, b.const(I64, 2)), b.const(I64, HASHES - 1))
        found: Value = b.const(I8, 0)
        for lane in range(LANES):
            there = b.load(b.at(released, b.extract_element(hashes, I32(lane))), typ=I8)
            found = b.insert_element(found, there, I32(lane))
        readers = b.zext(b.and_(b.bits(b.compare("!=", found, 0)), mask), I64)
    with when(b, b.icmp_unsigned("!=", b.or_(writers, readers), I64(0)), likely=False):
        b.store(addresses, b.pointer(context, Context.STRONG_ADDRESSES), align=8)
        ask_python(b, context, HostCall.STRONG, b.or_(writers, b.shl(readers, I64(LANES))))
    b.ret_void()
