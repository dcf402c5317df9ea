"""Marks of uninitialised values in registers, followed until they reach an address, a branch or a store.

Reading uninitialised bytes is no mistake by itself: padding is copied, and a lane may ignore a value that it has read.
So a register that received such a value is marked for the lanes concerned, byte by byte, and the marks pass from
operands to results. Instructions that choose (selections, comparisons) pass them only when all their operands are
marked; and a store is reported only where no byte of what it stores is defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ptx.compiling.control_flow import passes_parameter
from ...ptx.compiling.forms import Form
from ...ptx.compiling.opcodes import form_of
from ...ptx.syntax.instructions import Access, Instruction, Register, Vector
from ...ptx.syntax.types import TYPE_SIZES
from .byte_rules import Rule, loaded, rules, undefined
from .matrix_rules import MatrixRule

if TYPE_CHECKING:
    from ...ptx.compiling.control_flow import Block, Code
    from ...ptx.running.groups import Group

__all__ = ["Marks"]

Array = NDArray[Any]

# Returns a text that says where a marked value came from.
Origin = Callable[[], str]
# What a mark reached: "an address", "a branch" or "a store", the instruction, the position of a lane, and the register.
Reached = tuple[str, Instruction, int, int]


class _Step(NamedTuple):
    """What an instruction does with marks: `stored` are the slots that it stores `size` bytes of."""

    instruction: Instruction
    rules: tuple[Rule | MatrixRule, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    addresses: tuple[int, ...]
    stored: tuple[int, ...]
    size: int


class Marks:
    """The marks of one chunk's registers, by depth of calls, function and slot."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._marks: dict[tuple[int, int, int], Array] = {}
        # Where the value of a register came from that was marked last in any lane.
        self._origins: dict[tuple[int, int, int], Origin] = {}
        self._pending: list[tuple[Instruction, Array, Origin, tuple[int, int] | None]] = []
        self._steps: dict[int, tuple[list[_Step], frozenset[int]]] = {}

    def read(self, site: Instruction, lanes: Array, origin: Origin, part: tuple[int, int] | None = None) -> None:
        """Note that the load that is about to run reads uninitialised bytes, in these lanes of the chunk.

        `part` is the number of the register that gets them and its marks; None stands for all registers.
        """
        self._pending.append((site, lanes, origin, part))

    def unwritten(self, group: Group, slot: int) -> None:
        """Mark a register that was never written."""
        marks = undefined(group.code, slot)
        self._mark(group, slot, group.lane_numbers, marks, lambda: "a register that nothing has been written to")

    def executed(self, group: Group, block: Block) -> tuple[str, Instruction, int, str] | None:
        """Pass marks through a block that has just run; return what they reached first, and a text on their origin."""
        if not self._marks and not self._pending:
            return None
        known = self._steps.get(id(block))
        if known is None:
            known = self._steps[id(block)] = _steps(group.code, block)
        steps, kept = known
        lanes = group.lane_numbers
        pending, self._pending = self._pending, []
        found: tuple[str, Instruction, int, str] | None = None
        for step in steps:
            reached = self._step(group, lanes, step)
            if reached is not None and found is None:
                found = *reached[:3], self._origins[self._key(group, reached[3])]()
            for site, missing, origin, part in pending:
                if site is step.instruction and part is not None:
                    self._mark(group, step.writes[part[0]], missing, part[1], origin)
                elif site is step.instruction:
                    # The predicate of a shuffle, which comes second, is defined.
                    for slot in step.writes[:1] if form_of(site).row.converges else step.writes:
                        self._mark(group, slot, missing, loaded(group.code, site, slot), origin)
        condition = block.terminator.condition
        if condition >= 0:
            marked = self._of(group, condition, lanes)
            last = block.terminator.instruction
            if found is None and marked is not None and last is not None and not _is_choice(last):
                found = "a branch", last, int(np.flatnonzero(marked)[0]), self._origins[self._key(group, condition)]()
        self._forget(group, kept)
        return found

    def _step(self, group: Group, lanes: Array, step: _Step) -> Reached | None:
        """Pass marks through one instruction."""
        found: Reached | None = None
        for slot in step.addresses:
            marked = self._of(group, slot, lanes)
            if marked is not None:
                found = found or ("an address", step.instruction, int(np.flatnonzero(marked)[0]), slot)
        if step.stored and found is None:
            marks = [self._of(group, slot, lanes) for slot in step.stored]
            present = [mark for mark in marks if mark is not None]
            if len(present) == len(marks):
                position = _first_stored(present, step.size)
                if position >= 0:
                    found = "a store", step.instruction, position, step.stored[0]

        marks_of = {slot: self._of(group, slot, lanes) for slot in step.reads} if step.rules else {}
        known = {slot: marks for slot, marks in marks_of.items() if marks is not None}
        results = {rule.slot: rule.marks(known) for rule in step.rules} if known else {}
        origin = self._origins[self._key(group, next(iter(known)))] if known else None
        for slot in step.writes:
            self._set(group, slot, lanes, results.get(slot), origin)
        return found

    # --- the marks themselves

    def _key(self, group: Group, slot: int) -> tuple[int, int, int]:
        return len(group.frames), group.code.base, slot

    def _of(self, group: Group, slot: int, lanes: Array) -> Array | None:
        """Return the marks of a register for a group's lanes, None when no lane has any."""
        marks = self._marks.get(self._key(group, slot))
        if marks is None:
            return None
        chosen = marks if group.n == self._lanes else marks.take(lanes)
        return chosen if chosen.any() else None

    def _mark(self, group: Group, slot: int, lanes: Array, marks: int, origin: Origin) -> None:
        key = self._key(group, slot)
        # A matrix brings the halves of a register one after the other.
        self._marks.setdefault(key, np.zeros(self._lanes, np.uint16))[lanes] |= np.uint16(marks)
        self._origins[key] = origin

    def _set(self, group: Group, slot: int, lanes: Array, marks: Array | None, origin: Origin | None = None) -> None:
        key = self._key(group, slot)
        if marks is not None and marks.any() and origin is not None:
            self._marks.setdefault(key, np.zeros(self._lanes, np.uint16))[lanes] = marks
            self._origins[key] = origin
        elif key in self._marks:
            self._marks[key][lanes] = 0
            if not self._marks[key].any():
                del self._marks[key], self._origins[key]

    def _forget(self, group: Group, kept: frozenset[int]) -> None:
        """Drop the marks of registers that are not live any more in these lanes."""
        depth, base = len(group.frames), group.code.base
        for key in [key for key in self._marks if key[:2] == (depth, base) and key[2] not in kept]:
            self._set(group, key[2], group.lane_numbers, None)


