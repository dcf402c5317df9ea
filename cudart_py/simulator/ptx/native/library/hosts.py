"""Check the addresses of lanes, and translate them to host addresses.

``hosts.SPACE(context, addresses, mask, site, size)`` returns whether all `size` bytes of each lane may be accessed, and
their addresses in the host's memory. Lanes outside the mask get the address of the first lane inside it. An invalid
address is recorded as the launch's fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from llvmlite import ir

from ...instructions import clusters
from ...windows import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RESERVED_SHARED,
    RUNTIME_SHARED,
    SHARED_WINDOW,
    WINDOW_BYTES,
    WORKSPACE_WINDOW,
)
from ..layout import ROW_BYTES, Context, Fault
from ..vectors import I1, I32, I64, PTR, Builder, vector
from .frame import Spilled, begin, each_active, element, give_up, record_fault, repeat, when, words_at

Value = Any
ADDRESSES = vector(I64)
_WINDOWS = {
    "shared": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "workspace": WORKSPACE_WINDOW,
    "global": 0,
}
found_type = ir.LiteralStructType([I1, ADDRESSES])


def address_type(space: str) -> ir.VectorType:
    """Return the type of a space's addresses: addresses in shared memory have 32 bits."""
    return vector(I32) if space in ("shared", "cluster") else ADDRESSES


def checked(b: Builder, space: str, context: Value, addresses: Value, mask: Value, site: Value, size: int) -> Value:
    """Return the lanes' host addresses; return from the function if any address is invalid."""
    found = b.invoke(f"hosts.{space}", found_type, context, addresses, mask, site, I64(size))
    with when(b, b.not_(b.extract_value(found, 0)), likely=False):
        give_up(b)
    return b.extract_value(found, 1)


def safe_addresses(b: Builder, addresses: Value, mask: Value) -> Value:
    """Return the addresses; lanes outside the mask get the address of the mask's first lane."""
    first = b.extract_element(addresses, b.trailing_zeros(mask))
    return b.select(b.truth(mask), addresses, b.splat(first))


def each_window(b: Builder, addresses: Value, mask: Value) -> Iterator[tuple[str, Value, Value]]:
    """Yield each space of generic addresses, the addresses there, and the lanes that are in it, where there are any.

    Lanes outside all windows are in global memory.
    """
    for space, window in _WINDOWS.items():
        offsets = b.sub(addresses, b.const(I64, window))
        lanes = b.and_(b.bits(b.compare("<", offsets, WINDOW_BYTES)), mask) if window else mask
        mask = b.and_(mask, b.not_(lanes))
        with when(b, b.icmp_unsigned("!=", lanes, I32(0))):
            if space == "shared":
                # Offsets of more than 32 bits are replaced by the largest 32-bit offset, which is outside shared
                # memory, too.
                offsets = b.trunc(b.least(offsets, b.const(I64, 0xFFFFFFFF), False), vector(I32))
            yield space, offsets, lanes


def shared_offsets(b: Builder, space: str, addresses: Value, mask: Value) -> tuple[Value, Value]:
    """Return shared or generic addresses as 64-bit offsets in shared memory, and the lanes of the mask that are there.

    Bounds are not checked, apart from those of the window of generic addresses.
    """
    wide = addresses if addresses.type.element == I64 else b.zext(addresses, ADDRESSES)
    if space != "generic":
        return wide, mask
    wide = b.sub(wide, b.const(I64, SHARED_WINDOW))
    return wide, b.and_(mask, b.bits(b.compare("<", wide, WINDOW_BYTES)))


def _answer(b: Builder, right: Value, hosts: Value) -> None:
    nothing = ir.Constant(found_type, ir.Undefined)
    b.ret(b.insert_value(b.insert_value(nothing, right, 0), hosts, 1))


def _refuse(b: Builder, context: Value, given: Value, mask: Value, site: Value, size: Value) -> None:
    record_fault(b, context, Fault.ACCESS, site, mask, given, size)
    _answer(b, I1(0), ir.Constant(ADDRESSES, ir.Undefined))


