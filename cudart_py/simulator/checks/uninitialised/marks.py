"""Marks of uninitialised values in registers, propagated until they reach an address, a branch, a store or an atomic.

Reading uninitialised bytes is not a mistake by itself: padding is copied, and a lane may ignore a value that it reads.
Therefore, a register that receives such a value is marked in the lanes concerned, byte by byte, and the marks propagate
from operands to results. Instructions that choose (selections, comparisons) propagate them only if all their operands
are marked. Stores to shared and local memory propagate them to the bytes there, and loads propagate them back. A store
to global memory is reported only if none of the bytes that it stores is defined, unless they are the padding of a
structure. An atomic operation on global memory is reported if none of the bytes of an operand is defined. In shared
memory, it adds the marks of its operands to those of the word, and returns the marks that the word had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...ptx.compiling.analysis.control_flow import passes_parameter
from ...ptx.compiling.forms import Form
from ...ptx.compiling.opcode_table.opcodes import form_of
from ...ptx.syntax.instructions import Access, Call, Instruction, Register, Symbol, items_of
from ...ptx.syntax.types import TYPE_SIZES
from .byte_rules import MOST, Rule, bytes_of, loaded, rules, undefined, widened
from .copied_structures import CopiedStructure, SteppedCopies, Stored, copied_structures, copies_of
from .matrix_rules import MatrixRule
from .memory_marks import MemoryMarks, Origin, Touched, moves_registers, slots_of

if TYPE_CHECKING:
    from ...ptx.compiling.analysis.control_flow import Block, Code
    from ...ptx.running.groups import Group
    from ..accesses import MemoryAccess

Array = NDArray[Any]


class _Step(NamedTuple):
    """The effect of an instruction on marks: `stored` has the slots that it stores, `size` bytes from each.

    `copy` is the copy of a structure to which the store belongs, or None, and `number` is the store's index in it.
    """

    instruction: Instruction
    rules: tuple[Rule | MatrixRule, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    addresses: tuple[int, ...]
    stored: tuple[int, ...]
    size: int
    number: int
    copy: CopiedStructure | None

    @property
    def atomic(self) -> bool:
        """Whether the instruction is an atomic operation, whose operands are in `stored`."""
        return form_of(self.instruction).row.access in ("atom", "red")


class _Reached(NamedTuple):
    """The use of a marked value (address, branch, store or atomic), the instruction, and a lane's position."""

    sink: str
    instruction: Instruction
    position: int
    origin: Origin


class _Loaded(NamedTuple):
    """Marks of memory that a register receives, one per lane at `positions` in the group."""

    slot: int
    positions: Array
    marks: Array
    origin: Origin


