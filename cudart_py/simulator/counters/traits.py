"""Traits: the facts about an instruction that decide how its accesses are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..ptx.compiling.opcode_table.opcodes import form_of
from .banks import Kind
from .combining import Combined, combined_lanes

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Code
    from ..ptx.syntax.instructions import Instruction


class Traits(NamedTuple):
    """The facts about an instruction on which the counts of its accesses depend.

    `given` is the kind that an observer is told, and `kind` the one that is counted. `copies` says that it is an
    asynchronous copy, and `bypasses` that this copy bypasses the L1 cache. `combined` are the lanes of an atomic that
    the assembler combines. `wavefronts` is the kind of its wavefronts in shared memory. `by_halves` says that L2 takes
    the sectors of an atomic in two halves.
    """

    given: str
    kind: str
    copies: bool
    bypasses: bool
    combined: Combined
    wavefronts: Kind
    by_halves: bool


def traits_of(code: Code, kind: str, site: Instruction) -> Traits:
    """Return the facts about an instruction; as in hardware, an atomic whose result is never read is a reduction."""
    form = form_of(site)
    copies = form.row.access == "cp"
    if kind not in ("atom", "red"):
        counted = "ld" if kind == "bypass" else kind
        wavefronts: Kind = "load" if counted == "ld" else "store"
        return Traits(kind, counted, copies, copies and "cg" in form.words, "none", wavefronts, False)
    used = kind == "atom" and _is_result_used(code, site)
    exchanges = form.operation in ("exch", "cas")
    counted = "atom" if used or exchanges else "red"
    combined = combined_lanes(code, site, used=used)
    # Combined lanes share a word as those of a store do.
    wavefronts = "store" if combined == "active" else "swap" if form.operation == "cas" else "atomic"
    return Traits(kind, counted, False, False, combined, wavefronts, by_halves=form.type == "f64")


def _is_result_used(code: Code, site: Instruction) -> bool:
    results = set(code.touched(site)[1])
    return any(results.intersection(code.touched(other)[0]) for other in code.function.instructions)
