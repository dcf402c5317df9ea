"""Lay out a kernel and the functions that it calls as one list of basic blocks.

Most calls are inlined: each call is followed by its own copy of the function's blocks, with its own registers. The list
is therefore in the order of the NumPy engine's paths (return addresses and program counter), by which its scheduler
chooses the lowest block.

Functions that are recursive, or that are called through pointers, are shared: there is one copy, at the start of the
list, so that lanes leave it before others continue after the call. Each lane's return address and the offset of its
stack frame are in two more registers of the copy. Before one shared function, or what is inlined in it, calls another,
the registers that it still needs are saved in memory of the lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from llvmlite import ir

from ..compiling.analysis.control_flow import Block, Code
from ..compiling.analysis.reachability import Stack, comes_after_all
from ..compiling.opcode_table.opcodes import form_of
from ..compiling.program import Program
from ..running.calls import FRAME_BYTES, frame_bytes
from ..syntax.instructions import Symbol
from .barriers import Barrier, barrier_of
from .errors import UnsupportedInstruction
from .layout import LANES, Head
from .vectors import I1, I32, Builder, vector

Value = Any

# LLVM takes about 10 milliseconds per block and 1 millisecond per instruction, and can't be interrupted while it
# compiles.
_MOST_BLOCKS = 1_000
_MOST_INSTRUCTIONS = 10_000
# Laying out the code recurses once in Python per level of calls.
_MOST_NESTED_CALLS = 100
_WORDS = 4 * LANES
_SIZES = {"pred": 4, "f32": 128, "f64": 256, "b8": 32, "b16": 64, "b32": 128, "b64": 256, "b128": 512}


class Instance:
    """One copy of a function's code, the offsets of its registers in a warp's state, and the offset of its stack frame.

    `caller` and `call` are the copy and its block in which this copy is inlined, and `root` is the outermost such copy:
    the kernel's or that of a shared function. The stack frame's offset is from the start of the root's frame.
    """

    def __init__(
        self, code: Code, stack: int, caller: Instance | None, call: Block | None, *, shared: bool = False
    ) -> None:
        self.code = code
        self.stack = stack
        self.caller = caller
        self.call = call
        self.shared = shared
        self.root: Instance = self if caller is None else caller.root
        self.registers: dict[int, int] = {}
        # The offsets in a warp's state of a shared copy's further registers, of 32 bits: the index in `Layout.calls` of
        # the call that each lane returns to, and the offset of its stack frame.
        self.return_at = self.frame_at = 0
        # Each block's index in the list of basic blocks, and the callees for each block that ends in a call.
        self.numbers: list[int] = []
        self.callees: dict[int, list[Callee]] = {}

    @property
    def callers(self) -> Iterator[tuple[Instance, Block]]:
        """Yield the copies in which this one is inlined, and the blocks whose calls it replaces, innermost first."""
        if self.caller is not None and self.call is not None:
            yield self.caller, self.call
            yield from self.caller.callers

    @property
    def inner_stack(self) -> int:
        """Return the offset of the stack frame of a function that this copy calls."""
        return self.stack + frame_bytes(self.code, is_outermost=self.caller is None and not self.shared)

    def load(self, b: Builder, state: Value, slot: int, element: ir.Type) -> Value:
        """Return a register's value."""
        place = b.at(state, self.registers[slot])
        if element == I1:
            return b.truth(b.load(place, typ=I32))
        return b.load(place, typ=vector(element), align=32)

    def store(self, b: Builder, state: Value, slot: int, value: Value) -> None:
        """Store a register's value."""
        place = b.at(state, self.registers[slot])
        if value.type.element == I1:
            b.store(b.bits(value), place)
        else:
            b.store(value, place, align=32)


class Callee(NamedTuple):
    """A function that a call may enter; `address` is None for a call by name, and `number` is None if it is inlined.

    `number` is the call's index in `Layout.calls`.
    """

    instance: Instance
    address: int | None
    number: int | None


@dataclass
class SharedCall:
    """A call of a shared function.

    `saved` are the offsets in a warp's state of the registers that are saved during the call, with the size in bytes of
    one lane's value, 0 for a predicate. They take `size` bytes. The first is the return address of the caller's root,
    if there is any.
    """

    caller: Instance
    block: Block
    callee: Instance
    saved: list[tuple[int, int]] = field(default_factory=list)
    size: int = 0


