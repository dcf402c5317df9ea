"""Find the function that lowers an instruction.

The opcode table contains all other facts about an instruction. This table contains only the function that lowers it to
LLVM IR.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...compiling.emitters.lowered import Lowers
from ...compiling.emitters.memory import further_texture
from ...compiling.forms import Form
from ...syntax.instructions import Instruction
from ..errors import UnsupportedInstruction
from . import bulk_copies, matrices, mbarriers, memory, movement, objects, system, warps

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

_LOWERINGS: dict[str, Any] = {
    **bulk_copies.LOWERINGS, **matrices.LOWERINGS, **mbarriers.LOWERINGS, **memory.LOWERINGS, **movement.LOWERINGS,
    **objects.LOWERINGS, **system.LOWERINGS, **warps.LOWERINGS,
}  # fmt: skip  # one table after the other


def lowering(form: Form) -> Callable[..., None]:
    """Return the function that lowers instructions of a form; raise UnsupportedInstruction if there is none."""
    if (form.row.name == "cp" and form.row.access == "bulk") or "mbarrier::complete_tx::bytes" in form.words:
        return bulk_copies.lowering(form)
    if form.row.emit is further_texture:
        raise UnsupportedInstruction(form.opcode)
    if isinstance(form.row.emit, Lowers):
        return partial(_lower, form.row.emit)
    found = _LOWERINGS.get(form.row.name)
    if found is None:
        raise UnsupportedInstruction(form.opcode)
    return found  # type: ignore[no-any-return]  # because the tables hold any


def _lower(lowers: Lowers, e: Emitter, i: Instruction, form: Form) -> None:
    """Lower an instruction that both engines lower in the same way."""
    for register, value in lowers.lower(e.b, i, form, partial(e.value, loose=lowers.loose)):
        e.write(register, value.raw, value.type, value.loose)
