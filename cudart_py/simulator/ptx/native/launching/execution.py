"""Execute instructions for machine code as the NumPy engine does: those that it can't execute, or only in simple cases.

Machine code passes the registers that an instruction reads in the exchange buffer, and finds those that the instruction
writes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...compiling.codegen import compile_instruction, exchanged_slots
from ...syntax.instructions import Call, Symbol
from ...syntax.types import dtype_of
from ..layout import Context
from .reports import asked, with_memory
from .speculation import SpeculationFailed

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from .launch import NativeLaunch


def execute(launch: NativeLaunch, number: int) -> None:
    """Execute an instruction for some lanes; the number is as in `asked`."""
    block = int(launch.context[Context.BLOCK])
    site, group, places = asked(launch, number)
    chunk = with_memory(launch, group).chunk
    code, function = group.code, _system_function(site.instruction)
    if launch.speculation is not None and function not in ("", "vprintf", "__assertfail"):
        # The effects of the call can't be undone. Output is kept until the end, and a failed assertion is the end.
        raise SpeculationFailed
    reads, writes = exchanged_slots(code, site.instruction)
    group.registers = [None] * len(code.types)
    for slot, row in zip(reads, launch.exchange, strict=False):
        group.registers[slot] = row.view(dtype_of(code.types[slot]))[places]
    environment = launch.state.program.environment(launch.state.plan.uniform_specials, False)
    try:
        compile_instruction(code, site.instruction, environment)(group, group.registers)
    finally:
        launch.printed += [(block, text, size) for _, text, size in chunk.printed]
    if function in ("malloc", "free"):
        launch.place_extents()
    for slot, row in zip(writes, launch.exchange, strict=False):
        row.view(dtype_of(code.types[slot]))[places] = group.registers[slot]


def _system_function(instruction: Instruction) -> str:
    """Return the name of the system function that an instruction calls, or an empty string if it is no call."""
    call = instruction.operands[0] if instruction.operands else None
    return call.target.name if isinstance(call, Call) and isinstance(call.target, Symbol) else ""
