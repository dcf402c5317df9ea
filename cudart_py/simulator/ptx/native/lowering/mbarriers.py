"""Operations on barriers in memory (``mbarrier``), and arrivals of asynchronous copies there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.emitters.copies import verb_of
from ...compiling.forms import Form
from ...instructions import barriers
from ...instructions.values import Value as Typed
from ...syntax.instructions import Access, Instruction, Operand, Register
from ..layout import Context
from ..library.frame import when
from ..library.mbarriers import WORDS
from ..vectors import I32, I64
from .memory import located

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

Value = Any

# The kind of operation in the library for the first word of an opcode.
_KINDS = {"arrive": "arrive", "arrive_drop": "drop", "expect_tx": "transfer", "complete_tx": "complete"}


def mbarrier(e: Emitter, i: Instruction, form: Form) -> None:
    """Lower an operation on a barrier."""
    b, verb = e.b, verb_of(form)
    access = next(operand for operand in i.operands if isinstance(operand, Access))
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
        e.sites.waits = True
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


def complete(e: Emitter, space: str, address: Value, site: int, bytes: Value, mask: Value) -> None:
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


LOWERINGS: dict[str, Any] = {"mbarrier": mbarrier}
