"""Follow what was read before anybody wrote it, until it reaches an address, a branch or a store.

Reading is no mistake by itself: padding is copied, and what a lane reads too much it may throw away. So a register
that received such a value is marked for the lanes concerned, the marks pass from operands to results, and what
throws values away (selections, masks) passes them only when all its operands are marked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .ptx.instructions import Access, Instruction, Register, Vector

if TYPE_CHECKING:
    from .ptx.control_flow import Block, Code
    from .ptx.groups import Group

__all__ = ["Marks"]

Array = NDArray[Any]

# These may drop the marked operand; and what comes from other lanes comes without marks.
_CHOOSING = frozenset({"selp", "slct", "and", "or", "prmt", "bfi", "bfe", "lop3", "min", "max", "set", "setp", "shf"})
_FROM_OTHERS = frozenset({"shfl", "vote", "match", "redux", "atom", "tex", "wmma", "elect", "activemask"})
_MEMORY = frozenset({"ld", "ldu", "st", "atom", "red"})

# What a mark reached: "an address", "a branch" or "a store", the instruction, and the position of a lane.
Reached = tuple[str, Instruction, int]
_Step = tuple[Instruction, str, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Marks:
    """Hold the marks of one chunk's registers, by depth of calls, function and slot."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._marks: dict[tuple[int, int, int], Array] = {}
        self._pending: list[tuple[Instruction, Array]] = []
        self._steps: dict[int, tuple[list[_Step], frozenset[int]]] = {}
        # Says where the value that was marked last came from.
        self.origin: Callable[[], str] = str

    def read(self, site: Instruction, lanes: Array) -> None:
        """Note that the load that is about to happen gets what nobody wrote, in these lanes of the chunk."""
        self._pending.append((site, lanes))

    def unwritten(self, group: Group, slot: int) -> None:
        """Mark a register that was never written."""
        self._mark(group, slot, group.lane_numbers)
        self.origin = lambda: "a register that nothing has been written to"

    def executed(self, group: Group, block: Block) -> Reached | None:
        """Pass marks through a block that has just run; give what they reached first."""
        if not self._marks and not self._pending:
            return None
        known = self._steps.get(id(block))
        if known is None:
            known = self._steps[id(block)] = _steps(group.code, block)
        steps, kept = known
        lanes = group.lane_numbers
        pending, self._pending = self._pending, []
        found: Reached | None = None
        for step in steps:
            instruction = step[0]
            reached = self._step(group, lanes, step)
            found = found or reached
            for site, missing in pending:
                if site is instruction:
                    for slot in step[3]:
                        self._mark(group, slot, missing)
        condition = block.terminator.condition
        if condition >= 0:
            marked = self._of(group, condition, lanes)
            last = block.terminator.instruction
            if found is None and marked is not None and last is not None and not _is_choice(last):
                found = "a branch", last, int(np.flatnonzero(marked)[0])
        self._forget(group, kept)
        return found

    def _step(self, group: Group, lanes: Array, step: _Step) -> Reached | None:
        """Pass marks through one instruction."""
        instruction, base, reads, writes, addresses, stored = step
        found: Reached | None = None
        for slot in addresses:
            marked = self._of(group, slot, lanes)
            if marked is not None:
                found = found or ("an address", instruction, int(np.flatnonzero(marked)[0]))
        if stored and found is None:
            marks = [self._of(group, slot, lanes) for slot in stored]
            if all(mark is not None for mark in marks):
                whole = np.logical_and.reduce([mark for mark in marks if mark is not None])
                if whole.any():
                    found = "a store", instruction, int(np.flatnonzero(whole)[0])
        if not writes:
            return found
        marks = [self._of(group, slot, lanes) for slot in reads]
        present = [mark for mark in marks if mark is not None]
        result = None
        if base not in _FROM_OTHERS and base not in _MEMORY and present:
            if base in _CHOOSING or base == "mov":
                if len(present) == len(marks):
                    result = np.logical_and.reduce(present)
            else:
                result = np.logical_or.reduce(present)
        for slot in writes:
            self._set(group, slot, lanes, result)
        return found

    # --- the marks themselves

    def _key(self, group: Group, slot: int) -> tuple[int, int, int]:
        return len(group.frames), group.code.base, slot

    def _of(self, group: Group, slot: int, lanes: Array) -> Array | None:
        """Give which of a group's lanes are marked, None when none is."""
        marks = self._marks.get(self._key(group, slot))
        if marks is None:
            return None
        chosen = marks if group.n == self._lanes else marks.take(lanes)
        return chosen if chosen.any() else None

    def _mark(self, group: Group, slot: int, lanes: Array) -> None:
        self._marks.setdefault(self._key(group, slot), np.zeros(self._lanes, np.bool_))[lanes] = True

    def _set(self, group: Group, slot: int, lanes: Array, marked: Array | None) -> None:
        key = self._key(group, slot)
        if marked is None:
            if key in self._marks:
                self._marks[key][lanes] = False
                if not self._marks[key].any():
                    del self._marks[key]
        else:
            self._marks.setdefault(key, np.zeros(self._lanes, np.bool_))[lanes] = marked

    def _forget(self, group: Group, kept: frozenset[int]) -> None:
        """Drop the marks of registers that nothing reads again in these lanes."""
        depth, base = len(group.frames), group.code.base
        for key in [key for key in self._marks if key[:2] == (depth, base) and key[2] not in kept]:
            self._set(group, key[2], group.lane_numbers, None)


def _steps(code: Code, block: Block) -> tuple[list[_Step], frozenset[int]]:
    """Give what each instruction of a block reads and writes, and the slots that live on."""
    steps = []
    for instruction in block.instructions:
        base = instruction.opcode.split(".", 1)[0]
        reads, writes = code.touched(instruction)
        addresses, stored = _sinks(code, instruction, base)
        steps.append((instruction, base, tuple(reads), tuple(writes), addresses, stored))
    kept = {slot for slot in range(len(code.types)) if block.live_out >> slot & 1}
    if block.terminator.kind in ("call", "return", "barrier"):
        kept.update(range(len(code.types)))
    return steps, frozenset(kept)


def _sinks(code: Code, instruction: Instruction, base: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Give the slots that an access takes its address from, and those of what it stores to memory."""
    if base not in _MEMORY or instruction.opcode.startswith(("ld.param", "st.param")):
        return (), ()
    addresses = tuple(
        code.slot(operand.base.name)
        for operand in instruction.operands
        if isinstance(operand, Access) and isinstance(operand.base, Register)
    )
    if base != "st":
        return addresses, ()
    value = instruction.operands[1]
    items = value.items if isinstance(value, Vector) else (value,)
    if not all(isinstance(item, Register) for item in items):
        return addresses, ()
    return addresses, tuple(code.slot(item.name) for item in items if isinstance(item, Register))


def _is_choice(site: Instruction) -> bool:
    """Tell whether a branch only guards one move, which is a selection."""
    return site.guard is not None and site.opcode.startswith(("mov", "selp"))
