"""The control flow of a function: its basic blocks, and the liveness of its registers."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...syntax.instructions import (
    Access,
    Function,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
    items_of,
    placed,
)
from ...syntax.types import TYPE_SIZES, dtype_of
from ..emitters.memory import SYSTEM_FUNCTIONS
from ..forms import Form
from ..opcode_table.opcodes import form_of
from .wait_loops import Waiting, find_barrier_loops, find_clock_loops, waiting_of

# The maximum number of instructions in a block. A longer run is split, because limits are checked only between blocks,
# and Python takes a tenth of a second to compile this many.
_MOST_IN_BLOCK = 1000


@dataclass(slots=True)
class Terminator:
    """The terminator of a block: `kind` is next, branch, switch, call, barrier, return, exit or trap."""

    kind: str
    instruction: Instruction | None = None
    targets: tuple[int, ...] = ()
    condition: int = -1
    negated: bool = False

    @property
    def ending(self) -> Instruction:
        """Return the instruction that ends the block; only blocks that end at a label or with the code have none."""
        assert self.instruction is not None
        return self.instruction


@dataclass(slots=True)
class Block:
    """A basic block: instructions with a single entry. `live_in` and `live_out` are bit sets of slots."""

    index: int
    instructions: list[Instruction]
    terminator: Terminator
    uses: int = 0
    defines: int = 0
    live_in: int = 0
    live_out: int = 0
    live_slots: tuple[int, ...] = ()
    input_slots: tuple[int, ...] = ()
    mask: Operand | None = None
    converges: bool = False
    # The opcode of the block's instruction with a member mask. Lanes at another instruction with the same opcode may
    # converge with lanes at this one.
    meets: str = ""
    waiting: Waiting = Waiting.NEVER
    # Whether the block is in a loop that only waits at barriers in memory.
    waits: bool = False
    # Whether other lanes get a turn after the block, because the next one initialises or invalidates a barrier in
    # memory. The lanes that wait for the barrier's last phase, which has ended, must find that out first, as on a GPU.
    gives_way: bool = False

    @property
    def first(self) -> Instruction | None:
        """The block's first instruction, or the one that ends it; None if the end of a function has none."""
        return self.instructions[0] if self.instructions else self.terminator.instruction


@dataclass(slots=True)
class CallSite:
    """The slots that a call passes: the pieces of each argument, and the pieces of each result that are read."""

    arguments: list[dict[tuple[int, int], int]] = field(default_factory=list)
    results: list[dict[tuple[int, int], int]] = field(default_factory=list)


