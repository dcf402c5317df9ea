"""System calls, and asynchronous copies, which are executed immediately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.emitters.memory import is_runtime_function
from ...compiling.forms import Form
from ...syntax.instructions import Access, Call, Immediate, Instruction, Operand, Register, Symbol
from ..errors import UnsupportedInstruction
from ..library.accesses import loaded_type
from ..library.frame import Spilled, when
from ..vectors import I32, Builder
from .mbarriers import mbarrier
from .memory import located

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any


def system_call(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower a call to printf, the heap's functions or the handler of a failed assertion, which Python answers."""
    call = i.operands[0]
    assert isinstance(call, Call)
    assert isinstance(call.target, Symbol)
    if is_runtime_function(call.target.name):
        raise UnsupportedInstruction("a call of the runtime's functions for kernels")
    e.execute(i)
    e.take_results(i)


def copy(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower ``cp.async`` to an immediate copy; only the checks need groups of copies and the waits for them."""
    if "prefetch" in form.words:
        return
    if "wait_group" in form.words or "commit_group" in form.words or "wait_all" in form.words:
        allowed = i.operands[0].value if i.operands and isinstance(i.operands[0], Immediate) else 0
        if e.checking is not None:
            e.checking.group(form.words[1].removesuffix("_group"), allowed, e.mask)
        return
    if "mbarrier" in form.words:
        mbarrier(e, i, form)
        return
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


LOWERINGS: dict[str, Any] = {"call": system_call, "cp": copy}
