"""Operations on barriers in memory, for all lanes of a warp that execute an instruction.

``mbarrier.KIND.SPACE(context, addresses, mask, site, arrivals, transfer)`` returns the words that the lanes' barriers
had before. `KIND` is "look" for an operation that changes nothing, "set" for one that stores the words in `arrivals`,
"transfer" and "complete" for changes of the pending bytes by `transfer`, and "arrive" or "drop" for arrivals. The
amounts of all lanes at a barrier are added up, but "complete" adds them one after another. After "_partly", each lane
gets the word before its own arrivals.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions import barriers
from ...instructions.values import Value as Typed
from ..layout import Context, Fault
from ..vectors import I32, I64, PTR, Builder, vector
from .frame import begin, each_active, element, record_fault, when
from .hosts import address_type, checked

Value = Any
WORDS = vector(I64)


def build_mbarrier(module: ir.Module, name: str) -> None:
    """Build one operation."""
    _, verb, space = name.split(".")
    kind, _, partly = verb.partition("_")
    given_types = [PTR, address_type(space), I32, I32, WORDS, WORDS]
    b, (context, given, mask, site, arrivals, transfer) = begin(module, name, WORDS, given_types)
    right, hosts = checked(b, space, context, given, mask, site, 8)
    with when(b, b.not_(right), likely=False):
        b.ret(b.const(I64, 0))
    rest, before = b.alloca(I32), b.alloca(WORDS)
    b.store(mask, rest)
    b.store(b.const(I64, 0), before, align=64)
    head, body, after = (b.append_basic_block() for _ in range(3))
    b.branch(head)
    b.position_at_end(head)
    left = b.load(rest, typ=I32)
    b.cbranch(b.icmp_unsigned("!=", left, I32(0)), body, after)
    b.position_at_end(body)
    # The lowest barrier first, as in the NumPy engine, so that both report the same fault.
    host = b.reduced("umin", b.select(b.truth(left), hosts, b.const(I64, -1)))
    same = b.and_(b.bits(b.icmp_unsigned("==", hosts, b.splat(host))), left)
    if kind in ("complete", "set"):
        same = b.and_(same, b.sub(I32(0), same))
    b.store(b.and_(left, b.not_(same)), rest)
    lanes, place = b.truth(same), b.inttoptr(host, PTR)
    word = b.load(place, typ=I64)
    ahead = b.const(I64, 0)
    if kind == "set":
        b.store(b.extract_element(arrivals, b.trailing_zeros(same)), place)
    elif kind != "look":
        arrived, moved = (b.reduced("add", b.select(lanes, each, b.const(I64, 0))) for each in (arrivals, transfer))
        if kind in ("arrive", "drop"):
            with when(b, b.icmp_unsigned(">", arrived, b.and_(word, I64(barriers.MISSING))), likely=False):
                record_fault(b, context, Fault.ARRIVALS, site, same, given)
                b.store(arrivals, b.pointer(context, Context.EXCHANGE), align=64)
                b.ret(b.const(I64, 0))
        operands = (Typed(b, "u64", b.splat(one)) for one in (word, arrived, moved))
        b.store(b.extract_element(barriers.after(*operands, drops=kind == "drop").raw, I32(0)), place)
        if partly:
            ahead = _ahead(b, same, arrivals)
    now = b.select(lanes, b.sub(b.splat(word), ahead), b.load(before, typ=WORDS, align=64))
    b.store(now, before, align=64)
    b.branch(head)
    b.position_at_end(after)
    b.ret(b.load(before, typ=WORDS, align=64))


def _ahead(b: Builder, lanes: Value, amounts: Value) -> Value:
    """Return the sum of the amounts of the lanes before each lane, among some lanes."""
    kept, sums, total = b.alloca(WORDS), b.alloca(WORDS), b.alloca(I64)
    b.store(amounts, kept, align=64)
    b.store(I64(0), total)

    def add(lane: Value) -> None:
        place, so_far = b.zext(lane, I64), b.load(total, typ=I64)
        b.store(so_far, element(b, sums, place, I64))
        b.store(b.add(so_far, b.load(element(b, kept, place, I64), typ=I64)), total)

    each_active(b, lanes, add)
    return b.load(sums, typ=WORDS, align=64)
