"""Find the kernels whose subnormal numbers the processor itself can flush to zero, as ``.ftz`` asks."""

from __future__ import annotations

import platform

from ...compiling.forms import Form
from ...compiling.opcodes import form_of
from ..instances import Layout

# What moves bits, whatever they mean.
_MOVES = {"mov", "selp", "copysign", "testp"}
_OTHER_FLOATS = {"f64", "f16", "bf16", "f16x2", "bf16x2"}


def processor_flushes(layout: Layout) -> bool:
    """Return whether all arithmetic on floats of a kernel is of single precision and flushes.

    Then the processor is told to flush operands and results for the whole launch. An x86-64 processor takes a result
    for subnormal as a GPU does: by its value rounded to 24 bits with no least exponent. What LLVM would compute
    instead of the processor, the builder hides from it (`Builder.operands`).
    """
    forms = [form_of(instruction) for place in layout.places for instruction in place.block.instructions]
    asked = any("ftz" in form.words for form in forms)
    return asked and platform.machine() == "x86_64" and all(_agrees(form) for form in forms)


def _agrees(form: Form) -> bool:
    """Return whether an instruction does the same while the processor flushes."""
    if form.row.name == "call":
        # The system's functions compute with floats of their own.
        return False
    if form.row.access in ("ld", "st") or form.row.name in _MOVES or not form.types:
        return True
    if _OTHER_FLOATS.intersection(form.types):
        return False
    if "f32" not in form.types:
        return True
    if form.row.access:
        # Sums in shared memory don't flush.
        return form.space == "global"
    if form.row.name == "cvt" and form.types[-1] != "f32":
        return _rounds_to_nearest(form)
    return "ftz" in form.words and _rounds_to_nearest(form)


def _rounds_to_nearest(form: Form) -> bool:
    return not {"rz", "rm", "rp"}.intersection(form.modifiers)
