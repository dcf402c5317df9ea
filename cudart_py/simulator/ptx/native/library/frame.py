"""Helpers that begin the library's functions and generate their loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from ..layout import LANES, SLOT_BYTES, Context, Fault, HostCall, Status
from ..vectors import I32, I64, Builder, vector

Value = Any


def begin(module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> tuple[Builder, list[Value]]:
    """Start a function; return a builder at its first block, and its arguments."""
    known = module.globals.get(name)
    function = known or ir.Function(module, ir.FunctionType(result, arguments), name)
    function.attributes.add("nounwind")
    return Builder(function.append_basic_block("entry")), list(function.args)


@contextmanager
def when(b: Builder, condition: Value, likely: bool | None = None) -> Iterator[None]:
    """Generate code that runs only under a condition; control continues after it unless that code returns."""
    inside, after = b.append_basic_block(), b.append_basic_block()
    branch = b.cbranch(condition, inside, after)
    if likely is not None:
        branch.set_weights([99, 1] if likely else [1, 99])
    b.position_at_end(inside)
    yield
    if not b.block.is_terminated:
        b.branch(after)
    b.position_at_end(after)


def give_up(b: Builder) -> None:
    """Return from a function without a result, or with zero."""
    kind = b.function.function_type.return_type
    if isinstance(kind, ir.VoidType):
        b.ret_void()
    else:
        b.ret(ir.Constant(kind, None))


def words_at(b: Builder, base: Value, places: Value) -> Value:
    """Return one word of an array per lane, at the lane's own index."""
    found: Value = ir.Constant(vector(I64), ir.Undefined)
    for lane in range(LANES):
        word = b.load(element(b, base, b.extract_element(places, I32(lane)), I64), typ=I64)
        found = b.insert_element(found, word, I32(lane))
    return found


def repeat(
    b: Builder,
    firsts: Sequence[Value],
    goes_on: Callable[..., Value],
    body: Callable[..., Sequence[Value]],
) -> list[Value]:
    """Generate a loop over values that begin as `firsts`, as long as `goes_on` is true of them; return the last values.

    `body` is called with the values, and returns the next ones.
    """
    start, inside, after = b.block, b.append_basic_block(), b.append_basic_block()
    b.cbranch(goes_on(*firsts), inside, after)
    b.position_at_end(inside)
    values = [b.phi(first.type) for first in firsts]
    following = body(*values)
    end = b.block
    b.cbranch(goes_on(*following), inside, after)
    b.position_at_end(after)
    lasts = [b.phi(first.type) for first in firsts]
    for phi, first, next_ in zip([*values, *lasts], [*firsts] * 2, [*following] * 2, strict=True):
        phi.add_incoming(first, start)
        phi.add_incoming(next_, end)
    return lasts


def each_active(b: Builder, mask: Value, body: Callable[[Value], None]) -> None:
    """Generate a loop over the lanes of a mask in ascending order; `body` is called with the lane's index."""

    def serve(left: Value) -> list[Value]:
        body(b.trailing_zeros(left))
        return [b.and_(left, b.sub(left, I32(1)))]

    repeat(b, [mask], lambda left: b.icmp_unsigned("!=", left, I32(0)), serve)


def each_group(b: Builder, mask: Value, choose: Callable[[Value], Value], body: Callable[[Value], None]) -> None:
    """Generate a loop over groups of lanes, until all lanes of the mask have been in one.

    `choose` returns the group to serve next, of the lanes in a mask that are left, and `body` is called with its mask.
    """

    def serve(left: Value) -> list[Value]:
        group = choose(left)
        body(group)
        return [b.and_(left, b.not_(group))]

    repeat(b, [mask], lambda left: b.icmp_unsigned("!=", left, I32(0)), serve)


def alike(b: Builder, values: Value) -> Callable[[Value], Value]:
    """Return a function for `each_group` that returns the lanes whose value is that of the first lane of a mask."""

    def choose(left: Value) -> Value:
        first = b.extract_element(values, b.trailing_zeros(left))
        return b.and_(b.bits(b.icmp_unsigned("==", values, b.splat(first))), left)

    return choose


