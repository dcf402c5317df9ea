"""Asynchronous copies, which are executed immediately, and the barriers in memory by which kernels wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.emitters.copies import group_event, verb_of
from ...compiling.forms import Form
from ...instructions import barriers
from ...instructions.values import Value as Typed
from ...syntax.instructions import Access, Immediate, Instruction, Operand, Register
from ...syntax.types import type_size
from ..errors import UnsupportedInstruction
from ..layout import Context
from ..library.accesses import loaded_type
from ..library.frame import Spilled, when
from ..library.mbarriers import WORDS
from ..vectors import I1, I32, I64, Builder
from .memory import atomic, located, store

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any

# The kind of operation in the library for the first word of an opcode.
_KINDS = {"arrive": "arrive", "arrive_drop": "drop", "expect_tx": "transfer", "complete_tx": "complete"}


def copy(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``cp.async`` to an immediate copy."""
    operands = i.operands[:-1] if "L2::cache_hint" in form.words else i.operands
    to, source, size = operands[:3]
    assert isinstance(to, Access)
    assert isinstance(source, Access)
    assert isinstance(size, Immediate)
    read = _bytes_read(e, operands[3], size.value) if len(operands) > 3 and operands[3] != size else None
    element, count = (4, 1) if size.value == 4 else (8, size.value // 8)
    e.accessed = True
    space, address = located(e, source, "global")
    values = _copied(e, space, address, element, count, e.sites.add(i, e.instance, 1), read)
    space, address = located(e, to, "shared")
    site = e.sites.add(i, e.instance)
    e.observe("st", space, address, size.value, site)
    e.check("store", space, address, element, count, site, values)
    if e.checking is not None:
        e.checking.issued(address, size.value, e.mask)
    e.call(f"store.{space}.{element}.{count}", ir.VoidType(), e.context, address, e.mask, I32(site), *values)


def _bytes_read(e: Emitter, operand: Operand, size: int) -> Value:
    """Return how many bytes each lane's copy reads: the operand, or 0 if the operand is a predicate that is true."""
    b = e.b
    if isinstance(operand, Register) and e.code.types[e.code.slot(operand.name)] == "pred":
        return b.select(e.value(operand, "pred"), b.const(I32, 0), b.const(I32, size))
    return e.value(operand, "u32")


def _copied(
    e: Emitter, space: str, address: Value, size: int, count: int, site: int, read: Value | None
) -> list[Value]:
    """Load the `count` elements of `size` bytes to be copied, with zeros after the bytes that are read.

    A lane that reads nothing does not access its source, and the checks and counters must not see an access either.
    """
    b = e.b
    name, kind = f"load.{space}.{size}.{count}", loaded_type(size, count)
    some = e.mask if read is None else b.and_(b.bits(b.compare("!=", read, 0)), e.mask)
    copied = [Spilled(b, b.const(ir.IntType(8 * size), 0)) for _ in range(count)]
    with when(b, b.icmp_unsigned("!=", some, I32(0)), likely=True):
        e.observe("ld", space, address, size * count, site, some)
        e.check("load", space, address, size, count, site, mask=some)
        loaded = e.call(name, kind, e.context, address, some, I32(site))
        for index, elements in enumerate(copied):
            elements.whole = loaded if count == 1 else b.extract_value(loaded, index)
    values = [elements.whole for elements in copied]
    return values if read is None else [_cut(b, value, read, size * index) for index, value in enumerate(values)]


def _cut(b: Builder, value: Value, read: Value, first: int) -> Value:
    """Return the elements at byte `first` of the copied bytes, with zeros after the bytes that are read."""
    element = value.type.element
    end = b.const(I32, first + element.width // 8)
    missing = b.resized(b.sub(end, b.least(read, end, False)), element, False)
    return b.and_(value, b.shift_right(b.const(element, -1), b.shl(missing, b.const(element, 3)), False))


def copy_group(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower the end of a group of copies, or a wait for groups, for the checks: copies are made at once."""
    if e.checking is not None:
        if form.row.access == "bulk":
            raise UnsupportedInstruction("checks of bulk copies from shared memory")
        e.checking.group(*group_event(i, form), e.mask)


# --- bulk copies


def bulk_copy(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``cp.async.bulk`` between global and shared memory.

    Python makes the copies that are misaligned or out of bounds, those that reduce, and those within a cluster.
    """
    if "global" not in form.spaces or "multicast::cluster" in form.words:
        execute(e, i, form)
        return
    if e.checking is not None and "bulk_group" in form.words:
        raise UnsupportedInstruction("checks of bulk copies from shared memory")
    b = e.b
    to, source, size, *rest = i.operands
    assert isinstance(to, Access)
    assert isinstance(source, Access)
    (_, written), (_, read) = located(e, to, form.spaces[0]), located(e, source, form.spaces[1])
    inwards = form.spaces[1] == "global"
    sizes = e.value(size, "u32")
    barrier = located(e, rest[0], "shared") if rest and isinstance(rest[0], Access) else None
    if e.checking is not None:
        assert barrier is not None
        e.checking.bulk_copy(e.sites.add(i, e.instance, 1), e.mask, written, read, sizes, barrier[1])
    places = (written, read) if inwards else (read, written)
    copied = I1(0)
    if not form.types:
        copied = e.call(f"bulk.{'shared' if inwards else 'global'}", I1, e.context, *places, sizes, e.mask)
    e.execute(i, condition=b.not_(copied))
    if barrier is not None:
        mask = b.select(copied, e.mask, I32(0))
        _complete(e, *barrier, e.sites.add(i, e.instance, 3), b.resized(sizes, I64, False), mask)


def execute(e: Emitter, i: Instruction, form: Form) -> None:
    """Let Python execute a copy of a box or within a cluster, or a change of a tensor map."""
    if e.checking is not None:
        raise UnsupportedInstruction("checks of tensor copies and of bulk copies within a cluster")
    e.execute(i)


def counted(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``st.async`` and ``red.async``, whose bytes a barrier counts."""
    if e.checking is not None:
        raise UnsupportedInstruction("checks of stores whose bytes a barrier counts")
    (store if form.row.access == "st" else atomic)(e, i, form)
    barrier = i.operands[-1]
    assert isinstance(barrier, Access)
    space, address = located(e, barrier, form.space)
    site = e.sites.add(i, e.instance, len(i.operands) - 1)
    _complete(e, space, address, site, e.b.const(I64, type_size(form.type) * form.vector), e.mask)


# --- barriers in memory


def mbarrier(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower an operation on a barrier, or the arrival of asynchronous copies there."""
    b, verb = e.b, verb_of(form)
    access = i.access
    others = [operand for operand in i.operands[form.writes_first :] if operand is not access]
    space, address = located(e, access, form.space)
    site = e.sites.add(i, e.instance, i.operands.index(access))
    given = _number(e, others[0]) if others else b.const(I64, 1)
    e.accessed = True
    if e.checking is not None:
        counted = verb.startswith("arrive") and not verb.endswith(("_expect", "_extra"))
        e.checking.barrier(form, space, address, site, e.mask, given if counted else b.const(I64, 1))
    none = b.const(I64, 0)
    if form.row.spins:
        # Python is told of the wait if it looks for a deadlock; it finds the same result.
        e.execute(i, condition=b.icmp_unsigned("!=", b.word(e.context, Context.TELL_WAITS), I64(0)))
        word = _operate(e, "look", space, address, site, none, none)
        passed = barriers.has_passed(_typed(e, word), _typed(e, given), parity="parity" in form.words)
        e.write(i.operands[0], passed.raw, "pred")
        return
    if verb == "arrive_extra":
        _operate(e, "look", space, address, site, none, none)
        return
    if verb in ("init", "inval"):
        count = Typed(b, "u32", b.resized(given, I32, False))
        _operate(e, "set", space, address, site, none if verb == "inval" else barriers.initial(count).raw, none)
        return
    partly = "_partly" if verb.endswith("_nocomplete") else ""
    kind = _KINDS[verb.removesuffix("_nocomplete").removesuffix("_expect")]
    amounts = (
        amount.raw if isinstance(amount, Typed) else b.const(I64, amount)
        for amount in barriers.moved(verb, _typed(e, given))
    )
    state = _operate(e, kind + partly, space, address, site, *amounts)
    if form.writes_first:
        e.write(i.operands[0], state, "b64")


def _complete(e: Emitter, space: str, address: Value, site: int, bytes: Value, mask: Value) -> None:
    """Generate the arrival of each lane's bytes at its barrier."""
    b = e.b
    with when(b, b.icmp_unsigned("!=", mask, I32(0))):
        none = b.const(I64, 0)
        e.call(f"mbarrier.complete.{space}", WORDS, e.context, address, mask, I32(site), none, b.sub(none, bytes))


def _operate(e: Emitter, kind: str, space: str, address: Value, site: int, arrivals: Value, transfer: Value) -> Value:
    return e.call(f"mbarrier.{kind}.{space}", WORDS, e.context, address, e.mask, I32(site), arrivals, transfer)


def _number(e: Emitter, operand: Operand) -> Value:
    """Return an operand of 32 or 64 bits as a 64-bit integer."""
    wide = isinstance(operand, Register) and e.code.types[e.code.slot(operand.name)] == "b64"
    return e.b.resized(e.value(operand, "u64" if wide else "u32"), I64, False)


def _typed(e: Emitter, raw: Value) -> Typed:
    return Typed(e.b, "u64", raw)
