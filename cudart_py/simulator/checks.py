"""Check what a launch does for mistakes that hardware hides: an observer of the PTX machine.

Races in shared and global memory, reads of what nobody wrote, barriers that threads miss, and member masks that lie.
A finding changes nothing about the launch; each place in the code is reported once a launch for each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .access_kinds import AccessKinds
from .divergence import Divergence, outside_mask
from .findings import put_finding
from .ptx.addresses import Address, Mixed
from .ptx.instructions import Instruction
from .ptx.observer import Observer
from .races import Race, Races
from .shadow import MOST_THREADS, STRONG, THREAD, Shadow
from .touched_words import TouchedWords
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
        self._races = Races()
        self._found: set[tuple[str, int]] = set()
        self._kinds = AccessKinds()
        self._shadows: dict[int, tuple[int, int, Shadow]] = {}
        self._touched: dict[int, Shadow] = {}
        self._generation = -1

    def start(self, launched: Launched) -> None:
        """Take the launch."""
        self._launched = launched
        self._memory = launched.memory
        self._racing = launched.blocks * launched.threads < MOST_THREADS

    def finish(self, launched: Launched) -> None:
        """Find out what has been written completely by now."""
        for shadow in self._touched.values():
            shadow.look_through()

    # --- what the machine tells

    def block(self, group: Group, block: Block) -> None:
        """Check member masks, and lanes that go past a barrier where others of their block wait."""
        notes = group.chunk.notes
        if block.synchronous:
            position = outside_mask(group, block)
            site = block.instructions[0] if block.instructions else block.terminator.instruction
            if site is not None:
                if position >= 0:
                    self._report(
                        "mask", site, group, position, "a thread that its member mask doesn't name executes it"
                    )
                if self._racing:
                    self._order(group).warp_together(group, self._races.tick(site))
        divergence: Divergence | None = notes and notes.get("divergence")
        if divergence is not None and divergence.some:
            past = divergence.passing(group, block)
            if past is not None:
                barrier, position = past
                what = "divergent barrier: threads of the block wait here, and this one has gone past it"
                self._report("divergence", barrier, group, position, what)

    def executed(self, group: Group, block: Block) -> None:
        """Pass on the marks of what was never written."""
        notes = group.chunk.notes
        marks: Marks | None = notes and notes.get("marks")
        if marks is None:
            return
        reached = marks.executed(group, block)
        if reached is not None:
            sink, site, position = reached
            what = f"uninitialised value reaches {sink}: {marks.origin}"
            self._report("uninitialised", site, group, position, what)

    def unwritten(self, group: Group, slot: int) -> None:
        """Mark a register that no lane has written."""
        self._marks(group.chunk).unwritten(group, slot)

    def deserted(self, group: Group, block: Block, position: int) -> None:
        """Report lanes whose partners never come."""
        site = block.instructions[0] if block.instructions else block.terminator.instruction
        if site is not None:
            self._report("mask", site, group, position, "its member mask names threads that never come to it")

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
                    where = self._where(other[0])
                    what = f"divergent barrier: other threads of the block wait at the one at {where}"
                    self._report("divergence", site, group, other[1], what)
            elif event == "release":
                divergence.leave(group)
        if not self._racing:
            return
        order = self._order(group)
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
        if isinstance(address, Address):
            self._access(group, kind, address, offset, size, site, values, None)
        else:
            assert isinstance(address, Mixed)
            for positions, part in address.parts:
                chosen = tuple(v[positions] if v.__class__ is ndarray else v for v in values)
                self._access(group, kind, part, offset, size, site, chosen, positions)
        strong, releases, scope = self._kinds.strength(site, kind)
        if strong and self._racing:
            order, now = self._order(group), self._races.tick(site)
            if kind != "ld":
                order.release(group, now, scope if releases else "")
            if kind in ("ld", "atom"):
                order.acquire(group, now)

    # --- accesses

    def _access(
        self,
        group: Group,
        kind: str,
        address: Address,
        offset: int,
        size: int,
        site: Instruction,
        values: tuple[Any, ...],
        positions: Array | None,
    ) -> None:
        space = address.space.name
        if kind == "mbarrier":
            self._memory_barrier(group, site)
        elif space == "global":
            self._global(group, kind, address, offset, size, site, values, positions)
        elif space == "shared":
            if address.low + offset < 0 or address.high + offset + size > (address.space.size or 0):
                return  # The machine is about to report it.
            notes = self._notes(group.chunk)
            if "writes" not in notes:
                count = len(group.chunk.shared.bytes) // 4
                notes["writes"], notes["reads"] = np.zeros(count, np.int64), np.zeros(count, np.int64)
            words = TouchedWords(group, address, offset, size, 0, positions)
            self._words(kind, words, notes["writes"], notes["reads"], True, address, offset, size, site, values)
        elif space == "local":
            self._local(group, kind, address, offset, size, site, positions)

    def _memory_barrier(self, group: Group, site: Instruction) -> None:
        """Note an operation on a barrier in memory: what arrives publishes, what waits sees."""
        if self._racing:
            order, now = self._order(group), self._races.tick(site)
            if "wait" in site.opcode:
                order.acquire(group, now)
            else:
                order.release(group, now, "cta")

    def _global(
        self,
        group: Group,
        kind: str,
        address: Address,
        offset: int,
        size: int,
        site: Instruction,
        values: tuple[Any, ...],
        positions: Array | None,
    ) -> None:
        if site.opcode.startswith("ld.const"):
            return
        low, high = address.low + offset, address.high + offset + size
        known = self._shadows.get(id(site))
        if known is None or low < known[0] or high > known[1] or self._generation != self._memory.generation:
            found = self._find_shadow(low, high)
            if found is None:
                self._scattered(group, kind, address, offset, size, site, values, positions)
                return
            known = self._shadows[id(site)] = found
        shadow = known[2]
        if kind == "ld" and shadow.initialised and (not self._racing or ".nc" in site.opcode):
            return
        origin = shadow.first - self._memory.base
        words = TouchedWords(group, address, offset, size, origin, positions)
        if kind != "ld" and not shadow.initialised:
            self._touched[shadow.first] = shadow
        track = not shadow.initialised
        self._words(kind, words, shadow.writes, shadow.reads, track, address, offset, size, site, values)

    def _find_shadow(self, low: int, high: int) -> tuple[int, int, Shadow] | None:
        """Give the allocation that holds a range, with its records."""
        if self._generation != self._memory.generation:
            self._generation = self._memory.generation
            self._shadows.clear()
        starts, ends = self._memory.extents()
        index = int(np.searchsorted(starts, low, "right")) - 1
        if index < 0 or high > ends[index]:
            return None
        start = int(starts[index])
        return start, int(ends[index]), self._memory.shadow(start)

    def _scattered(
        self,
        group: Group,
        kind: str,
        address: Address,
        offset: int,
        size: int,
        site: Instruction,
        values: tuple[Any, ...],
        positions: Array | None,
    ) -> None:
        """Check an access whose lanes go to several allocations, one after the other."""
        if address.places.__class__ is not ndarray:
            return  # The machine is about to report it.
        seen = address.places + (self._memory.base + offset)
        starts, ends = self._memory.extents()
        owner = np.searchsorted(starts, seen, "right") - 1
        if not len(starts) or ((owner < 0) | (seen + size > ends[owner])).any():
            return
        for number in np.unique(owner):
            some = np.flatnonzero(owner == number)
            part = address.select(some)
            chosen = tuple(v[some] if v.__class__ is ndarray else v for v in values)
            inner = some if positions is None else positions[some]
            self._global(group, kind, part, offset, size, site, chosen, inner)

    def _local(
        self,
        group: Group,
        kind: str,
        address: Address,
        offset: int,
        size: int,
        site: Instruction,
        positions: Array | None,
    ) -> None:
        if address.low + offset < 0 or address.high + offset + size > (address.space.size or 0):
            return
        chunk = group.chunk
        notes = self._notes(chunk)
        if "local" not in notes:
            notes["local"] = np.zeros(len(chunk.local.bytes) // 4, np.bool_)
        words = TouchedWords(group, address, offset, size, 0, positions)
        if kind == "ld":
            self._read(words, ~notes["local"][words.index], site, "local memory that this thread hasn't written")
        else:
            notes["local"][words.index] = True

    def _words(
        self,
        kind: str,
        words: TouchedWords,
        writes: Array,
        reads: Array,
        track: bool,
        address: Address,
        offset: int,
        size: int,
        site: Instruction,
        values: tuple[Any, ...],
    ) -> None:
        """Check the words of an access for being written and for races."""
        group = words.group
        races = self._races
        space = address.space.name
        if kind == "ld" and track:
            before = writes[words.index]
            if not before.all():
                self._read(words, before == 0, site, f"{space} memory that nothing has been written to")
        now = races.tick(site)
        if not self._racing or size < 4:
            if kind != "ld":
                races.mark(words, writes, now)
            return
        strong = self._kinds.strength(site, kind)[0]
        race: Race | None
        if kind == "ld":
            race = races.load(
                words, writes, reads, now, strong=strong, exempt=self._kinds.first_guess(group.code, site)
            )
        else:
            race = races.store(words, writes, reads, now, strong=strong, address=address, offset=offset, values=values)
        if race is not None:
            self._race(race, words, kind, address, offset, size, site)

    def _read(self, words: TouchedWords, missing: Array, site: Instruction, origin: str) -> None:
        """Mark what a load gets where nobody wrote; part of an element is enough to count as written."""
        lanes = missing.reshape(-1, words.each).all(axis=1)
        places = np.flatnonzero(lanes)
        if len(places):
            group = words.group
            positions = np.array([words.position(int(place) * words.each) for place in places])
            marks = self._marks(group.chunk)
            marks.origin = f"it was read at {self._where(site)} from {origin}"
            marks.read(site, group.lane_numbers[positions])

    # --- reports

    def _race(
        self, race: Race, words: TouchedWords, kind: str, address: Address, offset: int, size: int, site: Instruction
    ) -> None:
        before, word, record = race
        group, launched = words.group, self._launched
        if ("race", id(site)) in self._found:
            return
        position = words.position(word)
        places = address.places
        lane = word // words.each
        place = int(places[lane] if places.__class__ is ndarray else places) + offset
        if address.space.size is None:
            seen = place + self._memory.base
            where = f" ({self._memory.describe(seen)})"
        else:
            seen, where = place % max(group.chunk.shared_stride, 1), ""
        other = self._races.site_of(record)
        which = launched.thread(record & THREAD)
        strong = " by an atomic or volatile access" if record & STRONG else ""
        at = f" at {self._where(other)}" if other is not None else ""
        verb = {"ld": "reads", "st": "writes"}.get(kind, "updates")
        what = (
            f"race: it {verb} {size} bytes of {address.space.name} memory at {seen:#x}{where}, which {which} "
            f"{_VERBS[before]}{strong}{at}, and nothing puts one before the other"
        )
        self._report("race", site, group, position, what)

    def _report(self, kind: str, site: Instruction, group: Group, position: int, what: str) -> None:
        if (kind, id(site)) not in self._found:
            self._found.add((kind, id(site)))
            put_finding(self._launched.located(what, site, group, position))

    def _where(self, site: Instruction) -> str:
        return self._launched.launch.entry.module.source(site.file, site.line)

    # --- what is kept for a chunk

    def _notes(self, chunk: Chunk) -> dict[str, Any]:
        if chunk.notes is None:
            chunk.notes = {}
        notes: dict[str, Any] = chunk.notes
        return notes

    def _order(self, group: Group) -> Order:
        return self._races.order(group.chunk)

    def _marks(self, chunk: Chunk) -> Marks:
        marks: Marks = self._notes(chunk).setdefault("marks", Marks(chunk.lanes))
        return marks
