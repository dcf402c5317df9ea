"""Find what lowers an instruction: by its opcode, and by the kind of number that it works on.

The table of opcodes has all facts about an instruction. Here stands only which function writes it for LLVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compiling.forms import Form
from ..errors import NotNative
from . import arithmetic, bits, comparisons, conversions, halves, integers, memory, movement, system, warps

_FLOATS = ("f32", "f64")
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")
_ANY: dict[str, Any] = {
    **bits.LOWERINGS, **comparisons.LOWERINGS, **conversions.LOWERINGS, **memory.LOWERINGS, **movement.LOWERINGS,
    **system.LOWERINGS, **warps.LOWERINGS,
}  # fmt: skip  # one table after the other


def lowering(form: Form) -> Callable[..., None]:
    """Return the function that writes instructions of a form; raise NotNative where there is none."""
    if "mbarrier::complete_tx::bytes" in form.words:
        raise NotNative("barriers in memory")
    name = form.row.name
    found = _ANY.get(name)
    if found is None:
        kind = form.types[-1] if form.types else ""
        table = arithmetic if kind in _FLOATS else halves if kind in _HALVES else integers
        found = table.LOWERINGS.get(name)
    if found is None:
        raise NotNative(form.opcode)
    return found  # type: ignore[no-any-return]  # because the tables hold any