def lowest(b: Builder, values: Value) -> Callable[[Value], Value]:
    """Return a function for `each_group` that returns the lanes whose value is the lowest among the lanes of a mask."""

    def choose(left: Value) -> Value:
        least = b.reduced("umin", b.select(b.truth(left), values, b.like(values, -1)))
        return b.and_(b.bits(b.icmp_unsigned("==", values, b.splat(least))), left)

    return choose


def each_number(b: Builder, count: int | Value, body: Callable[[Value], None], first: int = 0, step: int = 1) -> None:
    """Generate a loop over every `step`-th number from `first` to below `count`; `body` is called with the number.

    Numbers have the type of `count`; if it is an int, they have 32 bits.
    """
    end = I32(count) if isinstance(count, int) else count

    def serve(number: Value) -> list[Value]:
        body(number)
        return [b.add(number, end.type(step))]

    repeat(b, [end.type(first)], lambda number: b.icmp_unsigned("<", number, end), serve)


class Spilled:
    """A vector in the function's memory, whose elements a loop over lanes reads and writes one at a time."""

    def __init__(self, b: Builder, values: Value) -> None:
        self._b, self._type = b, values.type
        self._place = b.alloca(values.type)
        b.store(values, self._place, align=64)

    def _at(self, lane: Value) -> Value:
        number = lane if lane.type == I64 else self._b.zext(lane, I64)
        return element(self._b, self._place, number, self._type.element)

    def get(self, lane: Value) -> Value:
        """Return the element of a lane."""
        return self._b.load(self._at(lane), typ=self._type.element)

    def put(self, lane: Value, value: Value) -> None:
        """Set the element of a lane."""
        self._b.store(value, self._at(lane))

    @property
    def whole(self) -> Value:
        """Return all elements."""
        return self._b.load(self._place, typ=self._type, align=64)

    @whole.setter
    def whole(self, values: Value) -> None:
        self._b.store(values, self._place, align=64)


def element(b: Builder, base: Value, index: Value, kind: ir.Type) -> Value:
    """Return the pointer to an element of an array."""
    return b.gep(base, [index], source_etype=kind)


def ask_python(b: Builder, context: Value, call: HostCall, number: Value) -> None:
    """Generate a call to Python (see `host_calls`)."""
    b.set_word(context, Context.HOST_CALL, I64(call))
    b.invoke_at(b.at(context, 8 * Context.PYTHON), number)


def ask_about(b: Builder, context: Value, call: HostCall, lanes: Value, site: int | Value, *exchanged: Value) -> None:
    """Generate a call to Python about lanes at a site, after storing one row of words or more for all lanes."""
    exchange = b.pointer(context, Context.EXCHANGE)
    for slot, values in enumerate(exchanged):
        b.store(values, b.at(exchange, slot * SLOT_BYTES), align=64)
    number = I64(site) if isinstance(site, int) else b.zext(site, I64)
    ask_python(b, context, call, b.or_(b.shl(b.zext(lanes, I64), I64(LANES)), number))


def record_fault(
    b: Builder, context: Value, kind: Fault, site: Value, mask: Value, addresses: Value, size: Value = None
) -> None:
    """Record a fault's kind and site, the lanes with their addresses, and the size of an access.

    If the launch already has a fault, only that one is kept.
    """
    with when(b, b.icmp_unsigned("==", b.word(context, Context.FAULT), I64(0))):
        b.set_word(context, Context.FAULT, I64(kind))
        b.set_word(context, Context.FAULT_SITE, b.zext(site, I64))
        b.set_word(context, Context.FAULT_MASK, b.zext(mask, I64))
        if size is not None:
            b.set_word(context, Context.FAULT_SIZE, size)
        if addresses is not None:
            wide = b.resized(addresses, I64, True)
            b.store(wide, b.pointer(context, Context.FAULT_ADDRESSES), align=64)


def fault_if(b: Builder, context: Value, lanes: Value, kind: Fault, site: int, addresses: Value = None) -> None:
    """Return from a warp's function with a fault of some lanes, if there are any."""
    with when(b, b.icmp_unsigned("!=", lanes, I32(0)), likely=False):
        record_fault(b, context, kind, I32(site), lanes, addresses)
        b.ret(I32(Status.FAULT))
