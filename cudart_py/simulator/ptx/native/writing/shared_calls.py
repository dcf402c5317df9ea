"""Call functions of which there is one copy, and return from them (see `instances`); pass values to all functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.analysis.control_flow import Code
from ...syntax.instructions import Param
from ..errors import UnsupportedInstruction
from ..instances import Instance, SharedCall
from ..layout import Context, Fault
from ..library.frame import Spilled, each_active, fault_if
from ..vectors import I8, I32, I64, integer_like, lane_type, vector
from .emitter import Emitter

if TYPE_CHECKING:
    from .flow import Flow

Value = Any


class SharedCalls:
    """The generator of the saving and restoring of registers in a warp's function."""

    def __init__(self, flow: Flow, local_size: int) -> None:
        self._b, self._context, self._state = flow.b, flow.context, flow.state
        self._layout = flow.layout
        self._local_size = local_size

    def frame(self, instance: Instance) -> Value:
        """Return the offset of each lane's stack frame of a copy of a function."""
        b = self._b
        if not instance.root.shared:
            return b.const(I32, instance.stack)
        return b.add(self._word(instance.root.frame_at), b.const(I32, instance.stack))

    def check_stack(self, instance: Instance, local_bytes: int, lanes: Value, site: int) -> None:
        """End the launch if a call from a copy of a function exceeds the stack of some lanes."""
        b = self._b
        end = b.add(self.frame(instance), b.const(I32, instance.inner_stack - instance.stack + local_bytes))
        beyond = b.and_(b.bits(b.compare(">", end, self._local_size)), lanes)
        fault_if(b, self._context, beyond, Fault.STACK, site)

    def enter(self, number: int, lanes: Value) -> None:
        """Save the registers that a call's caller still needs, and note where lanes return to."""
        b, call = self._b, self._layout.calls[number]
        frame = b.add(self.frame(call.caller), b.const(I32, call.caller.inner_stack - call.caller.stack))
        if call.saved:
            self._move(call, lanes, self._word(self._layout.saves_at), saves=True)
            self._add_to_top(lanes, call.size)
        self._set(call.callee.return_at, lanes, b.const(I32, number))
        self._set(call.callee.frame_at, lanes, frame)

    def returning(self, instance: Instance, mask: Value) -> list[tuple[SharedCall, Value]]:
        """Return the calls to which lanes may return from a function, and which lanes do."""
        if not instance.shared:
            assert instance.caller is not None
            assert instance.call is not None
            return [(SharedCall(instance.caller, instance.call, instance), mask)]
        b = self._b
        back = self._word(instance.return_at)
        found = []
        for number, call in enumerate(self._layout.calls):
            if call.callee is instance:
                found.append((call, b.and_(b.bits(b.compare("==", back, number)), mask)))
        return found

    def leave(self, call: SharedCall, lanes: Value) -> None:
        """Restore the registers of a call's caller."""
        if call.saved:
            self._add_to_top(lanes, -call.size)
            self._move(call, lanes, self._word(self._layout.saves_at), saves=False)

    def _word(self, place: int) -> Value:
        return self._b.load(self._b.at(self._state, place), typ=vector(I32), align=64)

    def _set(self, place: int, lanes: Value, value: Value) -> None:
        b = self._b
        b.store(b.select(b.truth(lanes), value, self._word(place)), b.at(self._state, place), align=64)

    def _add_to_top(self, lanes: Value, size: int) -> None:
        top = self._word(self._layout.saves_at)
        self._set(self._layout.saves_at, lanes, self._b.add(top, self._b.const(I32, size & 0xFFFFFFFF)))

    def _move(self, call: SharedCall, lanes: Value, top: Value, *, saves: bool) -> None:
        """Generate a loop over lanes that copies registers to the memory of each lane, or back."""
        b, state = self._b, self._state
        kept = Spilled(b, top)
        warp = b.word(self._context, Context.WARP_AT_HAND)
        memory = b.pointer(self._context, Context.SAVES)

        def move(lane: Value) -> None:
            number = b.zext(lane, I64)
            own = b.mul(b.add(b.shl(warp, I64(5)), number), I64(self._layout.save_bytes))
            offset = b.zext(kept.get(number), I64)
            place = b.at(memory, b.add(own, offset))
            position = 0
            for register, size in call.saved:
                there = b.at(place, position)
                if not size:
                    self._move_predicate(b.at(state, register), there, lane, saves)
                    position += 1
                    continue
                kind = ir.IntType(8 * size)
                here = b.at(state, b.add(I64(register), b.mul(number, I64(size))))
                source, to = (here, there) if saves else (there, here)
                b.store(b.load(source, typ=kind, align=1), to, align=1)
                position += size

        each_active(b, lanes, move)

    def _move_predicate(self, word: Value, place: Value, lane: Value, saves: bool) -> None:
        b = self._b
        bits = b.load(word, typ=I32)
        if saves:
            b.store(b.trunc(b.and_(b.lshr(bits, lane), I32(1)), I8), place)
            return
        cleared = b.and_(bits, b.not_(b.shl(I32(1), lane)))
        b.store(b.or_(cleared, b.shl(b.zext(b.load(place, typ=I8), I32), lane)), word)


# --- parameters and results

# The slots of a parameter's pieces, keyed by their offsets and sizes.
Pieces = dict[tuple[int, int], int]
# A copy of a function, the slot of one of its registers, and the value that the register gets.
Passed = tuple[Instance, int, Value]


def pieces_of(code: Code, parameters: Iterable[Param]) -> list[Pieces]:
    """Return the pieces of parameters, or of results, that a function uses."""
    return [code.parameter_pieces.get(parameter.name, {}) for parameter in parameters]


def passed(e: Emitter, given: list[Pieces], to: Instance, wanted: list[Pieces]) -> list[Passed]:
    """Return the registers to which parameters or results are passed, with the values that the code passes."""
    found = []
    for pieces, slots in zip(given, wanted, strict=False):
        for key, slot in slots.items():
            found.append((to, slot, _piece(e, pieces, key, lane_type(to.code.types[slot]))))
    return found


def _piece(e: Emitter, pieces: Pieces, key: tuple[int, int], element: ir.Type) -> Value:
    """Return a piece of a parameter, assembled from its bits if it was stored in different pieces."""
    if key in pieces:
        value = e.register(pieces[key])
        return value if value.type.element == element else e.viewed(value, element)
    b = e.b
    offset, size = key
    if size > I64.width // 8 or any(length > I64.width // 8 for _, length in pieces):
        raise UnsupportedInstruction("a parameter of 16 bytes that is read in other pieces than it is written")
    total = b.const(I64, 0)
    for (start, length), slot in pieces.items():
        if start + length <= offset or start >= offset + size:
            continue
        part = b.resized(b.as_integer(e.register(slot)), I64, False)
        shift = b.const(I64, 8 * abs(start - offset))
        total = b.or_(total, b.shl(part, shift) if start >= offset else b.lshr(part, shift))
    return b.as_type(b.resized(total, integer_like(element), False), element)