class Marks:
    """The marks of one chunk's registers, keyed by call depth, function and slot, and the marks of its memory."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._marks: dict[tuple[int, int, int], Array] = {}
        # For each register, the origin of the value that was marked last in any lane.
        self._origins: dict[tuple[int, int, int], Origin] = {}
        self._memory = MemoryMarks()
        self._stepped = SteppedCopies()
        self._pending: list[tuple[Instruction, Array, Origin, tuple[int, int] | None]] = []
        self._touched: list[Touched] = []
        self._steps: dict[int, tuple[list[_Step], frozenset[int]]] = {}

    def read(self, site: Instruction, lanes: Array, origin: Origin, part: tuple[int, int] | None = None) -> None:
        """Record that a load that is about to run reads uninitialised bytes in these lanes of the chunk.

        `part` is the index of the element that receives these bytes, and its marks; None means all registers.
        """
        self._pending.append((site, lanes, origin, part))

    def access(self, access: MemoryAccess) -> None:
        """Record an access to shared or local memory that is about to run."""
        if (self._marks or self._pending or self._memory) and (access.kind != "ld" or moves_registers(access.site)):
            self._touched.append(Touched.by(access))

    def unwritten(self, group: Group, slot: int) -> None:
        """Mark a register that was never written."""
        marks = undefined(group.code, slot)
        self._mark(group, slot, group.lane_numbers, marks, lambda: "a register that nothing has been written to")

    def executed(self, group: Group, block: Block) -> tuple[str, Instruction, int, str] | None:
        """Propagate marks through a basic block that has run; return the first use that they reach and the origin."""
        if not (self._marks or self._pending or self._touched):
            return None
        known = self._steps.get(id(block))
        if known is None:
            known = self._steps[id(block)] = _steps(group.code, block)
        steps, kept = known
        lanes = group.lane_numbers
        pending, self._pending = self._pending, []
        touched, self._touched = self._touched, []
        reached: _Reached | None = None
        # The values that the stores of copied structures store, keyed by the index of the instruction.
        copied: dict[int, Stored] = {}
        for step in steps:
            here = [one for one in touched if one.site is step.instruction]
            reached = reached or self._address(group, lanes, step)
            # An atomic operation returns the previous contents of the word.
            received = self._received(group, step, here)
            if step.atomic:
                reached = reached or self._atomic(group, lanes, step, here)
            stored = None if step.atomic else self._store(group, lanes, step, here)
            if stored is not None and step.copy is not None:
                copied[step.number] = stored
            elif stored is not None:
                reached = reached or _reached(stored)
            if step.copy is not None and group.code.stepped:
                copied = self._stepped.add(group, step.copy, step.number, copied)
            if step.copy is not None and step.number == step.copy.last:
                reached = reached or _reached_by_copy(step.copy, copied)
            self._pass(group, lanes, step)
            for one in received:
                self._mark(group, one.slot, group.lane_numbers[one.positions], one.marks, one.origin)
            for site, missing, origin, part in pending:
                if site is step.instruction and part is not None:
                    slot = slots_of(group.code, site.operands[0])[part[0]]
                    if slot >= 0:
                        self._mark(group, slot, missing, part[1], origin)
                elif site is step.instruction:
                    # The second result of a shuffle, its predicate, is always defined.
                    for slot in step.writes[:1] if form_of(site).row.converges else step.writes:
                        self._mark(group, slot, missing, loaded(group.code, site, slot), origin)
        condition = block.terminator.condition
        if condition >= 0:
            marked = self._of(group, condition, lanes)
            last = block.terminator.instruction
            if reached is None and marked is not None and last is not None and not _is_choice(last):
                position = int(np.flatnonzero(marked)[0])
                reached = _Reached("a branch", last, position, self._origins[self._key(group, condition)])
        if block.terminator.kind == "call":
            self._call(group, block)
        elif block.terminator.kind == "return":
            self._return(group)
        self._forget(group, kept)
        if reached is None:
            return None
        return reached.sink, reached.instruction, reached.position, reached.origin()

    def _address(self, group: Group, lanes: Array, step: _Step) -> _Reached | None:
        """Return the use of an undefined address by an access, or None."""
        for slot in step.addresses:
            marked = self._of(group, slot, lanes)
            if marked is not None:
                origin = self._origins[self._key(group, slot)]
                return _Reached("an address", step.instruction, int(np.flatnonzero(marked)[0]), origin)
        return None

    def _store(self, group: Group, lanes: Array, step: _Step, here: list[Touched]) -> Stored | None:
        """Propagate marks to shared and local memory; return the undefined bytes stored to global memory, or None."""
        moves = moves_registers(step.instruction)
        row = form_of(step.instruction).row
        for touched in here:
            if not moves:
                self._memory.define(touched)
            elif row.access == "st":
                self._store_marks(group, lanes, touched)
        registers = [self._of(group, slot, lanes) for slot in step.stored]
        present = [slot for slot, marks in zip(step.stored, registers, strict=True) if marks is not None]
        if not present:
            return None
        marks = np.stack([np.zeros(group.n, np.uint16) if one is None else one for one in registers], axis=1)
        for touched in here if moves else ():
            marks[touched.positions] = 0
        whole = (1 << step.size) - 1
        some = (marks & whole != 0).any(axis=1)
        undefined_bytes = bytes_of((marks | marks >> 8).reshape(-1), 0, step.size).reshape(group.n, -1)
        return Stored(step.instruction, undefined_bytes, some, self._origins[self._key(group, present[0])])

    def _store_marks(self, group: Group, lanes: Array, touched: Touched) -> None:
        """Propagate the marks of registers to the shared or local memory to which they are stored."""
        for slot, first, size, distance in touched.elements(group.code, _value_index(touched.site)):
            marks = self._of(group, slot, lanes) if slot >= 0 else None
            origin = None if marks is None else self._origins[self._key(group, slot)]
            chosen = np.zeros(len(touched.positions), np.uint16) if marks is None else marks[touched.positions]
            self._memory.store(touched, distance, bytes_of(chosen, first, size), origin)

    def _atomic(self, group: Group, lanes: Array, step: _Step, here: list[Touched]) -> _Reached | None:
        """Propagate the marks of an atomic's operands to shared memory; return their use in global memory, or None."""
        inside = np.zeros(group.n, np.bool_)
        for touched in here:
            inside[touched.positions] = True
            if form_of(step.instruction).operation == "exch":
                self._store_marks(group, lanes, touched)
            else:
                self._combine_marks(group, lanes, touched, step)
        for slot in step.stored:
            marks = self._of(group, slot, lanes)
            if marks is None:
                continue
            undefined_bytes = bytes_of(marks | marks >> 8, 0, step.size)
            some = (marks & (1 << step.size) - 1 != 0) & ~inside
            origin = self._origins[self._key(group, slot)]
            reached = _reached(Stored(step.instruction, undefined_bytes, some, origin), "an atomic operation")
            if reached is not None:
                return reached
        return None

    def _combine_marks(self, group: Group, lanes: Array, touched: Touched, step: _Step) -> None:
        """Add the marks of an atomic's operands to those of the shared memory on which it operates."""
        # Each element of a vector has one operand, and a compare-and-swap has two for the same word.
        distance = step.size if form_of(step.instruction).vector > 1 else 0
        for number, slot in enumerate(step.stored):
            marks = self._of(group, slot, lanes)
            if marks is not None:
                undefined_bytes = bytes_of(marks[touched.positions], 0, step.size)
                self._memory.combine(touched, number * distance, undefined_bytes, self._origins[self._key(group, slot)])

    def _received(self, group: Group, step: _Step, here: list[Touched]) -> list[_Loaded]:
        """Return the marks of shared and local memory that an instruction loads into registers."""
        received = []
        for touched in here if form_of(step.instruction).row.access in ("ld", "atom") else ():
            for slot, first, size, distance in touched.elements(group.code, 0):
                read = self._memory.load(touched, distance, size) if slot >= 0 else None
                if read is not None:
                    marks = widened(group.code, step.instruction, slot, first, read[0])
                    received.append(_Loaded(slot, touched.positions, marks, read[1]))
        return received

    def _pass(self, group: Group, lanes: Array, step: _Step) -> None:
        """Propagate the marks of an instruction's operands to its results."""
        marks_of = {slot: self._of(group, slot, lanes) for slot in step.reads} if step.rules else {}
        known = {slot: marks for slot, marks in marks_of.items() if marks is not None}
        results = {rule.slot: rule.marks(known) for rule in step.rules} if known else {}
        origin = self._origins[self._key(group, next(iter(known)))] if known else None
        for slot in step.writes:
            self._set(group, slot, lanes, results.get(slot), origin)

    def _call(self, group: Group, block: Block) -> None:
        """Propagate the marks of arguments to the parameters of the function that a group is about to call."""
        instruction = block.terminator.instruction
        assert instruction is not None
        call = instruction.operands[0]
        assert isinstance(call, Call)
        state = group.chunk.state
        callee = state.program.code(call.target.name) if isinstance(call.target, Symbol) else None
        if callee is None:
            return
        parameters = state.launch.entry.module.function_parameters[callee.name]
        for parameter, passed in zip(parameters, group.code.call_sites[id(instruction)].arguments, strict=False):
            for piece, slot in callee.parameter_pieces.get(parameter.name, {}).items():
                self._hand_over(group, passed.get(piece), (len(group.frames) + 1, callee.base, slot))

    def _return(self, group: Group) -> None:
        """Propagate the marks of results to the function that a group is about to return to."""
        frame = group.frames[-1]
        results = group.chunk.state.launch.entry.module.function_results[group.code.name]
        for result, wanted in zip(results, frame.results, strict=False):
            for piece, slot in wanted.items():
                source = group.code.parameter_pieces.get(result.name, {}).get(piece)
                self._hand_over(group, source, (len(group.frames) - 1, frame.code.base, slot))

    def _hand_over(self, group: Group, source: int | None, target: tuple[int, int, int]) -> None:
        """Set the marks of another function's register to those of a register of a group, or remove them."""
        lanes = group.lane_numbers
        marks = None if source is None else self._of(group, source, lanes)
        origin = None if source is None or marks is None else self._origins[self._key(group, source)]
        self._set_at(target, lanes, marks, origin)

    # --- the marks themselves

    def _key(self, group: Group, slot: int) -> tuple[int, int, int]:
        return len(group.frames), group.code.base, slot

    def _of(self, group: Group, slot: int, lanes: Array) -> Array | None:
        """Return the marks of a register in a group's lanes, or None if no lane has any."""
        marks = self._marks.get(self._key(group, slot))
        if marks is None:
            return None
        chosen = marks if group.n == self._lanes else marks.take(lanes)
        return chosen if chosen.any() else None

    def _mark(self, group: Group, slot: int, lanes: Array, marks: int | Array, origin: Origin) -> None:
        key = self._key(group, slot)
        # A matrix load fills the two halves of a register one after the other, so the marks are combined.
        self._marks.setdefault(key, np.zeros(self._lanes, np.uint16))[lanes] |= np.asarray(marks, np.uint16)
        self._origins[key] = origin

    def _set(self, group: Group, slot: int, lanes: Array, marks: Array | None, origin: Origin | None = None) -> None:
        self._set_at(self._key(group, slot), lanes, marks, origin)

    def _set_at(self, key: tuple[int, int, int], lanes: Array, marks: Array | None, origin: Origin | None) -> None:
        if marks is not None and marks.any() and origin is not None:
            self._marks.setdefault(key, np.zeros(self._lanes, np.uint16))[lanes] = marks
            self._origins[key] = origin
        elif key in self._marks:
            self._marks[key][lanes] = 0
            if not self._marks[key].any():
                del self._marks[key], self._origins[key]

    def _forget(self, group: Group, kept: frozenset[int]) -> None:
        """Drop the marks of registers that are no longer live in these lanes."""
        depth, base = len(group.frames), group.code.base
        for key in [key for key in self._marks if key[:2] == (depth, base) and key[2] not in kept]:
            self._set(group, key[2], group.lane_numbers, None)


