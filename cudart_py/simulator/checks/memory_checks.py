"""Checks of memory accesses: uninitialised reads, races, and writes beyond a block's shared variables."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..ptx.compiling.analysis.guessed_loads import GuessedLoads
from ..ptx.compiling.forms import is_relaxed
from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.syntax.instructions import Vector
from ..state.memory.records.shadow import BLOCK_SCOPE, STRONG, THREAD, History, ShadowMemory
from .accesses import AccessRules, Footprint, MemoryAccess, strength_of
from .chunk_records import records_of
from .races.bulk import by_words
from .races.races import Race, Races
from .shadow_table import ShadowTable
from .uninitialised.stored_structures import paddings_of

if TYPE_CHECKING:
    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.running.memory.addresses import Mixed
    from ..ptx.running.scheduler import Chunk
    from ..ptx.syntax.instructions import Instruction
    from .launch_findings import LaunchFindings

Array = NDArray[Any]
ndarray = np.ndarray
_VERBS = {"read": "read", "write": "wrote"}
_UNWRITTEN = "where nothing has been written"
_CACHED = (
    "fetches from textures and loads from surfaces are defined only for memory that no thread has written in the same "
    "launch: write to other memory, and read it in the next launch"
)
_BLOCK_SCOPED = (
    "; one of the two has block scope, so that it is atomic for the threads of its own block alone (use device scope: "
    "atomicAdd for atomicAdd_block, thread_scope_device for thread_scope_block)"
)


class MemoryChecks:
    """The checks of the memory accesses of one launch.

    `racing` says whether to look for races. `concurrent` says whether work in other streams may overlap the launch. If
    so, loads of data that the launch itself does not write (`ld.global.nc`, constants) are checked too.
    """

    def __init__(
        self,
        state: LaunchState,
        races: Races,
        findings: LaunchFindings,
        *,
        racing: bool,
        concurrent: bool,
    ) -> None:
        self._launch = state.launch
        self._memory = state.memory
        self._shadows = ShadowTable(state.memory)
        self._guessed_loads = GuessedLoads(state.program)
        self._local_shift = state.program.local_shift
        # The rules of instructions, keyed by the kind of access and the identity of the instruction.
        self._rules: dict[tuple[str, int], AccessRules] = {}
        self._races = races
        self._findings = findings
        self._racing = racing
        self._concurrent = concurrent
        # The blocks of a cluster may wait for one another at barriers in memory.
        self._clustered = prod(state.launch.cluster) > 1
        self._spare_history: History | None = None
        # The shadow memory of the allocations that the launch writes, keyed by start address.
        self._written: dict[int, ShadowMemory] = {}

    def ended(self, chunk: Chunk) -> None:
        """Keep the history of an ended chunk's shared memory for the next chunk."""
        self._spare_history = records_of(chunk).shared or self._spare_history

    def _new_history(self, size: int) -> History:
        """Return an empty history for shared memory.

        It is that of an ended chunk if possible: allocating the records anew takes longer than clearing them, because
        of page faults.
        """
        spare, self._spare_history = self._spare_history, None
        if spare is None or spare.size != size or spare.coarse is not None:
            return History(size)
        spare.clear()
        return spare

    def finish(self) -> None:
        """Find out which allocations have now been written completely, and remember who wrote the others."""
        for shadow in self._written.values():
            shadow.note_writer(self._launch.description, paddings_of(self._launch.entry))
            shadow.look_through()

    def check(self, access: MemoryAccess) -> None:
        """Check an access whose lanes are all in one space, and record it."""
        space = access.address.space.name
        if space == "shared" and access.kind != "ld":
            self._beyond_variables(access)
        if access.kind == "mbarrier":
            # An operation elsewhere is a fault, so there is no barrier to record.
            if space == "shared" and not access.outside:
                self._memory_barrier(access)
        elif space == "global":
            self._global(access)
        elif space in ("shared", "local") and access.outside:
            return
        elif space == "shared":
            self._shared(access)
            self._pass_marks(access)
        elif space == "local":
            self._local(access)
            self._pass_marks(access)

    def _rules_of(self, access: MemoryAccess) -> AccessRules:
        """Return the rules of an access, which are the same whenever its instruction makes one of this kind."""
        key = access.kind, id(access.site)
        rules = self._rules.get(key)
        if rules is None:
            form, loads = form_of(access.site), access.kind == "ld"
            rules = self._rules[key] = AccessRules(
                strength=strength_of(form, access.kind),
                read_only="nc" in form.words or form.space == "const",
                cached=form.accesses_object,
                exempt=loads and self._guessed_loads.contain(access.group.code, access.site),
                lasts=form.row.name == "wgmma",
            )
        return rules

    def bulk(self, group: Group, kind: str, units: Mixed, size: int, barriers: Array | None, site: Instruction) -> None:
        """Check the reads or writes of the asynchronous proxy, and record the releases at barriers that count bytes."""
        for positions, part in units.parts:
            access = MemoryAccess(group, kind, part, 0, size, site, (), positions)
            self.check(access)
            if self._racing and barriers is not None:
                now = self._races.tick(site)
                records_of(group.chunk).bulk_of(group.chunk).arrive(Footprint(access, 0, 2), barriers, now)
                order = self._races.order(group.chunk)
                order.release(group, now, "gpu" if self._clustered else "cta")
                if not self._clustered:
                    arrivals = np.zeros(len(barriers), np.int64)
                    order.arrive(group.chunk, group.lane_numbers[positions], barriers, now, arrivals)

    def _shared(self, access: MemoryAccess) -> None:
        chunk, form = access.group.chunk, form_of(access.site)
        records = records_of(chunk)
        history = records.shared = records.shared or self._new_history(len(chunk.shared.bytes))
        if not history.prepare(access.size, reads=self._racing):
            self._coarsely(Footprint(access, 0, history.coarse_shift), history)
            return
        bulk = form.row.access == "bulk"
        watched = self._racing and (bulk or records.bulk is not None)
        if watched:
            self._meets_bulk_copies(Footprint(access, 0, 2), history)
        self._pieces(Footprint(access, 0, history.shift), history, self._rules_of(access), track=True)
        if watched:
            self._note_bulk_copies(Footprint(access, 0, 2))
        if self._racing and not bulk and (records.copies is not None or form.row.access == "cp"):
            self._asynchronous(Footprint(access, 0, 2))

    def _beyond_variables(self, access: MemoryAccess) -> None:
        """Report a write beyond a block's shared variables, to bytes that the hardware nevertheless lets it access."""
        if access.outside:
            return
        lanes = np.flatnonzero(_beyond(access))
        if len(lanes):
            footprint = Footprint(access, 0, 0)
            piece = int(lanes[0]) * footprint.each
            how = f"{_end_of_variables(access)}, which a GPU does not notice"
            what = f"out of bounds: it {self._findings.access(footprint, piece)}, {how}"
            self._findings.put("bounds", access.site, access.group, footprint.position(piece), what)

    @staticmethod
    def _pass_marks(access: MemoryAccess) -> None:
        """Propagate the marks of uninitialised values through an access to shared or local memory."""
        marks = records_of(access.group.chunk).marks
        if marks is not None:
            marks.access(access)

    def _memory_barrier(self, access: MemoryAccess) -> None:
        """Record an operation on a barrier in memory: an arrival releases, a wait acquires."""
        group, site = access.group, access.site
        if self._racing:
            records = records_of(group.chunk)
            copies = records.copies
            if copies is not None and form_of(site).row.access == "cp":
                # The thread arrives at the barrier when its copies are complete.
                copies.commit(group)
                copies.wait(group, 0, self._races.tick(site))
            order, now = self._races.order(group.chunk), self._races.tick(site)
            barriers = np.broadcast_to(access.address.places + access.offset, group.n)
            if form_of(site).row.spins:
                if self._clustered:
                    order.acquire(group, now)
                else:
                    order.wait(group.lane_numbers, barriers, now)
                if records.bulk is not None:
                    records.bulk.wait(group, barriers, now)
            else:
                relaxed = is_relaxed(form_of(site))
                order.release(group, now, "" if relaxed else "gpu" if self._clustered else "cta")
                if not self._clustered:
                    arrivals = _arrivals(access)
                    order.arrive(group.chunk, group.lane_numbers, barriers, now, arrivals, releases=not relaxed)

    def _global(self, access: MemoryAccess) -> None:
        kind, site = access.kind, access.site
        shadow = self._shadows.find(site, access.low, access.high)
        if shadow is None:
            self._scattered(access)
            return
        rules = self._rules_of(access)
        # Memory of textures and surfaces is not checked for uninitialised values.
        track = not shadow.initialised and not rules.cached
        quiet = not self._racing or (rules.read_only and not self._concurrent)
        if kind == "ld" and shadow.initialised and quiet:
            return
        history, origin = shadow.history, shadow.first - self._memory.base
        if kind != "ld" and not shadow.initialised and shadow.first not in self._written:
            self._written[shadow.first] = shadow
            # Machine code's records would not have the writes of this launch.
            shadow.native.clear()
        if self._concurrent:
            self._races.touches(history, access.low - shadow.first, access.high - shadow.first)
        if history.prepare(access.size, reads=self._racing):
            self._pieces(Footprint(access, origin, history.shift), history, rules, track=track)
        elif track or (kind != "ld" and not shadow.initialised):
            self._coarsely(Footprint(access, origin, history.coarse_shift), history)

    def _scattered(self, access: MemoryAccess) -> None:
        """Check an access whose lanes touch several allocations, one allocation after another."""
        address = access.address
        if address.places.__class__ is not ndarray:
            return  # All lanes have the same address, outside all allocations, which the machine reports as a fault.
        owners = self._shadows.owners(address.places + (self._memory.base + access.offset), access.size)
        for number in () if owners is None else np.unique(owners):
            some = np.flatnonzero(owners == number)
            self._global(access.part(address.select(some), some))

    def _local(self, access: MemoryAccess) -> None:
        chunk = access.group.chunk
        shift = self._local_shift
        written = records_of(chunk).local_written_of(chunk, shift)
        footprint = Footprint(access, 0, shift)
        if access.kind == "ld":
            self._read(footprint, ~written[footprint.index], "where this thread hasn't written")
        else:
            written[footprint.index] = True

    def _coarsely(self, footprint: Footprint, history: History) -> None:
        """Check an access for uninitialised bytes only, because full records would take too much memory."""
        written = history.coarse
        assert written is not None
        if footprint.access.kind == "ld":
            self._read(footprint, ~written[footprint.index], _UNWRITTEN)
        else:
            written[footprint.index] = True

    def _pieces(self, footprint: Footprint, history: History, rules: AccessRules, *, track: bool) -> None:
        """Check the footprint of an access for uninitialised bytes and for races, and record it."""
        races, race = self._races, None
        now = races.tick(footprint.access.site)
        if footprint.access.kind == "ld":
            before = history.writes[footprint.distinct]
            if track and not before.all():
                self._read(footprint, footprint.for_lanes(before == 0), _UNWRITTEN)
            if self._racing:
                race = races.load(footprint, history, rules, before, now)
        elif self._racing:
            race = races.store(footprint, history, rules, now)
        else:
            races.mark(footprint, history, now)
        if race is not None:
            self._race(race, footprint)

    def _asynchronous(self, words: Footprint) -> None:
        """Check that `cp.async` copies to the words of an access are complete, and record the copies that it issues."""
        site, chunk = words.access.site, words.group.chunk
        copies = records_of(chunk).copies_of(chunk)
        incomplete = copies.missing(words, partial(self._races.ordered, chunk))
        if incomplete is not None:
            word, owner, how = incomplete
            thread = self._launch.thread(owner)
            what = f"race: it {self._findings.access(words, word)}, to which cp.async copies for {thread}, {how}"
            self._findings.put("race", site, words.group, words.position(word), what)
        if form_of(site).row.access == "cp":
            copies.issue(words)
        elif words.access.kind != "ld":
            copies.overwrite(words)

    def _meets_bulk_copies(self, words: Footprint, history: History) -> None:
        """Check that an access overlaps no bulk copy in flight, and that a bulk copy sees earlier stores."""
        site, group, findings = words.access.site, words.group, self._findings
        copies = records_of(group.chunk).bulk_of(group.chunk)
        now = self._races.tick(site)
        waiting = copies.incomplete(words, partial(self._races.ordered, group.chunk), now)
        if waiting is not None:
            word, barrier = waiting
            copier = self._races.past.name(int(by_words(history)[words.index][word]), "fills by cp.async.bulk")
            where = self._launch.shared_place(barrier % group.chunk.shared_stride)
            how = f"no wait at the copy's barrier at {where} comes before"
            what = f"race: it {findings.access(words, word)}, which {copier}, and {how}"
            findings.put("race", site, group, words.position(word), what)
        if words.access.kind != "ld":
            for reader, reads in copies.all_reads():
                unfinished = reads.missing(words, partial(self._races.ordered, group.chunk))
                if unfinished is not None:
                    word, owner, how = unfinished
                    still = f"from which {reader} reads for {self._launch.thread(owner)}, {how}"
                    what = f"race: it {findings.access(words, word)}, {still}"
                    findings.put("race", site, group, words.position(word), what)
        elif form_of(site).row.access == "bulk":
            order = self._races.order(group.chunk)
            unfenced = copies.unfenced(words, history, order, partial(self._races.ordered, group.chunk))
            if unfenced is not None:
                word, record = unfenced
                stored = f"which {self._races.past.name(record, 'wrote')}"
                what = f"race: it {findings.access(words, word)}, {stored}, with no fence.proxy.async in between"
                findings.put("race", site, group, words.position(word), what)

    def _note_bulk_copies(self, words: Footprint) -> None:
        """Update the records of the bulk copies of the chunk with an access."""
        form = form_of(words.access.site)
        copies = records_of(words.group.chunk).bulk_of(words.group.chunk)
        if words.access.kind != "ld":
            copies.overwrite(words)
        elif form.row.access == "bulk" and ("bulk_group" in form.words or form.row.name == "wgmma"):
            copies.reads(form.row.name).issue(words)

    def _read(self, footprint: Footprint, missing: Array, what: str) -> None:
        """Mark the values of a load from unwritten memory; a partly written element counts as written."""
        access = footprint.access
        if form_of(access.site).row.name == "wgmma":
            self._read_matrix(footprint, np.asarray(missing.reshape(-1, footprint.each).all(axis=1)), what)
            return
        vector = form_of(access.site).vector if access.register is None else 1
        # The records do not distinguish elements that are smaller than a piece.
        count = vector if footprint.each >= vector else 1
        elements = np.asarray(missing.reshape(footprint.lanes, count, -1).all(axis=2))
        whole = np.asarray(elements.all(axis=1))
        self._mark(footprint, whole, access.part_of_register, what)
        size = access.size // count
        for number in range(count) if count > 1 else ():
            part = number, (1 << size) - 1
            self._mark(footprint, elements[:, number] & ~whole, part, what, distance=number * size)

    def _mark(
        self, footprint: Footprint, lanes: Array, part: tuple[int, int] | None, what: str, distance: int = 0
    ) -> None:
        """Mark the values that some lanes of a load receive, in a part of one register or in all registers.

        `distance` is the offset of the first unwritten byte from the first byte that the lane reads.
        """
        places = np.flatnonzero(lanes)
        if not len(places):
            return
        group, site, findings = footprint.group, footprint.access.site, self._findings
        positions = np.array([footprint.position(int(place) * footprint.each) for place in places])
        first = int(places[0]) * footprint.each
        if footprint.access.address.space.name == "shared" and _beyond(footprint.access)[places[0]]:
            what = _end_of_variables(footprint.access)
        records_of(group.chunk).marks_of(group.chunk).read(
            site,
            group.lane_numbers[positions],
            lambda: (
                f"it was read at {findings.where(site)} from {findings.place(footprint, first, distance)}, {what}"
                f"{findings.unordered_writer(footprint, first, distance)}"
            ),
            part,
        )

    def _read_matrix(self, footprint: Footprint, undefined: Array, what: str) -> None:
        """Mark the product of a matrix in shared memory if no element of the matrix has been written.

        If only a part of the matrix has been written, a kernel may use only that part of the product. `undefined` says,
        for each unit of 16 bytes, whether it is unwritten.
        """
        group, site, findings = footprint.group, footprint.access.site, self._findings
        destination, readers = site.operands[0], footprint.access.positions
        assert isinstance(destination, Vector)
        assert readers is not None
        # The first lane of each warp reads for the whole warp.
        for reader in np.unique(readers):
            units = np.flatnonzero(readers == reader)
            if not undefined[units].all():
                continue
            first = int(units[0]) * footprint.each
            origin = f"it was read at {findings.where(site)} from {findings.place(footprint, first)}, {what}"
            for number in range(len(destination.items)):
                records_of(group.chunk).marks_of(group.chunk).read(
                    site, group.lane_numbers[reader : reader + 32], partial(str, origin), (number, 0xF)
                )

    def _race(self, race: Race, footprint: Footprint) -> None:
        before, piece, record = race
        site = footprint.access.site
        if self._findings.known("race", site):
            return
        strong = " by an atomic or volatile access" if record & STRONG else ""
        span = self._races.span_of(record)
        name = self._races.past.name if span is None else span.name
        mine = self._rules_of(footprint.access).strength
        is_block_scoped = bool(mine & record & STRONG and (mine | record) & BLOCK_SCOPE)
        how = f"{name(record, _VERBS[before])}{strong}{_BLOCK_SCOPED if is_block_scoped else ''}"
        if span is not None:
            why = span.remedy
        elif self._rules_of(footprint.access).cached and footprint.access.kind == "ld":
            why = _CACHED
        else:
            why = "nothing orders the two accesses"
            if not is_block_scoped:
                on_one_line = how.endswith(f" at {self._findings.where(site)}{strong}")
                why += self._findings.remedy(footprint, piece, record & THREAD, on_one_line=on_one_line)
        what = f"race: it {self._findings.access(footprint, piece)}, which {how}, and {why}"
        self._findings.put("race", site, footprint.group, footprint.position(piece), what)


def _beyond(access: MemoryAccess) -> Array:
    """Return a mask of the lanes of an access to shared memory that touch bytes beyond the block's variables."""
    lanes = access.group.n if access.positions is None else len(access.positions)
    end = access.address.space.variables_end
    if end is None or access.high <= end:
        return np.zeros(lanes, np.bool_)
    seen = (access.address.places + access.offset) % access.group.chunk.shared_stride
    return np.broadcast_to(seen + access.size > end, lanes)


def _end_of_variables(access: MemoryAccess) -> str:
    """Return a phrase that says where the variables of a block end in its shared memory."""
    space = access.address.space
    return f"beyond the {(space.variables_end or 0) - space.first} bytes that the block has"


def _arrivals(access: MemoryAccess) -> Array:
    """Return an upper bound on the arrivals of each lane at a barrier in memory."""
    form = form_of(access.site)
    counted = form.words[0].startswith("arrive") and "expect_tx" not in form.words and access.values
    return np.broadcast_to(access.values[0] if counted else 1, access.group.n)
