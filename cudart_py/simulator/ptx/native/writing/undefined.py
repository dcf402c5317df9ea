"""Follow undefined values in registers, until an instruction may depend on one.

A compiler leaves a register unwritten on paths on which its value is not needed, and moves such values around. Kernels
also load memory that nothing has been written to, and ignore what they have loaded. Machine code only determines
whether there may be something to report. It keeps, for each register concerned, a mask of the lanes in which its value
is undefined. Results are undefined by the rules of the checks (`Row.flow`), but with one bit per lane rather than per
byte. If a branch, an address, a store, an atomic operation or a call depends on an undefined value, there is a doubt.

Values that are loaded or shuffled, and those in shared memory, are followed only if the code is made for that: at
first, each load of unwritten memory and each shuffle from an inactive lane raises a doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.analysis.control_flow import Block
from ...compiling.opcode_table.opcodes import form_of
from ...syntax.instructions import Access, Instruction, Register
from ..instances import Instance
from ..layout import Context, Doubt
from ..library.checking.undefined import WORD, may_be_some
from ..library.frame import when
from ..sites import Site
from ..vectors import I32, I64, Builder

if TYPE_CHECKING:
    from .flow import Flow

Value = Any


class Undefined:
    """The generator of the code that follows undefined values, also those that are loaded or shuffled if `follows`.

    `doubt_if` raises a doubt if a condition holds.
    """

    def __init__(self, flow: Flow, follows: bool, doubt_if: Callable[..., None]) -> None:
        self._b, self._context, self._state = flow.b, flow.context, flow.state
        self._words = flow.layout.undefined
        self._main = flow.layout.places[flow.layout.start].instance
        self._follows = follows
        # The lanes whose next store to shared memory stores an undefined value.
        self._stored: Value = I32(0)
        self._doubt_if = doubt_if

    def begin(self, unwritten: Iterable[int]) -> None:
        """Generate the state at the start of the kernel: the values of `unwritten` slots are undefined."""
        for slot in self._words:
            self._b.store(I32(-1 if slot in unwritten else 0), self._word(slot))

    def before(self, instruction: Instruction, instance: Instance, mask: Value) -> None:
        """Generate the effect of an instruction that the lanes of a mask are about to execute."""
        b, row = self._b, form_of(instruction).row
        self._stored = I32(0)
        if self._follows and row.access:
            b.set_word(self._context, Context.UNWRITTEN, I64(0))
        if not self._words or instance is not self._main:
            return
        reads, writes = instance.code.touched(instruction)
        masks = [self._load(slot) for slot in reads if slot in self._words]
        if row.access in ("ld", "st", "atom", "red"):
            checked = masks
            if row.name == "st" and form_of(instruction).space == "shared":
                # What it stores is followed, but not its address.
                place = instruction.operands[0]
                bases = [place.base.name] if isinstance(place, Access) and isinstance(place.base, Register) else []
                slots = {instance.code.slot(name) for name in bases}
                checked = [self._load(slot) for slot in reads if slot in self._words and slot in slots]
                self._stored = b.and_(reduce(b.or_, masks, I32(0)), mask)
                if not self._follows:
                    self._doubt(masks, instruction, mask, Doubt.UNWRITTEN)
            self._doubt(checked, instruction, mask)
        if row.flow == "fresh":
            # It comes from memory or from other lanes, whose undefined values the checks don't follow either.
            masks = []
        result: Value = I32(0)
        if masks and row.flow in ("choice", "select"):
            result = reduce(b.and_, masks) if len(masks) == len(reads) else result
        elif masks:
            result = reduce(b.or_, masks)
        self._set(writes, result, mask)

    def after(self, instruction: Instruction, instance: Instance, mask: Value) -> None:
        """Generate the effect of the access, if any, that the lanes of a mask have just made."""
        row, b = form_of(instruction).row, self._b
        if not self._follows or not row.access:
            return
        lanes = b.trunc(b.word(self._context, Context.UNWRITTEN), I32)
        if instance is self._main and row.access == "ld" and not row.converges:
            self._set(instance.code.touched(instruction)[1], lanes, mask)
        else:
            self._doubt_if(b.icmp_unsigned("!=", lanes, I32(0)), instruction, instance)

    def received(self, instruction: Instruction, instance: Instance, lanes: Value) -> bool:
        """Generate the effect of lanes that shuffle from inactive ones; return whether their values are followed."""
        if not self._follows or instance is not self._main:
            return False
        self._set(instance.code.touched(instruction)[1], I32(-1), lanes)
        return True

    def access(self, kind: str, space: str, address: Value, size: int, mask: Value, site: Site) -> None:
        """Generate the effect of an access on the marks of shared memory."""
        if not self._follows or (kind == "store" and space != "shared") or space not in ("shared", "generic"):
            return
        b, some = self._b, may_be_some(self._b, self._context)
        if kind == "store":
            stored = self._stored if site.instance is self._main else I32(0)
            with when(b, b.or_(some, b.icmp_unsigned("!=", stored, I32(0)))):
                b.invoke(f"undefined.store.{size}", ir.VoidType(), self._context, address, mask, stored)
            return
        with when(b, some):
            lanes = mask
            if space == "shared":
                lanes = b.invoke(f"undefined.load.{size}", I32, self._context, address, mask)
            known = b.word(self._context, Context.UNWRITTEN)
            b.set_word(self._context, Context.UNWRITTEN, b.or_(known, b.zext(lanes, I64)))

    def begin_block(self, b: Builder) -> None:
        """Generate the reset of the marks of shared memory when a block begins."""
        if self._follows:
            with when(b, may_be_some(b, self._context)):
                size = b.add(b.word(self._context, Context.SHARED_LIMIT), I64(WORD))
                b.fill(b.pointer(self._context, Context.SHARED_UNDEFINED), size)

    def ended(self, block: Block, instance: Instance, mask: Value) -> None:
        """Generate a doubt if the end of a block, such as a branch or a call, depends on an undefined value."""
        terminator = block.terminator
        if not self._words or instance is not self._main or terminator.instruction is None:
            return
        reads, writes = [terminator.condition], list[int]()
        if terminator.kind in ("call", "barrier"):
            reads, writes = instance.code.touched(terminator.instruction)
        self._doubt([self._load(slot) for slot in reads if slot in self._words], terminator.instruction, mask)
        self._set(writes, I32(0), mask)

    def _doubt(self, masks: list[Value], instruction: Instruction, mask: Value, doubt: Doubt = Doubt.FINDING) -> None:
        b = self._b
        if masks:
            some = b.and_(reduce(b.or_, masks), mask)
            self._doubt_if(b.icmp_unsigned("!=", some, I32(0)), instruction, self._main, doubt)

    def _set(self, slots: Iterable[int], result: Value, mask: Value) -> None:
        b = self._b
        for slot in slots:
            if slot in self._words:
                kept = b.and_(self._load(slot), b.not_(mask))
                b.store(b.or_(kept, b.and_(result, mask)), self._word(slot))

    def _load(self, slot: int) -> Value:
        return self._b.load(self._word(slot), typ=I32)

    def _word(self, slot: int) -> Value:
        return self._b.at(self._state, self._words[slot])