def _global(b: Builder, arguments: list[Value], addresses: Value) -> None:
    context, _, mask, site, size = arguments
    hosts = b.add(addresses, b.splat(b.word(context, Context.DELTA)))
    cache = kept_by(b, context, site)
    aligned = _aligned(b, addresses, size)
    known = _inside(b, addresses, b.load(cache, typ=I64), b.load(b.at(cache, 8), typ=I64), size)
    with when(b, b.every(b.and_(known, aligned)), likely=True):
        _answer(b, I1(1), hosts)
    with when(b, b.not_(b.every(aligned)), likely=False):
        _refuse(b, *arguments)
    # If all lanes are in the allocation of the lowest address, the site remembers that allocation. Otherwise each
    # lane's allocation is looked up.
    place, start, end = extent_of(b, context, b.reduced("umin", addresses))
    inside = b.every(_inside(b, addresses, start, end, size))
    with when(b, b.and_(b.icmp_signed(">=", place, I64(0)), inside)):
        b.store(start, cache)
        b.store(end, b.at(cache, 8))
        _answer(b, I1(1), hosts)
    kept = Spilled(b, addresses)

    def look(lane: Value) -> None:
        address = kept.get(lane)
        own, _, last = extent_of(b, context, address)
        good = b.and_(b.icmp_signed(">=", own, I64(0)), b.icmp_unsigned("<=", address, b.sub(last, size)))
        with when(b, b.not_(good), likely=False):
            _refuse(b, *arguments)

    each_active(b, mask, look)
    _answer(b, I1(1), hosts)


def kept_by(b: Builder, context: Value, site: Value) -> Value:
    """Return the pointer to the two words that a site keeps (see `Context.SITES`)."""
    return element(b, b.pointer(context, Context.SITES), b.shl(b.zext(site, I64), I64(1)), I64)


def _aligned(b: Builder, addresses: Value, size: Value) -> Value:
    """Return which addresses are multiples of a size."""
    return b.compare("==", b.and_(addresses, b.splat(b.sub(size, size.type(1)))), 0)


def _inside(b: Builder, addresses: Value, start: Value, end: Value, size: Value) -> Value:
    """Return which elements of `size` bytes are completely between two addresses.

    The size is subtracted from the end, because an address plus the size may overflow.
    """
    reaches = b.icmp_unsigned("<=", addresses, b.splat(b.sub(end, size)))
    return b.and_(b.icmp_unsigned(">=", addresses, b.splat(start)), reaches)


def extent_of(b: Builder, context: Value, address: Value) -> tuple[Value, Value, Value]:
    """Return the index, start and end of the last allocation that starts at or before an address.

    The index is -1 if there is none: the arrays of allocations have an extra element before the first one.
    """
    starts, ends = b.pointer(context, Context.STARTS), b.pointer(context, Context.ENDS)

    def halve(low: Value, high: Value) -> list[Value]:
        middle = b.lshr(b.add(low, high), I64(1))
        behind = b.icmp_unsigned(">", b.load(element(b, starts, middle, I64), typ=I64), address)
        return [b.select(behind, low, b.add(middle, I64(1))), b.select(behind, middle, high)]

    bounds = [I64(0), b.word(context, Context.EXTENTS)]
    after, _ = repeat(b, bounds, lambda low, high: b.icmp_unsigned("<", low, high), halve)
    place = b.sub(after, I64(1))
    start, end = (b.load(element(b, array, place, I64), typ=I64) for array in (starts, ends))
    return place, start, end


def _shared(b: Builder, arguments: list[Value], addresses: Value) -> None:
    context, *_, size = arguments
    wide = b.zext(addresses, ADDRESSES)
    hosts = b.add(wide, b.splat(b.word(context, Context.SHARED)))
    narrow = b.trunc(size, I32)
    aligned = _aligned(b, addresses, narrow)
    end = b.trunc(b.word(context, Context.SHARED_LIMIT), I32)
    with when(b, b.every(b.and_(_inside(b, addresses, I32(RESERVED_SHARED), end, narrow), aligned)), likely=True):
        _answer(b, I1(1), hosts)
    # Each lane is in the block's own memory or in the bytes that CUDA's headers use.
    among = _inside(b, wide, I64(RESERVED_SHARED), b.word(context, Context.SHARED_LIMIT), size)
    right = b.or_(among, b.compare("<=", b.add(wide, b.splat(size)), RUNTIME_SHARED))
    with when(b, b.every(b.and_(right, aligned))):
        _answer(b, I1(1), hosts)
    with when(b, b.icmp_unsigned(">", b.word(context, Context.CLUSTER), I64(1))):
        _in_cluster(b, context, addresses, right, aligned, size)
    _refuse(b, *arguments)