@dataclass
class Place:
    """A basic block in the list. `live` are the registers that are live on entry, including the callers' registers."""

    instance: Instance
    block: Block
    live: set[tuple[int, int]]

    @property
    def stack(self) -> Stack:
        """Return the block in its call stack, from the kernel or a shared function on."""
        calls = [(caller.code, call.index) for caller, call in self.instance.callers]
        return [*reversed(calls), (self.instance.code, self.block.index)]

    @cached_property
    def is_in_order(self) -> bool:
        """Whether the block comes after all blocks that lead to it."""
        return comes_after_all(self.stack)


@dataclass
class Layout:
    """The list of basic blocks, the number of their instructions, and the offsets and size of a warp's state.

    The kernel begins at block `start`. `saves_at` is the offset of a register of 32 bits: the size of what each lane
    has saved, which is at most `save_bytes`. `undefined` has the slots of the kernel's registers whose values may be
    undefined, with the offsets of masks of the lanes in which they are.
    """

    places: list[Place]
    instances: list[Instance]
    calls: list[SharedCall] = field(default_factory=list)
    start: int = 0
    saves_at: int = 0
    save_bytes: int = 0
    instructions: int = 0
    ready_at: int = 0
    registers_at: int = 0
    undefined: dict[int, int] = field(default_factory=dict)
    barriers: list[Barrier] = field(default_factory=list)
    bytes: int = 0

    @property
    def ready_words(self) -> int:
        """Return the number of 64-bit words in the bitmap of the blocks that have lanes ready to run."""
        return -(-len(self.places) // 64)


def lay_out(program: Program, local_size: int, follows: bool = False) -> Layout:
    """Return the layout of a kernel and of all functions that it calls.

    `follows` says that loads and shuffles may read undefined values.
    """
    layout = Layout([], [])
    shared = {code.name: Instance(code, 0, None, None, shared=True) for code in _shared(program)}
    for instance in shared.values():
        _add(program, layout, instance, shared, local_size)
    layout.start = len(layout.places)
    _add(program, layout, Instance(program.main, 0, None, None), shared, local_size)
    layout.ready_at = 4 * Head.WORDS + 4 * 4 * len(layout.places)
    layout.registers_at = -(-(layout.ready_at + 8 * layout.ready_words) // 64) * 64
    end = layout.registers_at
    for instance in layout.instances:
        # Placing the largest registers first wastes the least space on alignment.
        sizes = [_SIZES[kind] for kind in instance.code.types]
        for slot in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
            size = sizes[slot]
            end = -(-end // min(size, 64)) * min(size, 64)
            instance.registers[slot] = end
            end += size
        if instance.shared:
            end = -(-end // 64) * 64
            instance.return_at, instance.frame_at = end, end + _WORDS
            end += 2 * _WORDS
    for slot in _maybe_undefined(program.main, follows):
        layout.undefined[slot] = end
        end += 4
    if layout.calls:
        end = layout.saves_at = -(-end // 64) * 64
        end += _WORDS
        _plan_saves(layout, local_size)
    layout.bytes = -(-end // 64) * 64
    layout.barriers = [barrier_of(place) for place in layout.places if place.block.terminator.kind == "barrier"]
    return layout


def _maybe_undefined(code: Code, follows: bool) -> list[int]:
    """Return the slots of a kernel that may be read before they are written, and those computed from them.

    With `follows`, these are also the slots that are loaded, or shuffled from other lanes.
    """
    found = set(code.blocks[0].live_slots)
    touched = []
    for instruction in (instruction for block in code.blocks for instruction in block.instructions):
        row = form_of(instruction).row
        if row.flow != "fresh":
            touched.append(code.touched(instruction))
        elif follows and (row.access == "ld" or row.name == "shfl"):
            found.update(code.touched(instruction)[1])
    before = -1
    while found and before != len(found):
        before = len(found)
        found.update(slot for reads, writes in touched if found.intersection(reads) for slot in writes)
    return sorted(found)


def _shared(program: Program) -> list[Code]:
    """Return the functions that may be called through pointers or may call themselves, directly or not.

    Functions between two others that call themselves are among them, too.
    """
    found: dict[str, Code] = {program.main.name: program.main}
    callees: dict[str, set[str]] = {}
    pointed: set[str] = set()
    waiting = [program.main]
    while waiting:
        code = waiting.pop()
        targets = [
            target for block in code.blocks if block.terminator.kind == "call" for target in called(program, block)
        ]
        pointed |= {callee.name for address, callee in targets if address is not None}
        callees[code.name] = {callee.name for _, callee in targets}
        new = {callee.name: callee for _, callee in targets if callee.name not in found}
        found |= new
        waiting += new.values()
    left = set(callees)
    while True:
        # A function that calls none of the others, or that none of them calls, is on no circle.
        ends = {name for name in left if not callees[name] & left}
        ends |= left - set().union(*(callees[name] for name in left))
        if not ends:
            break
        left -= ends
    return [code for name, code in found.items() if name in left or name in pointed]


def _add(
    program: Program, layout: Layout, instance: Instance, shared: dict[str, Instance], local_size: int, depth: int = 0
) -> None:
    code = instance.code
    if depth > _MOST_NESTED_CALLS:
        raise UnsupportedInstruction(f"calls that are nested more than {_MOST_NESTED_CALLS} deep")
    index = len(layout.instances)
    layout.instances.append(instance)
    around = _live_in_callers(layout, instance)
    for block in code.blocks:
        instance.numbers.append(len(layout.places))
        layout.places.append(Place(instance, block, around | {(index, slot) for slot in block.live_slots}))
        layout.instructions += len(block.instructions) + 1
        if len(layout.places) > _MOST_BLOCKS:
            raise UnsupportedInstruction(f"more than {_MOST_BLOCKS} basic blocks")
        if layout.instructions > _MOST_INSTRUCTIONS:
            raise UnsupportedInstruction(f"more than {_MOST_INSTRUCTIONS} instructions")
        if block.terminator.kind != "call":
            continue
        callees = instance.callees[block.index] = []
        for address, callee in called(program, block):
            if callee.name in shared:
                callees.append(Callee(shared[callee.name], address, len(layout.calls)))
                layout.calls.append(SharedCall(instance, block, shared[callee.name]))
                continue
            inner = Instance(callee, instance.inner_stack, instance, block)
            if inner.stack + callee.local_bytes > local_size:
                raise UnsupportedInstruction("a stack that overflows")
            callees.append(Callee(inner, None, None))
            _add(program, layout, inner, shared, local_size, depth + 1)


def _plan_saves(layout: Layout, local_size: int) -> None:
    """Choose the registers that calls of shared functions save, and mark those as live in shared functions."""
    needed: set[tuple[int, int]] = set()
    for call in layout.calls:
        caller = call.caller
        resume = caller.code.blocks[call.block.terminator.targets[0]]
        index = layout.instances.index(caller)
        live = _live_in_callers(layout, caller) | {(index, slot) for slot in resume.live_slots}
        needed |= live
        if not caller.root.shared:
            # The kernel itself is never entered again.
            continue
        call.saved = [(caller.root.return_at, 4), (caller.root.frame_at, 4)]
        for number, slot in sorted(live):
            instance = layout.instances[number]
            size = _SIZES[instance.code.types[slot]] // LANES
            call.saved.append((instance.registers[slot], size if instance.code.types[slot] != "pred" else 0))
        call.size = -(-sum(max(size, 1) for _, size in call.saved) // 16) * 16
    for place in layout.places:
        if place.instance.root.shared:
            place.live |= needed
    # Each call of another function needs at least this much of the stack.
    layout.save_bytes = (local_size // FRAME_BYTES + 2) * max(call.size for call in layout.calls)


def _live_in_callers(layout: Layout, instance: Instance) -> set[tuple[int, int]]:
    """Return the callers' registers that are live after their calls return."""
    found: set[tuple[int, int]] = set()
    for caller, call in instance.callers:
        index = layout.instances.index(caller)
        found |= {(index, slot) for slot in caller.code.blocks[call.terminator.targets[0]].live_slots}
    return found


def called(program: Program, block: Block) -> list[tuple[int | None, Code]]:
    """Return the functions that a block's terminator may call; each with its address if the call is by pointer."""
    instruction = block.terminator.ending
    call = instruction.call
    if isinstance(call.target, Symbol):
        code = program.code(call.target.name)
        if code is None:
            raise UnsupportedInstruction(f"function {call.target.name}, which has no body")
        return [(None, code)]
    module = program.entry.module
    taken = [name for name in module.function_addresses if name in module.taken and module.accepts(name, call)]
    codes = [(module.function_addresses[name], program.code(name)) for name in taken]
    return [(address, code) for address, code in codes if code is not None]


# The lane masks of each basic block in a warp's state: the lanes that wait, are held, stand aside, and are parked at a
# barrier (see `layout`).
WAITING, HELD, ASIDE, PARKED = range(4)


def word_of(layout: Layout, kind: int, number: int) -> int:
    """Return the offset, in bytes, of a basic block's lane mask of one kind in a warp's state."""
    return 4 * Head.WORDS + 4 * (kind * len(layout.places) + number)
