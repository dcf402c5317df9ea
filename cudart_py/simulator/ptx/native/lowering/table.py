"""Find the function that lowers an instruction.

The opcode table contains all other facts about an instruction. This table contains only the function that lowers it to
LLVM IR, for each function that emits NumPy code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...compiling.emitters import copies as numpy_copies
from ...compiling.emitters import matrices as numpy_matrices
from ...compiling.emitters import memory as numpy_memory
from ...compiling.emitters import warps as numpy_warps
from ...compiling.emitters.lowered import Lowers
from ...compiling.forms import Form
from ...syntax.instructions import Instruction
from ..errors import UnsupportedInstruction
from . import copies, matrices, memory, warps

if TYPE_CHECKING:
    from ..writing.emitter import Emitter

_LOWERINGS: dict[Any, Callable[..., None]] = {
    numpy_memory.load: memory.load, numpy_memory.store: memory.store, numpy_memory.atomic: memory.atomic,
    numpy_memory.texture: memory.texture, numpy_memory.surface: memory.surface,
    numpy_memory.system_call: memory.system_call,
    numpy_memory.fence: memory.fence, numpy_memory.nap: memory.nap, numpy_memory.nothing: memory.nothing,
    numpy_memory.policy: memory.policy, numpy_copies.copy: copies.copy, numpy_copies.copy_group: copies.copy_group,
    numpy_copies.bulk_copy: copies.bulk_copy, numpy_copies.counted: copies.counted,
    numpy_copies.mbarrier: copies.mbarrier, numpy_copies.tensor_copy: copies.execute,
    numpy_copies.tensor_map_change: copies.execute, numpy_copies.tensor_map_copy: copies.execute,
    numpy_matrices.access_units: matrices.access_units, numpy_matrices.access_rows: matrices.access_rows,
    numpy_matrices.move_matrix: matrices.move_matrix, numpy_matrices.multiply_matrices: matrices.multiply_matrices,
    numpy_warps.shuffle: warps.shuffle, numpy_warps.collective: warps.collective, numpy_warps.elect: warps.elect,
    numpy_warps.activemask: warps.activemask,
}  # fmt: skip  # rows of a table


def lowering(form: Form) -> Callable[..., None]:
    """Return the function that lowers instructions of a form; raise UnsupportedInstruction if there is none."""
    if isinstance(form.row.emit, Lowers):
        return partial(_lower, form.row.emit)
    found = _LOWERINGS.get(form.row.emit)
    if found is None:
        raise UnsupportedInstruction(form.opcode)
    return found


def _lower(lowers: Lowers, e: Emitter, i: Instruction, form: Form) -> None:
    """Lower an instruction that both engines lower in the same way."""
    for register, value in lowers.lower(e.b, i, form, partial(e.value, loose=lowers.loose)):
        e.write(register, value.raw, value.type, value.loose)
