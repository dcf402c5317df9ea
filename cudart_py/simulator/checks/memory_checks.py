"""Checks of memory accesses: reads of what nothing has written, and races."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..ptx.compiling.forms import Form
from ..ptx.compiling.guessed_loads import GuessedLoads
from ..ptx.compiling.opcodes import form_of
from ..ptx.running.memory.units import UNIT
from ..ptx.syntax.instructions import Vector
from ..state.memory.shadow import STRONG, History, ShadowMemory
from .accesses import Footprint, MemoryAccess
from .chunk_records import records_of
from .races.bulk import by_words
from .races.concurrency import UNORDERED
from .races.races import Race, Races
from .shadow_table import ShadowTable

if TYPE_CHECKING:
    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.running.memory.addresses import Mixed
    from ..ptx.syntax.instructions import Instruction
    from .launch_findings import LaunchFindings

__all__ = ["MemoryChecks"]

Array = NDArray[Any]
ndarray = np.ndarray
_VERBS = {"read": "read", "write": "wrote"}


class MemoryChecks:
    """Check the memory accesses of one launch.

    `racing` tells whether races are looked for, `concurrent` whether work of other streams may meet the launch: then
    loads of what the launch itself doesn't write matter too.
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
        self._guessed_loads = GuessedLoads()
        self._races = races
        self._findings = findings
        self._racing = racing
        self._concurrent = concurrent
        # The blocks of a cluster wait for one another at barriers in memory.
        self._clustered = prod(state.launch.cluster) > 1
        # The shadow memory of the allocations that the launch writes, by their starts.
        self._written: dict[int, ShadowMemory] = {}

    def finish(self) -> None:
        """Find out which allocations have been written completely by now."""
        for shadow in self._written.values():
            shadow.look_through()

    def check(self, access: MemoryAccess) -> None:
        """Check an access whose lanes are all in one space, and record it."""
        space = access.address.space.name
        if access.kind == "mbarrier":
            self._memory_barrier(access)
        elif space == "global":
            self._global(access)
        elif space in ("shared", "local") and access.outside:
            return
        elif space == "shared":
            self._shared(access)
        elif space == "local":
            self._local(access)

    def bulk(self, group: Group, kind: str, units: Mixed, barriers: Array | None, site: Instruction) -> None:
        """Check what the asynchronous proxy reads or writes, and note what a barrier that counts the bytes releases."""
        for positions, part in units.parts:
            access = MemoryAccess(group, kind, part, 0, UNIT, site, (), positions)
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
        history = records.shared_of(chunk)
        history.divide(access.size)
        bulk = form.row.access == "bulk"
        watched = self._racing and (bulk or records.bulk is not None)
        if watched:
            self._meets_bulk_copies(Footprint(access, 0, 2), history)
        self._pieces(Footprint(access, 0, history.shift), history, track=True)
        if watched:
            self._note_bulk_copies(Footprint(access, 0, 2))
        if self._racing and not bulk and (records.copies is not None or form.row.access == "cp"):
            self._asynchronous(Footprint(access, 0, 2))

    def _memory_barrier(self, access: MemoryAccess) -> None:
        """Note an operation on a barrier in memory: an arrival releases, a wait acquires."""
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
                relaxed = _is_relaxed(form_of(site))
                order.release(group, now, "" if relaxed else "gpu" if self._clustered else "cta")
                if not self._clustered:
                    arrivals = _arrivals(access)
                    order.arrive(group.chunk, group.lane_numbers, barriers, now, arrivals, releases=not relaxed)

    def _global(self, access: MemoryAccess) -> None:
        kind, site = access.kind, access.site
        form = form_of(site)
        shadow = self._shadows.find(site, access.low, access.high)
        if shadow is None:
            self._scattered(access)
            return
        read_only = "nc" in form.words or form.space == "const"
        quiet = not self._racing or (read_only and not self._concurrent)
        if kind == "ld" and shadow.initialised and quiet:
            return
        history = shadow.history
        history.divide(access.size)
        footprint = Footprint(access, shadow.first - self._memory.base, history.shift)
        if kind != "ld" and not shadow.initialised:
            self._written[shadow.first] = shadow
        self._pieces(footprint, history, track=not shadow.initialised)

    def _scattered(self, access: MemoryAccess) -> None:
        """Check an access whose lanes go to several allocations, one allocation after the other."""
        address = access.address
        if address.places.__class__ is not ndarray:
            return  # All lanes have one address outside of all allocations, a fault that the machine reports.
        owners = self._shadows.owners(address.places + (self._memory.base + access.offset), access.size)
        for number in () if owners is None else np.unique(owners):
            some = np.flatnonzero(owners == number)
            self._global(access.part(address.select(some), some))

    def _local(self, access: MemoryAccess) -> None:
        chunk = access.group.chunk
        written = records_of(chunk).local_written_of(chunk)
        footprint = Footprint(access, 0, 2)
        if access.kind == "ld":
            self._read(footprint, ~written[footprint.index], "where this thread hasn't written")
        else:
            written[footprint.index] = True

    def _pieces(self, footprint: Footprint, history: History, *, track: bool) -> None:
        """Check the footprint of an access for uninitialised bytes and for races, and record it."""
        kind, site, races = footprint.access.kind, footprint.access.site, self._races
        if kind == "ld" and track:
            before = history.writes[footprint.index]
            if not before.all():
                self._read(footprint, before == 0, "where nothing has been written")
        now = races.tick(site)
        if not self._racing:
            if kind != "ld":
                races.mark(footprint, history, now)
            return
        strong = form_of(site).strong
        race: Race | None
        if kind == "ld":
            exempt = self._guessed_loads.contain(footprint.group.code, site)
            lasts = form_of(site).row.name == "wgmma"
            race = races.load(footprint, history, now, strong=strong, exempt=exempt, lasts=lasts)
        else:
            race = races.store(footprint, history, now, strong=strong)
        if race is not None:
            self._race(race, footprint)

    def _asynchronous(self, words: Footprint) -> None:
        """Check that copies of `cp.async` to the words of an access are complete, and note the copies that it makes."""
        site, chunk = words.access.site, words.group.chunk
        copies = records_of(chunk).copies_of(chunk)
        found = copies.missing(words, partial(self._races.ordered, chunk))
        if found is not None:
            word, owner, how = found
            thread = self._launch.thread(owner)
            what = f"race: it {self._findings.access(words, word)}, to which cp.async copies for {thread}, {how}"
            self._findings.put("race", site, words.group, words.position(word), what)
        if form_of(site).row.access == "cp":
            copies.issue(words)
        elif words.access.kind != "ld":
            copies.overwrite(words)

    def _meets_bulk_copies(self, words: Footprint, history: History) -> None:
        """Check that an access meets no bulk copy under way, and that a bulk copy sees what stores have written."""
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
                found = reads.missing(words, partial(self._races.ordered, group.chunk))
                if found is not None:
                    word, owner, how = found
                    still = f"from which {reader} reads for {self._launch.thread(owner)}, {how}"
                    what = f"race: it {findings.access(words, word)}, {still}"
                    findings.put("race", site, group, words.position(word), what)
        elif form_of(site).row.access == "bulk":
            order = self._races.order(group.chunk)
            unfenced = copies.unfenced(words, history, order, partial(self._races.ordered, group.chunk))
            if unfenced is not None:
                word, record = unfenced
                stored = f"which {self._races.past.name(record, 'wrote')}"
                what = f"race: it {findings.access(words, word)}, {stored}, and no fence.proxy.async lies between"
                findings.put("race", site, group, words.position(word), what)

    def _note_bulk_copies(self, words: Footprint) -> None:
        """Note what an access means to the bulk copies of its chunk."""
        form = form_of(words.access.site)
        copies = records_of(words.group.chunk).bulk_of(words.group.chunk)
        if words.access.kind != "ld":
            copies.overwrite(words)
        elif form.row.access == "bulk" and ("bulk_group" in form.words or form.row.name == "wgmma"):
            copies.reads(form.row.name).issue(words)

    def _read(self, footprint: Footprint, missing: Array, what: str) -> None:
        """Mark what a load gets where nothing was written; an element counts as written when a part of it is."""
        lanes = np.asarray(missing.reshape(-1, footprint.each).all(axis=1))
        places = np.flatnonzero(lanes)
        group, site = footprint.group, footprint.access.site
        if form_of(site).row.name == "wgmma":
            self._read_matrix(footprint, lanes, what)
        elif len(places):
            positions = np.array([footprint.position(int(place) * footprint.each) for place in places])
            marks = records_of(group.chunk).marks_of(group.chunk)
            findings, first = self._findings, int(places[0]) * footprint.each
            marks.read(
                site,
                group.lane_numbers[positions],
                lambda: f"it was read at {findings.where(site)} from {findings.place(footprint, first)}, {what}",
                footprint.access.part_of_register,
            )

    def _read_matrix(self, footprint: Footprint, undefined: Array, what: str) -> None:
        """Mark the products of matrices in which nothing was written: of others, a kernel may use the rows that were.

        `undefined` says of each unit of 16 bytes whether it is so.
        """
        group, site, findings = footprint.group, footprint.access.site, self._findings
        destination, readers = site.operands[0], footprint.access.positions
        assert isinstance(destination, Vector)
        assert readers is not None
        # For each warp its first lane reads.
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
        what = (
            f"race: it {self._findings.access(footprint, piece)}, which {name(record, _VERBS[before])}{strong}, "
            f"and {'nothing puts one before the other' if span is None else UNORDERED}"
        )
        self._findings.put("race", site, footprint.group, footprint.position(piece), what)


def _arrivals(access: MemoryAccess) -> Array:
    """Return how many arrivals at a barrier in memory each lane makes, at most."""
    form = form_of(access.site)
    counted = form.words[0].startswith("arrive") and "expect_tx" not in form.words and access.values
    return np.broadcast_to(access.values[0] if counted else 1, access.group.n)


def _is_relaxed(form: Form) -> bool:
    """Return whether an operation on a barrier in memory releases nothing by itself."""
    expects = form.words[0] in ("expect_tx", "complete_tx")
    return form.row.access == "mbarrier" and (expects or "relaxed" in form.words)
