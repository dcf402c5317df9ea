"""Decide for which kernels the processor itself can flush subnormal numbers to zero, as ``.ftz`` requires."""

from __future__ import annotations

import platform

from ...compiling.forms import Form
from ...compiling.opcode_table.opcodes import form_of
from ..instances import Layout

# Instructions that only move or test bits.
_MOVES = {"mov", "selp", "copysign", "testp"}
_OTHER_FLOATS = {"f64", "f16", "bf16", "f16x2", "bf16x2"}


def processor_flushes(layout: Layout) -> bool:
    """Return whether all of a kernel's floating-point arithmetic is single precision and flushes subnormal numbers.

    Then the processor is set to flush operands and results for the whole launch. An x86-64 processor detects a
    subnormal result as a GPU does: after rounding to 24 bits with an unbounded exponent. LLVM would fold some
    operations without flushing, so the builder hides their operands from it (`Builder.operands`).
    """
    forms = [form_of(instruction) for place in layout.places for instruction in place.block.instructions]
    asked = any("ftz" in form.words for form in forms)
    return asked and platform.machine() == "x86_64" and all(_agrees(form) for form in forms)


def _agrees(form: Form) -> bool:
    """Return whether an instruction gives the right result while the processor flushes."""
    if form.row.name == "call":
        # System functions run Python code with its own floating-point arithmetic, which must not flush.
        return False
    if form.row.access in ("ld", "st") or form.row.name in _MOVES or not form.types:
        return True
    if _OTHER_FLOATS.intersection(form.types):
        return False
    if "f32" not in form.types:
        return True
    if form.row.access:
        # Atomic additions in shared memory don't flush.
        return form.space == "global"
    if form.row.name == "cvt" and form.types[-1] != "f32":
        return _rounds_to_nearest(form)
    return "ftz" in form.words and _rounds_to_nearest(form)


def _rounds_to_nearest(form: Form) -> bool:
    return not {"rz", "rm", "rp"}.intersection(form.modifiers)
