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
from ..layout import LANES, Context, Fault
from ..vectors import I32, I64, PTR, Builder, vector
from .frame import Spilled, begin, each_group, lowest, record_fault, when
from .hosts import address_type, checked

Value = Any
WORDS = vector(I64)


def build_mbarrier(module: ir.Module, name: str) -> None:
    """Build one operation."""
    _, verb, space = name.split(".")
    kind, _, partly = verb.partition("_")
    given_types = [PTR, address_type(space), I32, I32, WORDS, WORDS]
    b, (context, given, mask, site, arrivals, transfer) = begin(module, name, WORDS, given_types)
    hosts = checked(b, space, context, given, mask, site, 8)
    before = Spilled(b, b.const(I64, 0))
    # The lowest barrier first, as in the NumPy engine, so that both report the same fault.
    at_barrier = lowest(b, hosts)

    def choose(left: Value) -> Value:
        same = at_barrier(left)
        return b.and_(same, b.sub(I32(0), same)) if kind in ("complete", "set") else same

    def operate(same: Value) -> None:
        first, lanes = b.trailing_zeros(same), b.truth(same)
        place = b.inttoptr(b.extract_element(hosts, first), PTR)
        word = b.load(place, typ=I64)
        ahead = b.const(I64, 0)
        if kind == "set":
            b.store(b.extract_element(arrivals, first), place)
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
        before.whole = b.select(lanes, b.sub(b.splat(word), ahead), before.whole)

    each_group(b, mask, choose, operate)
    b.ret(before.whole)


def _ahead(b: Builder, lanes: Value, amounts: Value) -> Value:
    """Return the sum of the amounts of the lanes before each lane, among some lanes."""
    none = b.const(I64, 0)
    own = total = b.select(b.truth(lanes), amounts, none)
    for step in (1, 2, 4, 8, 16):
        before = b.each(I32, [lane - step if lane >= step else LANES for lane in range(LANES)])
        total = b.add(total, b.shuffle_vector(total, none, before))
    return b.sub(total, own)
