"""Count bank conflicts: how many words of shared memory the busiest bank must serve.

``most.different(words, mask)`` returns the largest number of different words in one bank, and ``most.all`` the largest
number of lanes that access one bank; both are 0 for an empty mask. For wider accesses, `words` are each lane's first
words: if these share a bank, so do the others.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..vectors import I8, I32, I64, vector
from .frame import Spilled, begin, each_active, when
from .hosts import safe_addresses

Value = Any
_BANKS = 32


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
