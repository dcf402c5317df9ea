"""The checks of a launch: an observer of the PTX machine that looks for mistakes that hardware does not report.

These are races in shared and global memory, uninitialised values, writes beyond a block's shared variables, barriers
that some threads never reach, and wrong member masks. A finding does not affect the launch. Each kind of mistake is
reported once per launch for the instructions of a line that have the same opcode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.running.memory.addresses import Address, Mixed
from ..ptx.running.observer import MatrixPiece, MatrixRows, Observer, PieceRecords
from ..ptx.running.runs import MANY_LAUNCHES
from ..ptx.syntax.instructions import Immediate, Instruction
from ..state.memory.records.record_limit import limit
from ..state.memory.records.shadow import MOST_THREADS
from .accesses import MemoryAccess
from .chunk_records import ChunkRecords, records_of
from .divergence import member_masks, outside_mask
from .launch_findings import Heard, LaunchFindings
from .memory_checks import MemoryChecks
from .native_records import NativeRecords
from .races import concurrency
from .races.races import Races

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block
    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.running.scheduler import Chunk

Method = TypeVar("Method", bound=Callable[..., None])


def without_failing(method: Method) -> Method:
    """Wrap a method: if there is no memory for records, it ends the checks of the launch instead of raising."""

    @functools.wraps(method)
    def guarded(checks: LaunchChecks, *arguments: Any) -> None:
        if checks.ended_early:
            return
        try:
            method(checks, *arguments)
        except MemoryError:
            limit.say(
                "no memory is left for the records of a launch",
                "the rest of that launch is not checked, and all memory counts as written",
            )
            checks.end_early()

    return cast("Method", guarded)


def _is_named(site: Instruction) -> bool:
    """Return whether a barrier is known to be other than barrier 0, which is that of __syncthreads.

    PTX allows the warps of a block to wait at different instructions, which compilers use with barriers of their own.
    """
    number = site.operands[1 if "red" in form_of(site).words else 0] if site.operands else None
    return isinstance(number, Immediate) and number.value != 0


class LaunchChecks(Observer):
    """The checks of one launch; `ended_early` is true if they stopped before the launch ended.

    `heard` is called for each finding, when it is found.
    """

    ended_early = False
    can_restart = True
    _lacks_records = False

    def __init__(self, heard: Heard = lambda *_: None) -> None:
        self._heard = heard

    def start(self, state: LaunchState) -> None:
        """Prepare the checks for the launch, and for earlier work that is not ordered before it."""
        self._findings = LaunchFindings(state, self._heard)
        self.restart(state)

    def restart(self, state: LaunchState) -> None:
        """Forget the accesses of the launch, which run again; findings already reported are not repeated."""
        # A record has too few bits for larger thread numbers.
        self._threads = state.blocks * state.threads
        self._racing = self._threads < MOST_THREADS
        spans = concurrency.unordered()
        self._memory = state.memory
        self._launch = state.launch
        self._program = state.program
        self._spans, self._concurrent = spans, bool(spans) or concurrency.others_wait()
        self._native: NativeRecords | None = None
        self._races = Races(spans, state.launch, block_scope=state.program.block_scoped)
        self._memory_checks = MemoryChecks(
            state,
            self._races,
            self._findings,
            racing=self._racing,
            concurrent=self._concurrent,
        )
        self.watch = frozenset({"checks"}) if self._racing else None
        if not self._racing:
            self.lack_records()

    def has_mistake(self) -> bool:
        """Return whether there is a finding in this launch, or were findings in many launches of the kernel."""
        return self._findings.some or self._program.launches_with_mistakes >= MANY_LAUNCHES

    def lack_records(self) -> None:
        """Take note that machine code cannot record all accesses of this launch."""
        self._lacks_records = True

    def lacks_records(self) -> bool:
        """Return whether machine code cannot record all accesses of this launch."""
        return self._lacks_records

    def end_early(self) -> None:
        """Stop checking this launch, and treat all memory as written, because its writes are no longer recorded."""
        self.ended_early = True
        if self._lacks_records:
            most = PieceRecords.THREAD + 1
            limit.say(
                "not all accesses of a long launch can be recorded",
                "that launch is not checked, and all memory counts as written",
                f"Launches of at most {most:,} threads are checked" if self._threads > most else "",
            )
        elif not self._findings.some:
            limit.say(
                f"{MANY_LAUNCHES} launches of a kernel had mistakes",
                "its later launches are not checked, and all memory counts as written",
                "Correct the mistakes that are reported, and run the program again",
            )
        for start in self._memory.extents()[0].tolist():
            self._memory.shadow(start).initialised = True

    def records(self) -> NativeRecords:
        """Return new records for machine code."""
        past = self._races.past if self._concurrent else None
        self._native = NativeRecords(self._memory, self._launch, self._spans, past)
        return self._native

    @without_failing
    def ended(self, chunk: Chunk) -> None:
        """Keep only the part of a chunk's happens-before relation that later chunks may need."""
        self._races.ended(chunk)
        self._memory_checks.ended(chunk)

    @without_failing
    def finish(self, state: LaunchState) -> None:
        """End the checks, and remember the launch for work in other streams that is not ordered after it."""
        self._memory_checks.finish()
        if self._racing:
            past, traces = self._races.past, self._races.traces if self._native is None else self._native.traces
            concurrency.keep(past.began, past.name_from_outside, traces, self._program.block_scoped)

    @without_failing
    def block(self, group: Group, block: Block) -> None:
        """Check member masks, and look for lanes that pass a barrier at which others of their thread block wait."""
        if block.converges:
            masks = member_masks(group, block)
            position = outside_mask(group, masks)
            if position >= 0:
                self.outside(group, block.first, position)
            if self._racing and block.first is not None:
                self._races.order(group.chunk).warp_together(group, masks, self._races.tick(block.first))
        records: ChunkRecords | None = group.chunk.notes
        divergence = records.divergence if records is not None else None
        if divergence is not None and divergence.some:
            for barrier, position in divergence.passing(group, block):
                self.passing(group, block, position, barrier)

    @without_failing
    def executed(self, group: Group, block: Block) -> None:
        """Propagate the marks of uninitialised values from operands to results."""
        records: ChunkRecords | None = group.chunk.notes
        marks = records.marks if records is not None else None
        if marks is None:
            return
        reached = marks.executed(group, block)
        if reached is not None:
            sink, site, position, origin = reached
            what = f"uninitialised value reaches {sink}: {origin}"
            self._findings.put("uninitialised", site, group, position, what)

    @without_failing
    def unwritten(self, group: Group, slot: int) -> None:
        """Mark the value of a register that no lane has written."""
        records_of(group.chunk).marks_of(group.chunk).unwritten(group, slot)

    @without_failing
    def outside(self, group: Group, site: Instruction | None, position: int) -> None:
        """Report a member mask that does not name a lane which executes the instruction."""
        if site is not None:
            what = "it is executed by a thread that its member mask doesn't name"
            self._findings.put("mask", site, group, position, what)

    @without_failing
    def deserted(self, group: Group, site: Instruction | None, position: int) -> None:
        """Report a member mask that names lanes that never reach the instruction."""
        if site is not None:
            self._findings.put("mask", site, group, position, "its member mask names threads that never reach it")

    @without_failing
    def shuffle(self, group: Group, site: Instruction, mode: str, lane: Any, control: Any) -> None:
        """Mark the values that lanes read from lanes that don't take part in the shuffle: these are undefined."""
        absent = group.chunk.warps.absent(group, mode, lane, control)
        if absent is None or self._findings.known("mask", site):
            return
        positions, sources = absent
        marks, where = records_of(group.chunk).marks_of(group.chunk), self._findings.where(site)
        marks.read(
            site,
            group.lane_numbers[positions],
            lambda: f"a shuffle at {where} read it from lane {sources[0]} of the warp, which does not take part",
        )

    @without_failing
    def fence(self, group: Group, site: Instruction) -> None:
        """Record a fence."""
        if not self._racing:
            return
        form, now = form_of(site), self._races.tick(site)
        order = self._races.order(group.chunk)
        if "proxy" not in form.words:
            order.fence(group, now, form.scope)
        elif not {"async", "async::generic"}.isdisjoint(form.words):
            records_of(group.chunk).bulk_of(group.chunk).fences.note(group, order, now)

    @without_failing
    def barrier(self, group: Group, site: Instruction, event: str) -> None:
        """Record the waiting threads and the accesses that the barrier orders; report divergent barriers."""
        words = form_of(site).words
        whole = len(site.operands) == (3 if "red" in words else 1) or "cluster" in words
        now = self._races.tick(site)
        if whole and not _is_named(site):
            divergence = records_of(group.chunk).divergence_of(group.chunk)
            if event == "arrive" and "arrive" not in words:
                other = divergence.arrive(group, site)
                if other is not None:
                    self.apart(group, site, other[1], other[0])
            elif event == "release":
                divergence.leave(group)
        if not self._racing:
            return
        order = self._races.order(group.chunk)
        if "cluster" in words:
            # A cluster barrier orders all blocks of the cluster.
            if event == "release":
                order.acquire(group, now)
            else:
                order.release(group, now, "gpu")
        if event == "release":
            if whole:
                order.barrier_done(group, now)
            else:
                order.acquire(group, now)
        elif not whole:
            order.release(group, now, "cta")

    @without_failing
    def apart(self, group: Group, site: Instruction, position: int, other: Instruction) -> None:
        """Report a barrier that a thread reaches while others of its block wait at another one."""
        where = "at the same one, called from elsewhere"
        if other is not site:
            where = f"at the one at {self._findings.where(other)}"
        what = f"divergent barrier: other threads of the block wait {where}"
        self._findings.put("divergence", site, group, position, what)

    @without_failing
    def passing(self, group: Group, block: Block, position: int, barrier: Instruction) -> None:
        """Report a barrier that a thread has gone past, at which others of its block wait."""
        accesses = (one for one in block.instructions if form_of(one).row.access and form_of(one).space != "param")
        where = self._findings.where(next(accesses, block.instructions[-1]))
        what = (
            f"divergent barrier: threads of the block wait here, but this thread is at {where}, from which it does not "
            "reach it"
        )
        self._findings.put("divergence", barrier, group, position, what)

    @without_failing
    def access(
        self, group: Group, kind: str, address: Any, offset: int, size: int, site: Instruction, values: tuple[Any, ...]
    ) -> None:
        """Check an access, separately for each memory space if its lanes differ, then record the order it creates."""
        self._check(address, MemoryAccess(group, kind, address, offset, size, site, values))
        form = form_of(site)
        if form.strong and self._racing:
            order, now = self._races.order(group.chunk), self._races.tick(site)
            if kind != "ld":
                order.release(group, now, form.scope if form.releases else "")
            if kind in ("ld", "atom"):
                order.acquire(group, now)

    @without_failing
    def bulk(self, group: Group, kind: str, units: Mixed, size: int, barriers: Any, site: Instruction) -> None:
        """Check the reads or writes of the asynchronous proxy."""
        self._memory_checks.bulk(group, kind, units, size, barriers, site)

    @without_failing
    def matrix(
        self, group: Group, kind: str, pieces: Sequence[MatrixPiece], rows: MatrixRows | None, site: Instruction
    ) -> None:
        """Check the parts of matrices that lanes read or write."""
        for address, size, number, first, values in pieces:
            self._check(address, MemoryAccess(group, kind, address, 0, size, site, values, register=(number, first)))

    def _check(self, address: Any, access: MemoryAccess) -> None:
        """Check an access, separately for each memory space if its lanes differ."""
        if isinstance(address, Address):
            self._memory_checks.check(access)
        else:
            assert isinstance(address, Mixed)
            for positions, part in address.parts:
                self._memory_checks.check(access.part(part, positions))

    @without_failing
    def object_access(
        self, group: Group, kind: str, positions: Any, address: Address, size: int, site: Instruction, values: Any
    ) -> None:
        """Check the reads of a fetch, or the accesses to a surface."""
        self._memory_checks.check(MemoryAccess(group, kind, address, 0, size, site, values, positions))

    @without_failing
    def copies(self, group: Group, site: Instruction, event: str, allowed: int) -> None:
        """Record the ends of groups of asynchronous copies, and the waits for them."""
        if self._racing:
            records = records_of(group.chunk)
            row = form_of(site).row
            if row.access == "bulk":
                copies = records.bulk_of(group.chunk).reads(row.name)
            else:
                copies = records.copies_of(group.chunk)
            if event != "wait":
                copies.commit(group)
            if event != "commit":
                copies.wait(group, allowed, self._races.tick(site))