class Code:
    """The basic blocks of a function, and its registers, numbered as slots, with their storage types.

    Parameters of device functions, and the arguments and results of calls, are slots, too: one for each piece that an
    ``st.param`` or ``ld.param`` names. If the code is `stepped`, for a debugger, each block has at most one
    instruction, and all registers are live everywhere, so that they keep their last values.
    """

    def __init__(self, function: Function, base: int, is_entry: bool, stepped: bool = False) -> None:
        self.function = function
        self.stepped = stepped
        self.name = function.name
        self.base = base
        self.is_entry = is_entry
        self.slots: dict[str, int] = {}
        self.types: list[str] = []
        self.call_sites: dict[int, CallSite] = {}
        self.parameter_pieces: dict[str, dict[tuple[int, int], int]] = {}
        self.variants: dict[tuple[Any, ...], Any] = {}
        self.local_offsets, end = placed(function.local.values())
        self.local_bytes = -(-end // 16) * 16
        for name in (*function.parameters, *function.results):
            if name in function.registers:
                self.parameter_pieces[name] = {(0, TYPE_SIZES[function.registers[name]]): self.slot(name)}
        self.blocks = self._cut()
        for block, waits in zip(self.blocks, find_barrier_loops(self), strict=True):
            block.waits = waits
        self._lower_calls()
        # The slots of the function's results, as a bit set.
        self.returned = 0
        for name in function.results:
            for slot in self.parameter_pieces.get(name, {}).values():
                self.returned |= 1 << slot
        self._find_live()
        # The values of registers that were never written.
        self.zeros = tuple(np.zeros((), dtype_of(ptx_type))[()] for ptx_type in self.types)

    @cached_property
    def clock_loops(self) -> list[int]:
        """Return, for each block, the first block of the loop around it that only waits for a clock, else -1."""
        return find_clock_loops(self)

    def slot(self, name: str) -> int:
        """Return the slot of a register; number it on first use."""
        if name not in self.slots:
            register_type = "pred" if name == "%CC" else self.function.registers[name]
            self.slots[name] = len(self.types)
            self.types.append(_storage(register_type))
        return self.slots[name]

    def piece(self, parameter: str, offset: int, size: int) -> int:
        """Return the slot of `size` bytes at `offset` of a parameter."""
        pieces = self.parameter_pieces.setdefault(parameter, {})
        if (offset, size) not in pieces:
            pieces[offset, size] = len(self.types)
            self.types.append(f"b{8 * size}")
        return pieces[offset, size]

    def is_parameter(self, access: Access) -> bool:
        """Return whether an access names a parameter of a device function or of a call, not of the kernel."""
        base = access.base
        return isinstance(base, Symbol) and (not self.is_entry or base.name in self.function.parameter_sizes)

    def space_of(self, access: Access, space: str, shared: Container[str]) -> str:
        """Return the space that an access's instruction names, or else the space of the variable that the access names.

        `shared` are the names of the kernel's variables in shared memory. Constants are in global memory.
        """
        base = access.base
        if space == "generic" and isinstance(base, Symbol):
            return "shared" if base.name in shared else "local" if base.name in self.local_offsets else space
        return "global" if space == "const" else space

    def parameter_slots(self, instruction: Instruction) -> list[int]:
        """Return the slots that an ``ld.param`` reads or an ``st.param`` writes, in order."""
        return list(self._pieces_of(instruction).values())

    def _pieces_of(self, instruction: Instruction) -> dict[tuple[int, int], int]:
        """Return the slots that an ``ld.param`` reads or an ``st.param`` writes, keyed by offset and size."""
        access = instruction.access
        value = next(operand for operand in instruction.operands if not isinstance(operand, Access))
        assert isinstance(access.base, Symbol)
        size = TYPE_SIZES[form_of(instruction).type]
        start = access.offset + access.base.offset
        keys = [(start + index * size, size) for index in range(len(items_of(value)))]
        return {key: self.piece(access.base.name, *key) for key in keys}

    def touched(self, instruction: Instruction) -> tuple[list[int], list[int]]:
        """Return the slots that an instruction reads and the slots that it writes."""
        reads: list[int] = []
        writes: list[int] = []
        form = form_of(instruction)
        if form.row.ends == "call":
            site = self.call_sites[id(instruction)]
            reads += [slot for pieces in site.arguments for slot in pieces.values()]
            writes += [slot for pieces in site.results for slot in pieces.values()]
            target = instruction.call.target
            if isinstance(target, Register):
                reads.append(self.slot(target.name))
            return reads, writes
        for position, operand in enumerate(instruction.operands):
            written = position == 0 and form.writes_first
            self._registers(operand, writes if written else reads, reads)
            if written and form.updates_first:
                self._registers(operand, reads, reads)
        if passes_parameter(form):
            stores = form.row.access == "st"
            if self.is_parameter(instruction.access):
                (writes if stores else reads).extend(self.parameter_slots(instruction))
        if form.writes_carry:
            writes.append(self.slot("%CC"))
        if form.row.reads_carry:
            reads.append(self.slot("%CC"))
        return reads, writes

    def _registers(self, operand: Operand, into: list[int], addresses: list[int]) -> None:
        if isinstance(operand, Register):
            into.append(self.slot(operand.name))
        elif isinstance(operand, Vector):
            for item in operand.items:
                self._registers(item, into, addresses)
        elif isinstance(operand, Access):
            self._registers(operand.base, addresses, addresses)
            if operand.coordinates:
                self._registers(operand.coordinates, addresses, addresses)

    def _cut(self) -> list[Block]:
        """Split the function into basic blocks.

        A block begins at a label, at and after a guarded instruction, after an instruction that ends a block, and at an
        instruction for which lanes must converge or before which they give way.
        """
        instructions = self.function.instructions
        starts = {0, *self.function.labels.values()}
        for index, instruction in enumerate(instructions):
            row = form_of(instruction).row
            if _is_guarded(instruction):
                starts |= {index, index + 1}
            if _ending(instruction):
                starts.add(index + 1)
            if row.converges or _gives_way(instruction):
                starts.add(index)
        ordered = sorted(start for start in starts if start < len(instructions))
        runs = pairwise([*ordered, len(instructions)])
        most = 1 if self.stepped else _MOST_IN_BLOCK
        ordered = [place for start, end in runs for place in range(start, end, most)]
        # A guarded instruction gets an extra block before it, with a branch around the instruction. So does, without a
        # branch, an instruction before which lanes give way.
        number: dict[int, int] = {}
        count = 0
        for start in ordered:
            number[start] = count
            count += 1 + _is_guarded(instructions[start]) + _gives_way(instructions[start])
        number[len(instructions)] = count
        labels = {name: number[index] for name, index in self.function.labels.items()}
        blocks: list[Block] = []
        for start, end in pairwise([*ordered, len(instructions)]):
            body = instructions[start:end]
            if _is_guarded(body[0]):
                guard = body[0].guard
                assert guard is not None
                after = len(blocks) + 2 + _gives_way(body[0])
                skip = Terminator("branch", body[0], (after, len(blocks) + 1), self.slot(guard.name), not guard.negated)
                blocks.append(Block(len(blocks), [], skip))
            if _gives_way(body[0]):
                blocks.append(Block(len(blocks), [], Terminator("next", body[0], (len(blocks) + 1,)), gives_way=True))
            blocks.append(self._block(len(blocks), body, labels))
        # Falling off the end of a function returns.
        blocks.append(Block(len(blocks), [], Terminator("exit" if self.is_entry else "return")))
        return blocks

    def _block(self, index: int, body: list[Instruction], labels: dict[str, int]) -> Block:
        last = body[-1]
        ending = _ending(last)
        terminator = self._terminator(index, last, ending, labels) if ending else Terminator("next", None, (index + 1,))
        block = Block(index, body[:-1] if ending else body, terminator)
        block.waiting = waiting_of(block)
        converges = form_of(body[0]).row.converges
        if converges:
            block.converges = True
            block.mask = Immediate(0xFFFFFFFF) if converges == "warp" else body[0].operands[-1]
            block.meets = "" if converges == "warp" else body[0].opcode
        return block

    def _terminator(self, index: int, last: Instruction, ending: str, labels: dict[str, int]) -> Terminator:
        """Return the terminator for the last instruction of a block."""
        if ending == "switch":
            selector, target_list = last.operands
            assert isinstance(target_list, Symbol)
            assert isinstance(selector, Register)
            names = self.function.branch_targets[target_list.name]
            return Terminator("switch", last, tuple(labels[name] for name in names), self.slot(selector.name))
        if ending == "branch":
            target = last.operands[0]
            assert isinstance(target, Symbol)
            if last.guard is None:
                return Terminator("next", last, (labels[target.name],))
            slot = self.slot(last.guard.name)
            return Terminator("branch", last, (labels[target.name], index + 1), slot, last.guard.negated)
        if ending == "return" and self.is_entry:
            ending = "exit"
        return Terminator(ending, last, (index + 1,) if ending in ("call", "barrier") else ())

    def _lower_calls(self) -> None:
        """Associate each call with the pieces of parameters that are stored before it and loaded after it."""
        stored: dict[str, dict[tuple[int, int], int]] = {}
        site: CallSite | None = None
        results: list[str] = []
        for instruction in self.function.instructions:
            form = form_of(instruction)
            if passes_parameter(form) and form.row.access == "st":
                access = instruction.access
                assert isinstance(access.base, Symbol)
                stored.setdefault(access.base.name, {}).update(self._pieces_of(instruction))
            elif form.row.ends == "call":
                call = instruction.call
                arguments = [self._passed(argument, stored) for argument in call.arguments]
                site = CallSite(arguments, [self._passed(result, {}) for result in call.results])
                results = [result.name if isinstance(result, Symbol) else "" for result in call.results]
                self.call_sites[id(instruction)] = site
                stored = {}
            elif passes_parameter(form) and site is not None:
                access = instruction.access
                if isinstance(access.base, Symbol) and access.base.name in results:
                    site.results[results.index(access.base.name)].update(self._pieces_of(instruction))

    def _passed(self, operand: Operand, stored: dict[str, dict[tuple[int, int], int]]) -> dict[tuple[int, int], int]:
        """Return the pieces of an argument or a result: a register, or the stores to a parameter."""
        if isinstance(operand, Register):
            return {(0, TYPE_SIZES[self.function.registers[operand.name]]): self.slot(operand.name)}
        assert isinstance(operand, Symbol)
        return dict(stored.get(operand.name, {}))

    def _find_live(self) -> None:
        for block in self.blocks:
            self._count_uses(block)
        changed = True
        while changed:
            changed = False
            for block in reversed(self.blocks):
                live = 0
                for target in block.terminator.targets:
                    live |= self.blocks[target].live_in
                block.live_out = live
                live_in = block.uses | (live & ~block.defines)
                if live_in != block.live_in:
                    block.live_in = live_in
                    changed = True
        for block in self.blocks:
            if self.stepped:
                block.live_in = block.live_out = (1 << len(self.types)) - 1
            block.live_slots = members(block.live_in)
            block.input_slots = members(block.uses)

    def _count_uses(self, block: Block) -> None:
        uses = defines = 0
        terminator = block.terminator
        last = terminator.instruction
        body = block.instructions
        if last is not None and terminator.kind in ("call", "barrier"):
            body = [*body, last]
        for instruction in body:
            reads, writes = self.touched(instruction)
            for slot in reads:
                uses |= (1 << slot) & ~defines
            for slot in writes:
                defines |= 1 << slot
        if terminator.condition >= 0:
            uses |= (1 << terminator.condition) & ~defines
        if terminator.kind == "return":
            uses |= self.returned & ~defines
        block.uses, block.defines = uses, defines


def passes_parameter(form: Form) -> bool:
    """Return whether a form loads or stores a parameter; for a function or a call, that isn't an access to memory."""
    return form.space == "param" and form.row.access in ("ld", "st")


def _ending(instruction: Instruction) -> str:
    """Return how an instruction ends a block, or an empty string if it doesn't; system calls don't."""
    ending = form_of(instruction).row.ends
    if ending == "call":
        target = instruction.call.target
        if isinstance(target, Symbol) and target.name in SYSTEM_FUNCTIONS:
            return ""
    return ending


def _is_guarded(instruction: Instruction) -> bool:
    """Return whether an instruction needs a branch around it because of its guard; a branch itself doesn't."""
    return instruction.guard is not None and form_of(instruction).row.ends != "branch"


def _gives_way(instruction: Instruction) -> bool:
    """Return whether an instruction initialises or invalidates a barrier in memory."""
    form = form_of(instruction)
    return form.row.access == "mbarrier" and form.words[0] in ("init", "inval")


def _storage(register_type: str) -> str:
    """Return the storage type of a register: untyped bits, f32, f64 or pred."""
    if register_type in ("f32", "f64", "pred"):
        return register_type
    return f"b{8 * TYPE_SIZES[register_type]}"


def members(bits: int) -> tuple[int, ...]:
    """Return the members of a bit set."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return tuple(found)
