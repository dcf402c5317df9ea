"""Check what a launch does for mistakes that hardware hides: an observer of the PTX machine.

Races in shared and global memory, reads of what nobody wrote, barriers that threads miss, and member masks that lie.
A finding changes nothing about the launch; each place in the code is reported once a launch for each kind.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import concurrency
from .access_kinds import AccessKinds
from .asynchronous import AsynchronousCopies
from .check_reports import Reports
from .divergence import Divergence, outside_mask
from .ptx.addresses import Address, Mixed
from .ptx.instructions import Instruction
from .ptx.observer import Observer
from .races import Race, Races
from .shadow import MOST_THREADS, STRONG, History, Shadow
from .shadows import Shadows
from .touched import Access, Touched
from .uninitialised import Marks

if TYPE_CHECKING:
    from .ordering import Order
    from .ptx.control_flow import Block
    from .ptx.groups import Group
    from .ptx.launch import Launched
    from .ptx.scheduler import Chunk

__all__ = ["Checks"]

Array = NDArray[Any]
ndarray = np.ndarray
_VERBS = {"read": "read", "write": "wrote"}


class Checks(Observer):
    """Check one launch."""

    def __init__(self) -> None:
        self._kinds = AccessKinds()
        self._touched: dict[int, Shadow] = {}

    def start(self, launched: Launched) -> None:
        """Take the launch."""
        self._launch = launched.launch
        self._memory = launched.memory
        self._shadows = Shadows(launched.memory)
        self._reports = Reports(launched)
        self._racing = launched.blocks * launched.threads < MOST_THREADS
        spans = concurrency.unordered()
        self._races = Races(spans, launched.launch)
        # Whether loads of what this launch doesn't write matter, because other streams' work may write it.
        self._concurrent = bool(spans) or concurrency.others_wait()

    def ended(self, chunk: Chunk) -> None:
        """Keep of a chunk's order only what later chunks may ask for."""
        self._races.ended(chunk)

    def finish(self, launched: Launched) -> None:
        """Find out what has been written completely by now, and let the work of other streams meet this launch."""
        for shadow in self._touched.values():
            shadow.look_through()
        if self._racing:
            past = self._races.past
            concurrency.keep(past.began, past.name_from_outside)

    # --- what the machine tells

    def block(self, group: Group, block: Block) -> None:
        """Check member masks, and lanes that go past a barrier where others of their block wait."""
        notes = group.chunk.notes
        if block.synchronous:
            position = outside_mask(group, block)
            site = block.instructions[0] if block.instructions else block.terminator.instruction
            if site is not None:
                if position >= 0:
                    self._reports.put(
                        "mask", site, group, position, "a thread that its member mask doesn't name executes it"
                    )
                if self._racing:
                    self._order(group).warp_together(group, self._races.tick(site))
        divergence: Divergence | None = notes.get("divergence") if notes else None
        if divergence is not None and divergence.some:
            past = divergence.passing(group, block)
            if past is not None:
                barrier, position = past
                what = "divergent barrier: threads of the block wait here, and this one has gone past it"
                self._reports.put("divergence", barrier, group, position, what)

    def executed(self, group: Group, block: Block) -> None:
        """Pass on the marks of what was never written."""
        notes = group.chunk.notes
        marks: Marks | None = notes.get("marks") if notes else None
        if marks is None:
            return
        reached = marks.executed(group, block)
        if reached is not None:
            sink, site, position = reached
            what = f"uninitialised value reaches {sink}: {marks.origin()}"
            self._reports.put("uninitialised", site, group, position, what)

    def unwritten(self, group: Group, slot: int) -> None:
        """Mark a register that no lane has written."""
        self._marks(group.chunk).unwritten(group, slot)

    def deserted(self, group: Group, block: Block, position: int) -> None:
        """Report lanes whose partners never come."""
        site = block.instructions[0] if block.instructions else block.terminator.instruction
        if site is not None:
            self._reports.put("mask", site, group, position, "its member mask names threads that never come to it")

    def shuffle(self, group: Group, site: Instruction, mode: str, lane: Any, control: Any) -> None:
        """Mark what is read from lanes that take no part, which is undefined."""
        absent = group.chunk.warps.absent(group, mode, lane, control)
        if absent is None or self._reports.known("mask", site):
            return
        positions, sources = absent
        marks, where = self._marks(group.chunk), self._reports.where(site)
        marks.origin = lambda: f"a shuffle at {where} read it from lane {sources[0]} of the warp, which takes no part"
        marks.read(site, group.lane_numbers[positions])

    def fence(self, group: Group, site: Instruction) -> None:
        """Note a fence."""
        if self._racing:
            scope = "cta" if "cta" in site.parts else "gpu"
            self._order(group).fence(group, self._races.tick(site), scope)

    def barrier(self, group: Group, site: Instruction, event: str) -> None:
        """Note who waits for whom."""
        whole = len(site.operands) == (3 if "red" in site.parts else 1) or "cluster" in site.parts
        now = self._races.tick(site)
        if whole:
            divergence = self._notes(group.chunk).setdefault("divergence", Divergence(group.chunk.blocks))
            if event == "arrive" and "arrive" not in site.parts:
                other = divergence.arrive(group, site)
                if other is not None:
                    where = f"at the one at {self._reports.where(other[0])}"
                    if other[0] is site:
                        where = "at the same one, called from elsewhere"
                    what = f"divergent barrier: other threads of the block wait {where}"
                    self._reports.put("divergence", site, group, other[1], what)
            elif event == "release":
                divergence.leave(group)
        if not self._racing:
            return
        order = self._order(group)
        if "cluster" in site.parts:
            # It orders all of the cluster's blocks.
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

    def access(
        self, group: Group, kind: str, address: Any, offset: int, size: int, site: Instruction, values: tuple[Any, ...]
    ) -> None:
        """Check an access, in parts where lanes differ in their space, then note what it puts in order."""
        access = Access(group, kind, address, offset, size, site, values)
        if isinstance(address, Address):
            self._access(access)
        else:
            assert isinstance(address, Mixed)
            for positions, part in address.parts:
                self._access(access.part(part, positions))
        strong, releases, scope = self._kinds.strength(site, kind)
        if strong and self._racing:
            order, now = self._order(group), self._races.tick(site)
            if kind != "ld":
                order.release(group, now, scope if releases else "")
            if kind in ("ld", "atom"):
                order.acquire(group, now)

    def copies(self, group: Group, site: Instruction, event: str, allowed: int) -> None:
        """Note where groups of `cp.async` end, and what is waited for."""
        if self._racing:
            copies = self._copies(group.chunk)
            if event != "wait":
                copies.commit(group)
            if event != "commit":
                copies.wait(group, allowed, self._races.tick(site))

    # --- accesses

    def _access(self, access: Access) -> None:
        group, site = access.group, access.site
        space = access.address.space.name
        if access.kind == "mbarrier":
            self._memory_barrier(group, site)
        elif space == "global":
            self._global(access)
        elif space in ("shared", "local") and access.outside:
            return
        elif space == "shared":
            notes = self._notes(group.chunk)
            history = notes.get("shared")
            if history is None:
                history = notes["shared"] = History(len(group.chunk.shared.bytes))
            history.divide(access.size)
            self._pieces(Touched(access, 0, history.shift), history, track=True)
            copies: AsynchronousCopies | None = notes.get("copies")
            if self._racing and (copies is not None or site.opcode.startswith("cp.async")):
                self._asynchronous(Touched(access, 0, 2))
        elif space == "local":
            self._local(access)

    def _memory_barrier(self, group: Group, site: Instruction) -> None:
        """Note an operation on a barrier in memory: what arrives publishes, what waits sees."""
        if self._racing:
            copies = self._notes(group.chunk).get("copies")
            if copies is not None and site.opcode.startswith("cp.async"):
                # The barrier is arrived at when the thread's copies are there.
                copies.commit(group)
                copies.wait(group, 0, self._races.tick(site))
            order, now = self._order(group), self._races.tick(site)
            if "wait" in site.opcode:
                order.acquire(group, now)
            else:
                order.release(group, now, "cta")

    def _global(self, access: Access) -> None:
        kind, site = access.kind, access.site
        if site.opcode.startswith("ld.const"):
            return
        shadow = self._shadows.find(site, access.low, access.high)
        if shadow is None:
            self._scattered(access)
            return
        quiet = not self._racing or (".nc" in site.opcode and not self._concurrent)
        if kind == "ld" and shadow.initialised and quiet:
            return
        history = shadow.history
        history.divide(access.size)
        touched = Touched(access, shadow.first - self._memory.base, history.shift)
        if kind != "ld" and not shadow.initialised:
            self._touched[shadow.first] = shadow
        self._pieces(touched, history, track=not shadow.initialised)

    def _scattered(self, access: Access) -> None:
        """Check an access whose lanes go to several allocations, one after the other."""
        address = access.address
        if address.places.__class__ is not ndarray:
            return  # The machine is about to report it.
        owners = self._shadows.owners(address.places + (self._memory.base + access.offset), access.size)
        for number in () if owners is None else np.unique(owners):
            some = np.flatnonzero(owners == number)
            self._global(access.part(address.select(some), some))

    def _local(self, access: Access) -> None:
        chunk = access.group.chunk
        notes = self._notes(chunk)
        if "local" not in notes:
            notes["local"] = np.zeros(len(chunk.local.bytes) // 4, np.bool_)
        touched = Touched(access, 0, 2)
        if access.kind == "ld":
            self._read(touched, ~notes["local"][touched.index], "where this thread hasn't written")
        else:
            notes["local"][touched.index] = True

    def _pieces(self, touched: Touched, history: History, *, track: bool) -> None:
        """Check the pieces of memory of an access for being written and for races."""
        kind, site, races = touched.access.kind, touched.access.site, self._races
        if kind == "ld" and track:
            before = history.writes[touched.index]
            if not before.all():
                self._read(touched, before == 0, "where nothing has been written")
        now = races.tick(site)
        if not self._racing:
            if kind != "ld":
                races.mark(touched, history, now)
            return
        strong = self._kinds.strength(site, kind)[0]
        race: Race | None
        if kind == "ld":
            exempt = self._kinds.guesses(touched.group.code, site)
            race = races.load(touched, history, now, strong=strong, exempt=exempt)
        else:
            race = races.store(touched, history, now, strong=strong)
        if race is not None:
            self._race(race, touched)

    def _asynchronous(self, words: Touched) -> None:
        """Check that copies of `cp.async` to the words of an access are there, and note those that it makes itself."""
        site, chunk = words.access.site, words.group.chunk
        copies = self._copies(chunk)
        found = copies.missing(words, partial(self._races.ordered, chunk))
        if found is not None:
            word, owner, how = found
            thread = self._launch.thread(owner)
            what = f"race: it {self._reports.access(words, word)}, to which cp.async copies for {thread}, {how}"
            self._reports.put("race", site, words.group, words.position(word), what)
        if site.opcode.startswith("cp.async"):
            copies.issue(words)
        elif words.access.kind != "ld":
            copies.overwrite(words)

    def _read(self, touched: Touched, missing: Array, what: str) -> None:
        """Mark what a load gets where nobody wrote; part of an element is enough to count as written."""
        lanes = missing.reshape(-1, touched.each).all(axis=1)
        places = np.flatnonzero(lanes)
        if len(places):
            group, site = touched.group, touched.access.site
            positions = np.array([touched.position(int(place) * touched.each) for place in places])
            marks = self._marks(group.chunk)
            reports, first = self._reports, int(places[0]) * touched.each
            marks.origin = lambda: f"it was read at {reports.where(site)} from {reports.place(touched, first)}, {what}"
            marks.read(site, group.lane_numbers[positions])

    # --- reports

    def _race(self, race: Race, touched: Touched) -> None:
        before, piece, record = race
        site = touched.access.site
        if self._reports.known("race", site):
            return
        strong = " by an atomic or volatile access" if record & STRONG else ""
        span = self._races.span_of(record)
        name = self._races.past.name if span is None else span.name
        what = (
            f"race: it {self._reports.access(touched, piece)}, which {name(record, _VERBS[before])}{strong}, "
            "and nothing puts one before the other"
        )
        self._reports.put("race", site, touched.group, touched.position(piece), what)

    # --- what is kept for a chunk

    def _notes(self, chunk: Chunk) -> dict[str, Any]:
        if chunk.notes is None:
            chunk.notes = {}
        notes: dict[str, Any] = chunk.notes
        return notes

    def _order(self, group: Group) -> Order:
        return self._races.order(group.chunk)

    def _copies(self, chunk: Chunk) -> AsynchronousCopies:
        notes = self._notes(chunk)
        if "copies" not in notes:
            notes["copies"] = AsynchronousCopies(chunk)
        copies: AsynchronousCopies = notes["copies"]
        return copies

    def _marks(self, chunk: Chunk) -> Marks:
        marks: Marks = self._notes(chunk).setdefault("marks", Marks(chunk.lanes))
        return marks
