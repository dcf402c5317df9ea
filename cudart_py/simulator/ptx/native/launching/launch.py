"""Run a launch in machine code: pass it the memory, pause it to check limits and signals, and report its faults."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..instances import WAITING, word_of
from ..layout import BUDGET, Context, Head, HostCall, ObjectWord, Status
from ..layout import Fault as Kind
from ..writing.counting import report_counts
from .buffers import Resident
from .host_calls import LaunchClock, describe_object, execute, read_clock
from .reports import Finding, allow_absent, fault_of, note_mask, timeout_of
from .speculation import Speculation, SpeculationFailed
from .waiting import DeadlockSearch, note_barriers, note_passing, release, run_in_turns

if TYPE_CHECKING:
    from ...running.launch import LaunchState
    from ..machine import Kernel

Array = NDArray[Any]

# One step of the NumPy engine executes an instruction for up to this many warps.
_WARPS_OF_STEP = 64
# After this many returns from the same warp, other warps get a turn, because it may wait for them in a loop.
_MOST_RETURNS = 32
# The functions that answer calls from machine code, other than the calls that `Speculation` answers.
_ANSWERS: dict[HostCall, Callable[[NativeLaunch, int], None]] = {
    HostCall.EXECUTE: execute,
    HostCall.OBJECT: describe_object,
    HostCall.CLOCK: read_clock,
    HostCall.OUTSIDE: note_mask,
    HostCall.DESERTED: note_mask,
    HostCall.ABSENT: allow_absent,
    HostCall.DIVERGED: note_barriers,
    HostCall.PASSING: note_passing,
}


class NativeLaunch:
    """One launch in machine code."""

    def __init__(self, kernel: Kernel, state: LaunchState) -> None:
        self.kernel = kernel
        self.state = state
        self.buffers = buffers = kernel.idle.take(kernel, state)
        self.warps, self.context, self.exchange = buffers.warps, buffers.context, buffers.exchange
        # The number of blocks that run together.
        self.unit = prod(state.launch.cluster)
        self.fault_addresses = buffers.fault_addresses
        self.block_counts, self.access_counts = buffers.block_counts, buffers.access_counts
        # The output of printf and assert: the block, the text, and its size in bytes in the device's buffer.
        self.printed: list[tuple[int, str, int]] = []
        # The mistakes that machine code has found itself, keyed by their kind and the instruction's id.
        self.findings: dict[tuple[str, int], Finding] = {}
        self.raised: BaseException | None = None
        # The descriptions of textures and surfaces to which machine code has pointers.
        self._objects: list[Array] = []
        self.speculation: Speculation | None = None
        # Set by another host thread whose failure ends the launch.
        self.stops = False
        # The number of warp instructions that machine code had executed when it last returned.
        self._used = 0
        self.clock = LaunchClock(self.warps)
        self._block = -1
        # The block and warp at the last return from machine code, and how many consecutive returns they have caused.
        self._here = (-1, -1)
        self._returns = 0
        self._most_returns = _MOST_RETURNS
        self._used_by_block = 0
        # The number of blocks that take turns; 0 while blocks run one after another.
        self.in_turns = 0
        self.resident = buffers.resident
        self.deadlocks = DeadlockSearch(buffers.context, state)
        buffers.parameters[:] = state.parameter_bytes
        for number, name in enumerate(kernel.sites.symbols):
            buffers.symbols[number] = state.symbols[name]
        self.context[Context.BLOCK] = state.first_block
        buffers.place_extents(state.memory.extents())

    def add_object(self, site: int, words: Array) -> None:
        """Add the description of a texture or a surface to a site's list."""
        self._objects.append(words)
        words[ObjectWord.NEXT] = self.buffers.sites[2 * site + 1]
        self.buffers.sites[2 * site + 1] = words.ctypes.data

    def install(self, resident: Resident) -> None:
        """Make machine code use a block's memory."""
        self.resident = resident
        for word, value in resident.words.items():
            self.context[word] = value

    # --- running

    def answer_calls(self) -> None:
        """Answer the calls of machine code from now on, until `give_back` ends this reference cycle."""
        self.buffers.host_calls.launch = self

    def run(self) -> None:
        """Run all blocks: one after another until the lanes of one wait for other blocks, and then in turns."""
        if not self.go_on():
            block = int(self.context[Context.BLOCK])
            run_in_turns(self, iter(range(block - block % self.unit + self.unit, self.state.blocks, self.unit)))

    def go_on(self) -> bool:
        """Run the current range of blocks; return True if they have ended, False if lanes wait for other blocks."""
        turns = 0
        while True:
            status = self._call()
            if self.context[Context.FAULT]:
                # Checked whatever the status, because machine code may not have noticed a failure of Python in time.
                raise self._failure()
            if status == Status.DONE:
                return True
            if status == Status.PAUSED and self._takes_long() and not self.kernel.sites.alone:
                # The warp may wait in a loop that isn't known to spin: give the next warp a turn, and after all warps
                # of the block the next block.
                self.context[Context.WARP] += np.uint64(1)
                turns += 1
                if turns > self.warps * self.unit:
                    return False
            self._check_limits()
            if status == Status.STUCK:
                release(self)
            elif status == Status.YIELDED:
                return False

    def _failure(self) -> BaseException:
        """Return the exception that ends the launch: one that Python has raised, a doubt of the checks, or a fault."""
        if self.context[Context.FAULT] == Kind.DOUBT:
            assert self.speculation is not None
            return self.speculation.doubted(self.context)
        return self.raised or fault_of(self)

    def answer(self, number: int) -> None:
        """Answer a call from machine code; `number` is the call's argument."""
        call = HostCall(int(self.context[Context.HOST_CALL]))
        function = _ANSWERS.get(call)
        if function is None:
            assert self.speculation is not None
            self.speculation.answer(call, number)
        elif not self.context[Context.FAULT]:
            function(self, number)

    def fail(self, error: BaseException) -> None:
        """End the launch with an exception; the first exception wins, but any other replaces a SpeculationFailed."""
        if self.raised is None or isinstance(self.raised, SpeculationFailed):
            self.raised = error
        self.context[Context.FAULT] = Kind.RAISED

    def _call(self) -> Status:
        """Run machine code until it returns; Python handles signals only then."""
        context = self.context
        context[Context.BUDGET] = BUDGET
        status = Status(self.kernel.run(self.buffers.context_address))
        used = self.executed - self._used
        self._used += used
        self.deadlocks.waited(used)
        block = int(context[Context.BLOCK]) // self.unit
        self._used_by_block = used + (self._used_by_block if block == self._block or self.in_turns else 0)
        self._block = block
        return status

    @property
    def executed(self) -> int:
        """Return how many warp instructions have been executed, as backward branches count them."""
        return self._used + BUDGET - int(self.buffers.budget[0])

    def _takes_long(self) -> bool:
        """Return whether the same warp has been running at many consecutive returns from machine code."""
        here = int(self.context[Context.BLOCK]), int(self.context[Context.WARP])
        self._returns = self._returns + 1 if here == self._here else 0
        self._here = here
        if self._returns < self._most_returns:
            return False
        # If one warp waits, others probably do, too: allow fewer returns from now on.
        self._returns, self._most_returns = 0, 2
        return True

    def made_progress(self) -> None:
        """Record that a block has ended, which restarts the count for the limit of instructions."""
        self._used_by_block = 0

    def _check_limits(self) -> None:
        state = self.state
        state.poll()
        if self.speculation is not None and self.speculation.overflows(self.context):
            raise SpeculationFailed
        if self.stops:
            raise InterruptedError("another thread has stopped the launch")
        by_warp = self._used_by_block // (self.warps * self.unit * max(1, self.in_turns))
        if limit := state.limit_reached(by_warp / _WARPS_OF_STEP):
            raise timeout_of(self, limit)

    def words(self, kind: int) -> Array:
        """Return the lane masks of one kind: one row per warp, one column per basic block."""
        kernel = self.kernel
        first, count = word_of(kernel.layout, kind, 0), len(kernel.layout.places)
        table = self.resident.states.view(np.uint32).reshape(-1, kernel.state_bytes // 4)
        return table[:, first // 4 : first // 4 + count]

    def head(self, word: Head) -> Array:
        """Return a word of the head of every warp's state."""
        return self.resident.states.view(np.uint32).reshape(-1, self.kernel.state_bytes // 4)[:, word]

    def ready_words(self) -> Array:
        """Return the bitmaps of the basic blocks at which lanes are ready to run: one row per warp."""
        ready = self.resident.states.view(np.uint64).reshape(-1, self.kernel.state_bytes // 8)
        first = self.kernel.layout.ready_at // 8
        return ready[:, first : first + self.kernel.layout.ready_words]

    def make_ready(self, warp: int, number: int, lanes: int) -> None:
        """Make lanes of a warp wait at a basic block, ready to run."""
        self.words(WAITING)[warp, number] |= np.uint32(lanes)
        self.ready_words()[warp, number // 64] |= np.uint64(1 << number % 64)

    def end(self) -> None:
        """Report the instructions executed, the time slept, the counts for the observer, and the output of printf."""
        self.state.clock.nap(int(self.context[Context.SLEPT]))
        self.state.steps_left -= self._used // max(1, self.warps)
        self.clock.end(self.state)
        if "counters" in self.kernel.watch:
            report_counts(self)
        for _, text, size in sorted(self.printed, key=lambda item: item[0]):
            self.state.printed.add(text, size)

    def give_back(self) -> None:
        """Return the buffers to the pool for later launches; this launch has ended."""
        self.buffers.host_calls.launch = None
        self.kernel.idle.give_back(self.buffers, self.state)
