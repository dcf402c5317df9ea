"""Generate the scheduling of a warp: lanes wait at basic blocks, and the lowest block with waiting lanes runs next.

A loop in which lanes may wait for other lanes lets these have a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...compiling.analysis.control_flow import Block
from ...compiling.analysis.wait_loops import Waiting
from ...compiling.opcode_table.opcodes import form_of
from ...syntax.instructions import Immediate, Register
from ..errors import UnsupportedInstruction
from ..instances import WAITING, Layout, Place, word_of
from ..layout import Context, Head, Status
from ..library.frame import when
from ..vectors import I32, I64

if TYPE_CHECKING:
    from .flow import Flow

Value = Any

# The number of iterations of a loop before other lanes get a turn: few in loops that clearly wait for others, many in
# loops that may do so because they contain atomics or fences. A loop that only waits at barriers in memory ends at once
# or after other lanes have had a turn.
_WAIT_TURNS = 1
_SPIN_TURNS = 16
_LOOP_TURNS = 4096


class Scheduling:
    """The variables of a warp's function that determine the next block, and the code that sets them.

    `entries` are the LLVM blocks at which the places of the layout begin.
    """

    def __init__(self, flow: Flow) -> None:
        b, layout = flow.b, flow.layout
        self._b, self._context, self._state = b, flow.context, flow.state
        self._layout = layout
        self.mask = b.alloca(I32)
        self._lowest = b.alloca(I32)
        # The words of the bitmap stay in the warp's state: in variables, they would make LLVM take longer, but not the
        # code run faster.
        self._ready = [b.at(flow.state, layout.ready_at + 8 * index) for index in range(layout.ready_words)]
        function = b.function
        self.dispatch = function.append_basic_block("dispatch")
        self.idle = function.append_basic_block("idle")
        self.entries = [function.append_basic_block(f"place{number}") for number in range(len(layout.places))]

    def head(self, word: Head) -> Value:
        """Return the pointer to a word of the state's head."""
        return self._b.at(self._state, 4 * word)

    def word(self, kind: int, number: int) -> Value:
        """Return the pointer to a basic block's lane mask of one kind."""
        return self._b.at(self._state, word_of(self._layout, kind, number))

    def add_lanes(self, pointer: Value, lanes: Value) -> None:
        """Add lanes to a lane mask in memory."""
        b = self._b
        b.store(b.or_(b.load(pointer, typ=I32), lanes), pointer)

    def members(self, place: Place) -> Value:
        """Return each lane's member mask at the beginning of a block that has one."""
        b, operand, instance = self._b, place.block.mask, place.instance
        if isinstance(operand, Register):
            return instance.load(b, self._state, instance.code.slot(operand.name), I32)
        if not isinstance(operand, Immediate):
            raise UnsupportedInstruction("a member mask of another form")
        return b.const(I32, operand.value & 0xFFFFFFFF)

    def push(self, number: int, lanes: Value) -> None:
        """Make lanes wait at a block, ready to run."""
        b = self._b
        self.add_lanes(self.word(WAITING, number), lanes)
        variable = self._ready[number // 64]
        b.store(b.or_(b.load(variable, typ=I64), I64(1 << number % 64)), variable)
        lowest = b.load(self._lowest, typ=I32)
        b.store(b.select(b.icmp_unsigned("<", I32(number), lowest), I32(number), lowest), self._lowest)

    def go(self, number: int, lanes: Value) -> None:
        """Continue at a block directly if no lanes wait at it or a lower block; otherwise dispatch the lowest block."""
        b = self._b
        with when(b, b.icmp_unsigned("<", I32(number), b.load(self._lowest, typ=I32))):
            b.store(lanes, self.mask)
            b.branch(self.entries[number])
        self.push(number, lanes)
        b.branch(self.dispatch)

    def spend(self, cost: int) -> Value:
        """Take instructions from the budget; return whether it is used up."""
        b = self._b
        left = b.sub(b.word(self._context, Context.BUDGET), I64(cost))
        b.set_word(self._context, Context.BUDGET, left)
        return b.icmp_signed("<", left, I64(0))

    def go_back(self, number: int, lanes: Value, cost: int) -> None:
        """Branch back to a block, or return to Python if the budget is used up."""
        b = self._b
        with when(b, self.spend(cost), likely=False):
            self.push(number, lanes)
            b.ret(I32(Status.PAUSED))
        self.go(number, lanes)

    def write_dispatch(self) -> None:
        """Generate the dispatch to the lowest block with ready lanes."""
        b = self._b
        b.position_at_end(self.dispatch)
        words = [b.load(variable, typ=I64) for variable in self._ready]
        number = self._first_bit(words)
        with when(b, b.icmp_unsigned("==", number, I32(64 * len(words)))):
            b.branch(self.idle)
        bit = b.shl(I64(1), b.zext(b.and_(number, I32(63)), I64))
        for index, word in enumerate(words):
            here = b.icmp_unsigned("==", b.lshr(number, I32(6)), I32(index))
            words[index] = b.select(here, b.and_(word, b.not_(bit)), word)
            b.store(words[index], self._ready[index])
        b.store(self._first_bit(words), self._lowest)
        place = b.gep(self.word(WAITING, 0), [number], source_etype=I32)
        b.store(b.load(place, typ=I32), self.mask)
        b.store(I32(0), place)
        nowhere = b.function.append_basic_block("nowhere")
        choice = b.switch(number, nowhere)
        for index, entry in enumerate(self.entries):
            choice.add_case(I32(index), entry)
        b.position_at_end(nowhere)
        b.unreachable()

    def _first_bit(self, words: list[Value]) -> Value:
        """Return the index of the first bit that is set in a bitmap, or the number of its bits."""
        b, found = self._b, I32(64 * len(words))
        for index, word in reversed(list(enumerate(words))):
            inside = b.add(b.trunc(b.trailing_zeros(word), I32), I32(64 * index))
            found = b.select(b.icmp_unsigned("!=", word, I64(0)), inside, found)
        return found


class Loops:
    """The loops of a kernel: for each backward branch, the numbers of its block and of its target."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._turns = [_turns(place.block) for place in layout.places]
        self.edges: list[tuple[int, int]] = []
        for number, place in enumerate(layout.places):
            if place.block.terminator.kind in ("next", "branch", "switch"):
                targets = [place.instance.numbers[target] for target in place.block.terminator.targets]
                self.edges += [(number, target) for target in targets if target <= number]

    def turns(self, number: int, target: int) -> int:
        """Return how many times lanes may branch back from a block to another before other lanes get a turn.

        The result is 0 (no limit) if the loop doesn't wait for other lanes.
        """
        return min(filter(None, self._turns[target : number + 1]), default=0)

    def waiting(self) -> list[int]:
        """Return the first blocks of loops that may wait for other lanes."""
        return sorted({target for number, target in self.edges if self.turns(number, target)})

    def polls(self, number: int) -> bool:
        """Return whether loops that begin with a block may wait for other lanes otherwise than at barriers."""
        return number in self.waiting() and not self._layout.places[number].block.waits

    def load(self) -> bool:
        """Return whether a loop loads from memory that other lanes may store to, even if it isn't known to wait."""
        return any(
            form.row.access in ("ld", "tex") and form.space not in ("param", "const")
            for number, target in self.edges
            for place in self._layout.places[target : number + 1]
            for form in map(form_of, place.block.instructions)
        )


def _turns(block: Block) -> int:
    """Return how many iterations a loop around a block may have before other lanes get a turn; 0 means no limit."""
    if block.waits:
        return _WAIT_TURNS
    return {Waiting.POLLS: _SPIN_TURNS, Waiting.LOCKS: _LOOP_TURNS, Waiting.ATOMICS: _LOOP_TURNS}.get(block.waiting, 0)