def _reached(stored: Stored, sink: str = "a store") -> _Reached | None:
    """Return the first lane that stores undefined bytes and no defined ones, or None."""
    places = np.flatnonzero(stored.some & stored.undefined.all(axis=1))
    return _Reached(sink, stored.instruction, int(places[0]), stored.origin) if len(places) else None


def _reached_by_copy(copy: CopiedStructure, copied: dict[int, Stored]) -> _Reached | None:
    """Return the first lane that stores a member without any defined byte that is not padding, or None."""
    members = {number: copied[number] for number in copy.stores if number in copied}
    for number, stored in members.items():
        whole = stored.some & stored.undefined.all(axis=1)
        if whole.any():
            padding = copy.padding({each: one.undefined for each, one in members.items()}, number)
            reached = _reached(stored._replace(some=stored.some & ~padding))
            if reached is not None:
                return reached
    return None


def _steps(code: Code, block: Block) -> tuple[list[_Step], frozenset[int]]:
    """Return the effect of each instruction of a basic block on marks, and the slots that are live after the block."""
    steps = []
    if code.stepped:
        copies = copies_of(code)
    else:
        found = copied_structures(code, block.instructions)
        copies = {id(block.instructions[number]): (number, copy) for copy in found for number in copy.stores}
    for instruction in block.instructions:
        form = form_of(instruction)
        reads, writes = code.touched(instruction)
        addresses, stored = _sinks(code, instruction, form)
        passed = rules(code, instruction, form)
        # A matrix is stored from whole registers, each of which holds two half-precision elements.
        size = (4 if form.row.converges else min(TYPE_SIZES[form.type], MOST)) if stored else 0
        number, copy = copies.get(id(instruction), (0, None))
        steps.append(_Step(instruction, passed, tuple(reads), tuple(writes), addresses, stored, size, number, copy))
    kept = {slot for slot in range(len(code.types)) if block.live_out >> slot & 1}
    if block.terminator.kind in ("call", "return", "barrier"):
        kept.update(range(len(code.types)))
    return steps, frozenset(kept)