def _first_stored(marks: list[Array], size: int) -> int:
    """Return the position of the first lane that stores something undefined and nothing that is defined, else -1."""
    whole = (1 << size) - 1
    reached = np.logical_or.reduce([mark & whole != 0 for mark in marks])
    for mark in marks:
        reached &= (mark | mark >> 8) & whole == whole
    places = np.flatnonzero(reached)
    return int(places[0]) if len(places) else -1


def _steps(code: Code, block: Block) -> tuple[list[_Step], frozenset[int]]:
    """Return what each instruction of a block does with marks, and the slots that are live after it."""
    steps = []
    for instruction in block.instructions:
        form = form_of(instruction)
        reads, writes = code.touched(instruction)
        addresses, stored = _sinks(code, instruction, form)
        passed = rules(code, instruction, form)
        # A matrix is stored from whole registers, which hold two halves each.
        size = (4 if form.row.converges else TYPE_SIZES[form.type]) if stored else 0
        steps.append(_Step(instruction, passed, tuple(reads), tuple(writes), addresses, stored, size))
    kept = {slot for slot in range(len(code.types)) if block.live_out >> slot & 1}
    if block.terminator.kind in ("call", "return", "barrier"):
        kept.update(range(len(code.types)))
    return steps, frozenset(kept)


def _sinks(code: Code, instruction: Instruction, form: Form) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the slots that an access takes its address from, and the slots that it stores to memory."""
    row = form.row
    if row.access not in ("ld", "st", "atom", "red") or passes_parameter(form):
        return (), ()
    # Of `ldmatrix` and `stmatrix` the addresses of some lanes may not count.
    addresses = (
        ()
        if row.converges
        else tuple(
            code.slot(operand.base.name)
            for operand in instruction.operands
            if isinstance(operand, Access) and isinstance(operand.base, Register)
        )
    )
    if row.access != "st":
        return addresses, ()
    value = instruction.operands[1]
    items = value.items if isinstance(value, Vector) else (value,)
    if not all(isinstance(item, Register) for item in items):
        return addresses, ()
    return addresses, tuple(code.slot(item.name) for item in items if isinstance(item, Register))


def _is_choice(site: Instruction) -> bool:
    """Return whether a branch only guards one move, which is a selection."""
    return site.guard is not None and form_of(site).row.flow in ("copy", "select")
