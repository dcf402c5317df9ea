"""Read the operands and write the results of one basic block's instructions as vectors with one element per lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from ...compiling.codegen import exchanged_slots
from ...running.specials import lane_mask
from ...syntax import special_names
from ...syntax.instructions import Immediate, Instruction, Operand, Register, Symbol
from ..errors import UnsupportedInstruction
from ..layout import LANES, SLOT_BYTES, SLOTS, Context, HostCall
from ..library.frame import ask_about, ask_python, when
from ..vectors import F32, F64, I1, I8, I32, I64, integer_like, lane_type, vector

if TYPE_CHECKING:
    from ..instances import Instance
    from .flow import Flow

Value = Any

_NAMES = {I1: "pred", F32: "f32", F64: "f64"}


class Emitter:
    """The values of one block's registers while the IR of its instructions is generated.

    `context` and `state` are the function's arguments, and `mask` is the active mask of the block. `counting` counts
    accesses for an observer, and `checking` examines them for the checks; either is None if it isn't needed.
    Single-precision results may be `loose`: their NaNs have any bit pattern until something needs their bits.
    """

    def __init__(self, flow: Flow, instance: Instance) -> None:
        self.b, self.context, self.state = flow.b, flow.context, flow.state
        # Machine code has no use for the rest of the environment.
        self.environment = flow.program.environment(frozenset(), False)
        self.instance = instance
        self.code = instance.code
        self.sites = flow.sites
        self.counting = flow.counting
        self.checking = flow.checking
        self._shared_calls = flow.shared_calls
        self.mask: Value = None
        self.instruction: Instruction | None = None
        self.accessed = False
        self.values: dict[int, Value] = {}
        self.written: set[int] = set()
        self._loose: set[int] = set()
        self._specials: dict[str, Value] = {}

    # --- registers

    def storage(self, slot: int) -> ir.Type:
        """Return the type of one lane's value of a register."""
        return lane_type(self.code.types[slot])

    def register(self, slot: int, loose: bool = False) -> Value:
        """Return a register's current value in its storage type; `loose` accepts NaNs with any bit pattern."""
        if slot not in self.values:
            self.values[slot] = self.instance.load(self.b, self.state, slot, self.storage(slot))
        elif slot in self._loose and not loose:
            self.values[slot] = self.b.canonical(self.values[slot])
            self._loose.discard(slot)
        return self.values[slot]

    def put(self, slot: int, value: Value, loose: bool = False) -> None:
        """Set the value that a register has from here on in the block."""
        self.values[slot] = value
        self.written.add(slot)
        (self._loose.add if loose else self._loose.discard)(slot)

    # --- operands

    def value(self, operand: Operand, ptx_type: str, loose: bool = False) -> Value:
        """Return an operand as a vector with elements of a PTX type."""
        return self.typed(operand, lane_type(ptx_type), loose)

    def typed(self, operand: Operand, element: ir.Type, loose: bool = False) -> Value:
        """Return an operand as a vector with elements of an LLVM type."""
        b = self.b
        if isinstance(operand, Register):
            slot = self.code.slot(operand.name)
            found = self.register(slot, loose and element == F32)
            if operand.negated:
                return b.not_(found)
            return self.viewed(found, element)
        if isinstance(operand, Immediate):
            return b.const(element, operand.bits_as(_NAMES.get(element) or f"b{element.width}"))
        if isinstance(operand, Symbol):
            return self._symbol(operand, element)
        raise UnsupportedInstruction("an operand of another form")

    def viewed(self, found: Value, element: ir.Type) -> Value:
        """Return a register's value as elements of another type, truncated if the register is wider."""
        have = found.type.element
        if have == element:
            return found
        if I1 in (have, element):
            raise UnsupportedInstruction("a predicate read as a number")
        bits, wanted = self.b.as_integer(found), integer_like(element)
        if bits.type.element.width < wanted.width:
            raise UnsupportedInstruction("a register that is narrower than what is read from it")
        return self.b.as_type(self.b.resized(bits, wanted, False), element)

    def _symbol(self, symbol: Symbol, element: ir.Type) -> Value:
        b, name = self.b, symbol.name
        if name.startswith("%"):
            return self.special(name, element)
        constant = self.environment.constant_of(symbol)
        if constant is not None:
            return self.typed(constant, element)
        if name in self.code.local_offsets:
            offset = self.code.local_offsets[name] + symbol.offset
            frame = b.resized(self._shared_calls.frame(self.instance), element, False)
            return b.add(frame, b.const(element, offset))
        if name not in self.environment.variables:
            raise UnsupportedInstruction(f"symbol {name}")
        table = b.pointer(self.context, Context.SYMBOLS)
        address = b.load(b.at(table, 8 * self.sites.symbol(name)), typ=I64)
        return b.resized(b.splat(b.add(address, I64(symbol.offset))), element, False)

    def special(self, name: str, element: ir.Type) -> Value:
        """Return the value of a special register."""
        if special_names.is_clock(name):
            return self.b.resized(self._clock(name), element, False)
        if name not in self._specials:
            self._specials[name] = self._look(name)
        found = self._specials[name]
        return found if found.type.element == I1 else self.b.resized(found, element, False)

    def _clock(self, name: str) -> Value:
        """Return the value of a clock or timer, which Python reads."""
        b = self.b
        assert self.instruction is not None
        site = self.sites.add(self.instruction, self.instance)
        self.sites.calls = True
        ask_python(b, self.context, HostCall.CLOCK, I64(site | special_names.CLOCKS.index(name) << LANES))
        value = b.word(self.context, Context.ANSWER)
        return b.splat(value if special_names.dtype(name) == "u8" else b.trunc(value, I32))

    def _look(self, name: str) -> Value:
        b = self.b
        base, _, axis = name[1:].partition(".")
        if base == "tid" and axis in ("x", "y", "z"):
            row = b.add(b.mul(self._warp(), I32(3)), I32("xyz".index(axis)))
            table = b.pointer(self.context, Context.THREADS)
            place = b.at(table, b.zext(b.mul(row, I32(4 * LANES)), I64))
            return b.load(place, typ=vector(I32), align=128)
        if base == "laneid":
            return b.lanes()
        if base.startswith("lanemask_"):
            return b.each(I32, lane_mask(np.arange(LANES, dtype=np.uint32), base[9:]).tolist())
        if base == "warpid":
            return b.splat(self._warp())
        if base == "ctaid" and axis in ("x", "y", "z"):
            return b.splat(b.trunc(b.word(self.context, Context.BLOCK_X + "xyz".index(axis)), I32))
        if base == "smid":
            place = b.urem(b.word(self.context, Context.BLOCK), b.word(self.context, Context.SMS))
            numbers = b.pointer(self.context, Context.SM_NUMBERS)
            return b.splat(b.load(b.at(numbers, b.mul(place, I64(4))), typ=I32))
        if base == "cluster_ctarank":
            # The blocks of a cluster have consecutive indices.
            rank = b.urem(b.word(self.context, Context.BLOCK), b.word(self.context, Context.CLUSTER))
            return b.splat(b.trunc(rank, I32))
        if base in ("clusterid", "cluster_ctaid") and axis in ("x", "y", "z"):
            place, size = (
                b.word(self.context, first + "xyz".index(axis)) for first in (Context.BLOCK_X, Context.CLUSTER_X)
            )
            return b.splat(b.trunc((b.udiv if base == "clusterid" else b.urem)(place, size), I32))
        table = b.pointer(self.context, Context.SPECIALS)
        word = b.load(b.at(table, 8 * self.sites.special(name)), typ=I64)
        kind = {"?": I1, "u4": I32, "u8": I64}[special_names.dtype(name)]
        return b.splat(word if kind == I64 else b.trunc(word, kind))

    def _warp(self) -> Value:
        """Return the index of the warp in its block."""
        return self.b.trunc(self.b.word(self.context, Context.WARP_AT_HAND), I32)

    # --- results

    def write(self, operand: Operand, value: Value, ptx_type: str, loose: bool = False) -> None:
        """Assign a vector with elements of a PTX type to a register; if `loose`, its NaNs have any bit pattern."""
        if isinstance(operand, Symbol) and operand.name == "_":
            return
        if not isinstance(operand, Register):
            raise UnsupportedInstruction("a destination of another form")
        slot = self.code.slot(operand.name)
        self.write_slot(slot, value, ptx_type, loose)

    def write_slot(self, slot: int, value: Value, ptx_type: str, loose: bool = False) -> None:
        """Assign a vector with elements of a PTX type to a slot, zero- or sign-extended if the slot is wider."""
        kept = self.storage(slot)
        if value.type.element != kept:
            if I1 in (kept, value.type.element):
                raise UnsupportedInstruction("a predicate written as a number")
            if loose:
                value = self.b.canonical(value)
                loose = False
            bits = self.b.as_integer(value)
            value = self.b.as_type(self.b.resized(bits, integer_like(kept), ptx_type[0] == "s"), kept)
        self.put(slot, value, loose)

    def flags(self) -> Value:
        """Return the active mask of the block as one truth value per lane."""
        return self.b.truth(self.mask)

    def call(self, name: str, result: ir.Type, *arguments: Value) -> Value:
        """Call a function of the native library."""
        return self.b.invoke(name, result, *arguments)

    def execute(self, i: Instruction, mask: Value | None = None, *, condition: Value | None = None) -> None:
        """Let Python execute an instruction as the NumPy engine does, for all its lanes or those in `mask`.

        With a `condition`, it does so only if that is true.
        """
        b, reads = self.b, exchanged_slots(self.code, i)[0]
        if len(reads) > SLOTS or any(self.code.types[slot] == "b128" for slot in reads):
            raise UnsupportedInstruction("so many operands of an instruction that Python executes")
        # They are read before the branch, so that they are known after it.
        registers = [self.register(slot) for slot in reads]
        site = self.sites.add(i, self.instance)
        self.accessed = self.sites.calls = True
        with when(b, I1(1) if condition is None else condition):
            values = [b.resized(x, I8, False) if x.type.element == I1 else b.as_integer(x) for x in registers]
            ask_about(b, self.context, HostCall.EXECUTE, self.mask if mask is None else mask, site, *values)

    def take_results(self, i: Instruction) -> None:
        """Assign the results of an instruction that Python has executed to its registers."""
        b, exchange = self.b, self.b.pointer(self.context, Context.EXCHANGE)
        for index, slot in enumerate(exchanged_slots(self.code, i)[1]):
            kind = self.storage(slot)
            value = b.load(b.at(exchange, index * SLOT_BYTES), typ=vector(I8 if kind == I1 else kind), align=64)
            self.put(slot, b.compare("!=", value, 0) if kind == I1 else value)

    def check(
        self,
        kind: str,
        space: str,
        address: Value,
        size: int,
        count: int,
        site: int,
        values: Sequence[Value] = (),
        mask: Value | None = None,
    ) -> None:
        """Let the checks examine an access to `count` elements of `size` bytes, immediately before it happens.

        `mask` is the mask of the lanes that make the access, by default all lanes that execute the instruction.
        """
        if self.checking is not None:
            lanes = self.mask if mask is None else mask
            self.checking.access(kind, space, address, size, count, site, lanes, values)

    def observe(self, kind: str, space: str, address: Value, size: int, site: int, mask: Value | None = None) -> None:
        """Count an access of `size` bytes for an observer, immediately before it happens; `mask` is as in `check`."""
        if self.counting is not None:
            self.counting.access(kind, space, address, size, site, self.mask if mask is None else mask)
