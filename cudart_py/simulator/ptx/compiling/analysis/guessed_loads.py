"""The loads that fetch a first guess for a compare-and-swap: they may read while other threads swap, without a race."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...syntax.instructions import Instruction, Register, Symbol, items_of
from ..opcode_table.opcodes import form_of
from .control_flow import passes_parameter

if TYPE_CHECKING:
    from ..program import Program
    from .control_flow import Code


class GuessedLoads:
    """The guessed loads of the functions of one launch, found once per function.

    Without the program, values are not followed into functions.
    """

    def __init__(self, program: Program | None = None) -> None:
        self._program = program
        self._loads: dict[str, frozenset[int]] = {}
        # The slots of each function whose values reach a comparison.
        self._compared: dict[str, frozenset[int]] = {}

    def contain(self, code: Code, site: Instruction) -> bool:
        """Return whether a load fetches the value with which a compare-and-swap compares.

        The compare-and-swap may be in a function that is called with the value.
        """
        if code.name not in self._loads:
            self._find(code)
        return id(site) in self._loads[code.name]

    def _find(self, code: Code) -> None:
        """Find the loads of a function whose values reach the comparison of a compare-and-swap through moves alone."""
        # A function that calls itself passes no guesses to itself.
        self._loads[code.name] = self._compared[code.name] = frozenset()
        writers: dict[int, list[tuple[Instruction, list[int]]]] = {}
        waiting: list[int] = []
        for instruction in code.function.instructions:
            form = form_of(instruction)
            moves = form.row.flow in ("copy", "convert") or passes_parameter(form)
            if moves or form.row.access == "ld":
                reads, writes = code.touched(instruction)
                for slot in writes:
                    writers.setdefault(slot, []).append((instruction, reads if moves else []))
            elif form.row.access == "atom" and form.operation == "cas":
                compared = instruction.operands[2]
                items = items_of(compared)
                waiting += [code.slot(item.name) for item in items if isinstance(item, Register)]
            elif form.row.ends == "call":
                waiting += self._passed(code, instruction)
        seen = set(waiting)
        loads = set()
        while waiting:
            for instruction, reads in writers.get(waiting.pop(), []):
                if form_of(instruction).row.access == "ld" and not passes_parameter(form_of(instruction)):
                    loads.add(id(instruction))
                waiting += [slot for slot in reads if slot not in seen]
                seen.update(reads)
        self._loads[code.name], self._compared[code.name] = frozenset(loads), frozenset(seen)

    def _passed(self, code: Code, instruction: Instruction) -> list[int]:
        """Return the slots of a call's arguments that the function compares."""
        call = instruction.call
        callee = None
        if self._program is not None and isinstance(call.target, Symbol):
            callee = self._program.code(call.target.name)
        site = code.call_sites.get(id(instruction))
        if callee is None or site is None:
            return []
        if callee.name not in self._compared:
            self._find(callee)
        compared = self._compared[callee.name]
        pieces = zip(callee.function.parameters, site.arguments, strict=False)
        return [
            passed[piece]
            for parameter, passed in pieces
            for piece, slot in callee.parameter_pieces.get(parameter, {}).items()
            if slot in compared and piece in passed
        ]
