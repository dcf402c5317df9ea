"""Barriers in memory (``mbarrier``): 64-bit words of shared memory that count arrivals and bytes.

A word holds, from its lowest bit: the pending arrivals of the current phase (20 bits), the arrivals that each phase
expects (20), the pending bytes of copies (the tx-count; 23, signed), and the phase's parity (the highest bit). The
hardware's layout is opaque to programs, so the simulator can choose its own.
"""

from __future__ import annotations

from typing import Any

from .values import Value, where

# The bits of an mbarrier's word that count the pending arrivals.
MISSING = (1 << 20) - 1
# The lowest bits of a word's other fields.
_NEEDED, _TRANSFER, PARITY = 20, 40, 63
_BYTES = (1 << 23) - 1


def pending_count(state: Value) -> Value:
    """``mbarrier.pending_count``: return the arrivals that were pending before the arrival that returned `state`."""
    return (state & MISSING).to("u32")


def initial(count: Value) -> Value:
    """``mbarrier.init``: return the word of a barrier whose phases expect `count` arrivals (u32)."""
    missing = count.to("u64") & MISSING
    return missing | missing << _NEEDED


def has_passed(word: Value, waited: Value, *, parity: bool) -> Value:
    """``mbarrier.test_wait``: return whether the phase of a state, or the phase with a parity (u64), is complete."""
    return (word >> PARITY).differs(waited & 1 if parity else waited >> PARITY)


def fields(word: int) -> tuple[int, int, int, int]:
    """Return a barrier's pending arrivals, the arrivals that a phase expects, the pending bytes, and the parity."""
    transfer = word >> _TRANSFER & _BYTES
    if transfer > _BYTES >> 1:
        transfer -= _BYTES + 1
    return word & MISSING, word >> _NEEDED & MISSING, transfer, word >> PARITY


def moved(verb: str, amount: Any) -> tuple[Any, Any]:
    """Return the arrivals of a lane, and the bytes that it adds to the pending bytes.

    `verb` is the operation (see `emitters.copies.verb_of`) and `amount` its operand: a value or an array. A result that
    does not depend on the operand is an int.
    """
    if verb == "expect_tx":
        return 0, amount
    if verb == "complete_tx":
        return 0, -amount
    return (1, amount) if verb.endswith("_expect") else (amount, 0)


def after(word: Value, arrivals: Value, transfer: Value, *, drops: bool) -> Value:
    """Return a barrier's word after at most the pending arrivals, and after `transfer` more pending bytes.

    Both are u64; bytes that have arrived are a negative number. If `drops`, later phases expect that many arrivals
    less. If nothing is pending any more, the next phase begins.
    """
    missing = (word & MISSING) - arrivals
    needed = (word >> _NEEDED) & MISSING
    if drops:
        needed = (needed - arrivals) & MISSING
    pending = ((word >> _TRANSFER) + transfer) & _BYTES
    complete = (missing | pending).equals(0)
    parity = (word >> PARITY) ^ complete.to("u64")
    return where(complete, needed, missing) | needed << _NEEDED | pending << _TRANSFER | parity << PARITY