def _in_cluster(b: Builder, context: Value, addresses: Value, own: Value, aligned: Value, size: Value) -> None:
    """Return from the function if each lane's address is its own block's or names a block of the cluster."""
    places = b.zext(b.and_(addresses, b.const(I32, clusters.OFFSET)), ADDRESSES)
    above = b.lshr(addresses, b.const(I32, clusters.RANK_SHIFT))
    there = _inside(b, places, I64(RESERVED_SHARED), b.word(context, Context.SHARED_LIMIT), size)
    named = b.and_(there, b.compare("!=", above, 0))
    exists = b.icmp_unsigned("<=", above, b.splat(b.trunc(b.word(context, Context.CLUSTER), I32)))
    own = b.and_(own, b.compare("==", above, 0))
    with when(b, b.every(b.and_(b.or_(own, b.and_(named, exists)), aligned)), likely=True):
        # The first row is that of the block with rank 0.
        row = b.mul(b.zext(b.sub(above, b.const(I32, 1)), ADDRESSES), b.const(I64, ROW_BYTES // 8))
        bases = words_at(b, b.pointer(context, Context.CLUSTER_BLOCKS), b.select(own, b.const(I64, 0), row))
        bases = b.select(own, b.splat(b.word(context, Context.SHARED)), bases)
        _answer(b, I1(1), b.add(places, bases))


def _flat(b: Builder, arguments: list[Value], addresses: Value, base: Context, limit: Context) -> None:
    """Build the check of a space that begins at 0; `base` is the word with its address, and `limit` that with its size.

    Each lane has local memory of its own.
    """
    context, *_, size = arguments
    top = b.reduced("umax", addresses)
    end = b.add(top, size)
    fits = b.and_(
        b.icmp_unsigned("<=", end, b.word(context, limit)), b.icmp_unsigned("<=", top, b.word(context, limit))
    )
    aligned = b.icmp_unsigned("==", b.and_(b.reduced("or", addresses), b.sub(size, I64(1))), I64(0))
    hosts = b.add(addresses, b.splat(b.word(context, base)))
    if base == Context.LOCAL:
        first = b.shl(b.word(context, Context.WARP_AT_HAND), I64(5))
        numbers = b.add(b.splat(first), b.lanes(I64))
        hosts = b.add(hosts, b.mul(numbers, b.splat(b.word(context, Context.LOCAL_STRIDE))))
    with when(b, b.and_(fits, aligned), likely=True):
        _answer(b, I1(1), hosts)
    _refuse(b, *arguments)


def _generic(b: Builder, arguments: list[Value], addresses: Value) -> None:
    context, given, mask, site, size = arguments
    plain = b.icmp_unsigned("<", b.reduced("umax", addresses), I64(SHARED_WINDOW))
    with when(b, plain, likely=True):
        b.ret(b.invoke("hosts.global", found_type, context, given, mask, site, size))
    first_fault = b.icmp_unsigned("==", b.word(context, Context.FAULT), I64(0))
    hosts, right = Spilled(b, b.const(I64, 0)), b.alloca(I1)
    b.store(I1(1), right)
    for space, offsets, lanes in each_window(b, addresses, mask):
        found = b.invoke(f"hosts.{space}", found_type, context, offsets, lanes, site, size)
        hosts.whole = b.select(b.truth(lanes), b.extract_value(found, 1), hosts.whole)
        b.store(b.and_(b.load(right, typ=I1), b.extract_value(found, 0)), right)
    with when(b, b.and_(b.not_(b.load(right, typ=I1)), first_fault), likely=False):
        # The report needs the addresses as the kernel sees them.
        b.set_word(context, Context.FAULT_MASK, b.zext(mask, I64))
        b.store(given, b.pointer(context, Context.FAULT_ADDRESSES), align=64)
    _answer(b, b.load(right, typ=I1), safe_addresses(b, hosts.whole, mask))


_HOSTS: dict[str, Callable[..., None]] = {
    "global": _global,
    "shared": _shared,
    "local": partial(_flat, base=Context.LOCAL, limit=Context.LOCAL_SIZE),
    "param": partial(_flat, base=Context.PARAMETERS, limit=Context.PARAMETER_SIZE),
    "workspace": partial(_flat, base=Context.WORKSPACE, limit=Context.WORKSPACE_SIZE),
    "generic": _generic,
}


def build_hosts(module: ir.Module, name: str) -> None:
    """Build the function of a space."""
    space = name.partition(".")[2]
    b, arguments = begin(module, name, found_type, [PTR, address_type(space), I32, I32, I64])
    _, given, mask, *_ = arguments
    _HOSTS[space](b, arguments, safe_addresses(b, given, mask))
