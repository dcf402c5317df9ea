"""Atomics whose lanes the assembler combines: the warp adds up its values, and one lane makes the access.

The assembler does this if all lanes access one address that it knows to be the same, such as an address computed from
kernel parameters and block indices. It combines additions of one value by all lanes to integers. On 32-bit integers, it
also combines minima, maxima, bitwise operations and additions of several values if the results are not used. An
addition of several values whose result is used is combined only while all 32 lanes are active. This is what ptxas 13
does for compute capability 9.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.syntax.instructions import Register, Symbol

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Code
    from ..ptx.syntax.instructions import Instruction

# The lanes of a warp that are combined: none, those of complete warps, or all active ones.
Combined = Literal["none", "complete", "active"]
_OPERATIONS = ("add", "min", "max", "and", "or", "xor")
_WORDS = ("u32", "s32", "b32")
# The special registers that differ between the lanes of a warp, or between two reads.
_VARYING = ("%tid", "%laneid", "%lanemask", "%clock", "%globaltimer")

_known: WeakKeyDictionary[Code, frozenset[int]] = WeakKeyDictionary()


def combined_lanes(code: Code, site: Instruction, *, used: bool) -> Combined:
    """Return which lanes of an atomic are combined; `used` says that its result is used."""
    form = form_of(site)
    address, value = site.access.base, site.operands[-1]
    if form.vector > 1 or form.operation not in _OPERATIONS:
        return "none"
    if isinstance(address, Register) and not _is_uniform(code, address):
        return "none"
    adds = form.operation == "add"
    if adds and form.type in (*_WORDS, "u64") and (not isinstance(value, Register) or _is_uniform(code, value)):
        return "active"
    if form.type not in _WORDS:
        return "none"
    return "active" if not used else "complete" if adds else "none"


def _is_uniform(code: Code, register: Register) -> bool:
    return code.slot(register.name) not in _varying_slots(code)


def _varying_slots(code: Code) -> frozenset[int]:
    """Return the slots whose values may differ between the lanes of a warp, as far as the code itself shows."""
    found = _known.get(code)
    if found is None:
        varying: set[int] = set()
        grows = True
        while grows:
            before = len(varying)
            for instruction in code.function.instructions:
                reads, writes = code.touched(instruction)
                if not varying.isdisjoint(reads) or _is_source(code, instruction):
                    varying.update(writes)
            grows = len(varying) > before
        found = _known[code] = frozenset(varying)
    return found


def _is_source(code: Code, instruction: Instruction) -> bool:
    """Return whether the results of an instruction may vary although its operands don't."""
    form = form_of(instruction)
    if form.row.ends == "call" or form.row.converges or instruction.guard is not None:
        return True
    if form.row.access and not (form.row.access == "ld" and form.space in ("param", "const", "global", "shared")):
        return True
    symbols = (operand.name for operand in instruction.operands if isinstance(operand, Symbol))
    return any(name.startswith(_VARYING) for name in symbols)
