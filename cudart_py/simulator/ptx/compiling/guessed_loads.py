"""The loads that fetch a first guess for a compare-and-swap: they may read while other threads swap, without a race."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..syntax.instructions import Instruction, Register, Vector
from .opcodes import form_of

if TYPE_CHECKING:
    from .control_flow import Code


class GuessedLoads:
    """The guessed loads of the functions of one launch, found once per function."""

    def __init__(self) -> None:
        self._loads: dict[int, frozenset[int]] = {}

    def contain(self, code: Code, site: Instruction) -> bool:
        """Return whether a load fetches the value with which a compare-and-swap of the same function compares."""
        known = self._loads.get(id(code))
        if known is None:
            known = self._loads[id(code)] = _guessed_loads(code)
        return id(site) in known


def _guessed_loads(code: Code) -> frozenset[int]:
    """Return the loads of a function whose values reach the comparison of a compare-and-swap through moves alone."""
    writers: dict[int, list[tuple[Instruction, list[int]]]] = {}
    waiting: list[int] = []
    for instruction in code.function.instructions:
        form = form_of(instruction)
        moves = form.row.flow in ("copy", "convert")
        if moves or form.row.access == "ld":
            reads, writes = code.touched(instruction)
            for slot in writes:
                writers.setdefault(slot, []).append((instruction, reads if moves else []))
        elif form.row.access == "atom" and form.operation == "cas":
            compared = instruction.operands[2]
            items = compared.items if isinstance(compared, Vector) else (compared,)
            waiting += [code.slot(item.name) for item in items if isinstance(item, Register)]
    seen = set(waiting)
    loads = set()
    while waiting:
        for instruction, reads in writers.get(waiting.pop(), []):
            if form_of(instruction).row.access == "ld":
                loads.add(id(instruction))
            waiting += [slot for slot in reads if slot not in seen]
            seen.update(reads)
    return frozenset(loads)