def _sinks(code: Code, instruction: Instruction, form: Form) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the slots that hold the addresses of an access, and the slots that it stores to memory."""
    row = form.row
    if row.access not in ("ld", "st", "atom", "red") or passes_parameter(form):
        return (), ()
    # `ldmatrix` and `stmatrix` may ignore the addresses of some lanes.
    addresses = (
        ()
        if row.converges
        else tuple(
            code.slot(operand.base.name)
            for operand in instruction.operands
            if isinstance(operand, Access) and isinstance(operand.base, Register)
        )
    )
    if row.access == "ld":
        return addresses, ()
    first = _value_index(instruction)
    values = instruction.operands[first : first + (2 if row.access == "atom" and form.operation == "cas" else 1)]
    items = [item for value in values for item in items_of(value)]
    if row.access == "st" and not all(isinstance(item, Register) for item in items):
        return addresses, ()
    return addresses, tuple(code.slot(item.name) for item in items if isinstance(item, Register))


def _value_index(instruction: Instruction) -> int:
    """Return the index of the first operand of a store or an atomic operation that is a value: it follows the address.

    ``atom`` has a destination before the address.
    """
    return 2 if form_of(instruction).row.access == "atom" else 1


def _is_choice(site: Instruction) -> bool:
    """Return whether a branch guards a single move, and is thus equivalent to a selection."""
    return site.guard is not None and form_of(site).row.flow in ("copy", "select")
