"""Run a launch that checks watch speculatively in machine code, and undo it if there may be a finding.

Machine code examines each access only far enough to know that there is nothing to report. If there may be something,
the launch's changes to memory are undone and the NumPy engine runs it with the full checks, so both engines produce the
same reports. Loads are recorded only if the launch stores to the same memory. A launch that turns out to do so starts
again and records them.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..layout import BlockCheck, Clock, Context, CopyRow, Doubt, ExtentCheck, HostCall, Readers, SiteCheck
from ..library.checking.clocks import HASHES
from ..library.checking.records import GRANULE_BITS, TICK
from .fences import BlockFences, Fences
from .host_memory import Parts, aligned

if TYPE_CHECKING:
    from ...running.observer import AccessRecords, PieceRecords
    from ..sites import Sites
    from .launch import NativeLaunch

Array = NDArray[Any]

_GRANULE = 1 << GRANULE_BITS
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)
# A later time would soon overflow the upper half of a record.
_LAST = 0xF0000000
_LANES = 32

# The largest number of granules that are saved together, a power of two.
_MOST_TOGETHER = 64


class _SpareBuffers:
    """Spare buffers for saved granules of memory: allocating fresh memory costs as much as copying the granules."""

    # The largest number of bytes that are kept.
    _MOST = 1 << 30

    def __init__(self) -> None:
        # Keyed by the number of granules.
        self._buffers: dict[int, list[Array]] = {1 << power: [] for power in range(_MOST_TOGETHER.bit_length())}
        self._kept = 0

    def take(self, count: int) -> Array:
        """Return a buffer for a number of granules."""
        try:
            buffer = self._buffers[count].pop()
        except IndexError:  # testing the list first would not help: another thread may take the last buffer
            return np.empty(count * _GRANULE, np.uint8)
        self._kept -= buffer.nbytes
        return buffer

    def give_back(self, buffer: Array) -> None:
        """Keep a buffer for later launches, if there is room."""
        if self._kept + buffer.nbytes <= self._MOST:
            self._kept += buffer.nbytes
            self._buffers[len(buffer) // _GRANULE].append(buffer)


_spare = _SpareBuffers()


@dataclass(eq=False)
class SpeculationFailed(Exception):  # noqa: N818  # it is not an error: the launch runs again
    """A launch can't continue in machine code.

    `again` says that another attempt in machine code may succeed, because more loads are recorded now. `counts` says
    that other launches of the kernel will probably fail, too. `unwritten` says that another attempt may succeed with
    code that follows undefined values. `lacks_records` says that there is no memory for the records, or for copies of
    the memory that the launch changes.
    """

    again: bool = False
    counts: bool = True
    unwritten: bool = False
    lacks_records: bool = False


class Recorded:
    """The sites of a kernel that record their loads, learnt from its launches."""

    def __init__(self, sites: int) -> None:
        self.sites = np.zeros(sites, np.bool_)
        # The number of the kernel's launches that had to run on the NumPy engine.
        self.doubts = 0
        # For basic blocks past barriers, whether the NumPy engine certainly executes them first.
        self.firsts: dict[tuple[int, int], bool] = {}
        # Whether a launch has loaded unwritten memory.
        self.unwritten = False


class BlockRecords(Parts):
    """The checks' records of one block while it runs: of its shared and local memory, barriers, copies and fences.

    `local_bytes` is the size of the masks of the lanes that have written each byte of local memory, and
    `undefined_bytes` that of the marks of undefined bytes. The code that `sites` describes may need further records.
    """

    def __init__(self, sites: Sites, warps: int, shared_end: int, local_bytes: int, undefined_bytes: int) -> None:
        pieces = -(-shared_end // (1 << sites.shift))
        shared_words = -(-shared_end // 4) + _LANES
        sizes = {
            Context.BLOCK_CHECKS: 8 * BlockCheck.WORDS,
            Context.SHARED_WRITES: 8 * (pieces + _LANES),
            Context.SHARED_READS: 8 * (pieces + _LANES),
            Context.LOCAL_WRITTEN: local_bytes,
            Context.SHARED_UNDEFINED: undefined_bytes,
        }
        if sites.copies:
            sizes |= {Context.COPY_WORDS: 8 * shared_words, Context.COPY_ROWS: 8 * warps * CopyRow.WORDS * _LANES}
        cleared_clocks = Clock.WARPS + Clock.ENTRIES * warps
        if sites.clocks:
            sizes[Context.CLOCKS] = 8 * (cleared_clocks + Clock.ENTRIES * 2 * _LANES)
        if sites.bulk:
            sizes |= {Context.BULK_MARKS: shared_words, Context.BULK_WAITED: 4 * warps * _LANES}
        super().__init__(sizes)
        self.words = self.of(Context.BLOCK_CHECKS, np.uint64)
        # The bitmap of the barriers that lanes have gone past.
        self.passed = self.words[BlockCheck.PASSED : BlockCheck.COPY_TIME]
        # The time of the last barrier when a thread that has gone past the barrier of `WAITS` has been reported.
        self.reported_passing = -1
        # Machine code examines records 32 at a time, so the padding after the last piece must count as written.
        self._padding = self.of(Context.SHARED_WRITES, np.uint64)[pieces:]
        self._padding[:] = _NEVER
        # Each row names the read that it describes, so rows are never cleared.
        self._readers = np.zeros((Readers.ROWS if sites.clocks else 0, Readers.WORDS), np.uint64)
        self.fences: BlockFences | None = None
        self.addresses |= {
            Context.LOCAL_WRITTEN_BYTES: local_bytes, Context.CLOCKS_BYTES: 8 * cleared_clocks,
            Context.READERS: self._readers.ctypes.data, Context.BULK_WORDS: shared_words,
        }  # fmt: skip  # grouped by meaning

    def clear(self) -> None:
        """Clear all records."""
        super().clear()
        self._padding[:] = _NEVER
        self.fences = None


class CheckTables:
    """The checks' tables of a launch's sites, allocations and strong accesses, which machine code reads and writes.

    Successive launches use the same tables as long as the allocations don't change; `of` contains the allocations'
    sorted starts and ends.
    """

    def __init__(self, sites: int, extents: tuple[Array, Array], base: int) -> None:
        self.of = extents
        starts, ends = extents
        # The same as lists, in which a few values are found faster.
        self.starts, self.ends = starts.tolist(), ends.tolist()
        self.sites = np.zeros((max(sites, 1), SiteCheck.WORDS), np.uint64)
        self.extents = np.zeros((len(starts) + 1, ExtentCheck.WORDS), np.uint64)
        # Granules cover memory from the first allocation to the last. They are aligned, although an allocation may
        # start anywhere. An access, which is aligned too, is therefore within one granule, and only the granule of its
        # address is saved.
        self.first = (self.starts[0] if self.starts else base) & -_GRANULE
        last = self.ends[-1] if self.ends else self.first
        # `addresses` are those of a strong access. The flags of `released`, indexed by the hash of an address, say
        # where there may be a release.
        self._parts = Parts({Context.STRONG_ADDRESSES: 8 * _LANES, Context.RELEASED: HASHES})
        self.released = self._parts.of(Context.RELEASED)
        self.addresses = self._parts.of(Context.STRONG_ADDRESSES, np.int64)
        self.flags = aligned((last - self.first >> GRANULE_BITS) + 1)
        # The parts of `flags` that are set. There may be millions of flags, of which a launch sets a few.
        self._flagged: list[slice] = []
        self.words = self._parts.addresses | {
            Context.SAVED: self.flags.ctypes.data,
            Context.CHECK_SITES: self.sites.ctypes.data,
            Context.CHECK_EXTENTS: self.extents.ctypes.data,
            Context.SAVED_BASE: self.first,
        }

        self._new_sites = self.sites.copy()
        self._new_sites[:, [SiteCheck.LOW, SiteCheck.HIGH, SiteCheck.FIRST]] = _NEVER
        # The rows of allocations at the beginning of a launch. The rows of completely written allocations stay ready,
        # because every launch of the same era can use their records, as long as these exist.
        self._new_extents = np.zeros_like(self.extents)
        self._lasting: dict[int, weakref.ref[PieceRecords]] = {}
        self._era = -1

    def clear(self, recorded: Array, era: int, complete: bool) -> list[PieceRecords]:
        """Reset the tables for a launch, and return the records that ready rows refer to.

        `recorded` says which sites record their loads. If the records must be `complete`, all of them have sites.
        """
        kept = []
        for index, reference in list(self._lasting.items()):
            records = reference()
            if records is None or era != self._era or (complete and not records.sites):
                self._new_extents[index] = 0
                del self._lasting[index]
            else:
                kept.append(records)
        self._era = era
        self.extents[:] = self._new_extents
        self.sites[:] = self._new_sites
        self.sites[: len(recorded), SiteCheck.RECORDS] = recorded
        for part in self._flagged:
            self.flags[part] = 0
        self._flagged.clear()
        self._parts.clear()
        return kept

    def flag(self, number: int, count: int) -> None:
        """Set the flags of granules that have been saved; machine code may store to them from then on."""
        part = slice(number, number + count)
        self._flagged.append(part)
        self.flags[part] = 1

    def prepare_unrecorded(self, index: int) -> None:
        """Make the row of an allocation ready for loads that are not recorded, now and in later launches."""
        self.extents[index][ExtentCheck.READY] = self._new_extents[index][ExtentCheck.READY] = 1

    def prepare(self, index: int, records: PieceRecords) -> None:
        """Make the row of an allocation ready, which refers to its records."""
        row = self.extents[index]
        row[ExtentCheck.WRITES] = records.writes.ctypes.data
        row[ExtentCheck.READS] = records.reads.ctypes.data
        row[ExtentCheck.WRITE_LINES] = records.write_lines.ctypes.data
        row[ExtentCheck.READ_LINES] = records.read_lines.ctypes.data
        row[ExtentCheck.FLOOR] = records.unwritten
        row[ExtentCheck.READY] = 1
        if not records.unwritten:
            self._new_extents[index] = row
            # The launch may have loaded from the allocation before it needed records.
            self._new_extents[index][ExtentCheck.LOADED] = 0
            self._lasting[index] = weakref.ref(records)


class Speculation:
    """One attempt to run a launch in machine code while checks watch it, in one or several host threads.

    All threads use the records and tables of the first one's launch, except for the state of the sites.
    """

    def __init__(self, launches: Sequence[NativeLaunch], records: AccessRecords, recorded: Recorded) -> None:
        self._launches = launches
        self._lock = threading.Lock()
        self._launch = launch = launches[0]
        self._memory = launch.state.memory
        self._records = records
        self._recorded = recorded
        self._shift = launch.kernel.sites.shift
        # The index of an allocation, the offsets between which a piece of it was saved, and a copy of the piece.
        self._saved: list[tuple[int, int, int, Array]] = []
        # The numbers of granules that were saved together, keyed by the granule after them.
        self._together: dict[int, int] = {}
        self._tables = tables = launch.buffers.check_tables(self._memory.extents(), self._memory.base)
        self._starts, self._ends = tables.starts, tables.ends
        # The records that machine code uses.
        self._kept = tables.clear(recorded.sites, records.era, records.complete)
        # The sites that record their loads, as the attempt begins.
        self._began_with = recorded.sites.copy()
        self.fences = Fences(launch, tables.addresses, tables.released)
        self._sites = [tables.sites]
        for one in launches[1:]:
            sites = tables.sites.copy()
            self._sites.append(sites)
            for word, value in tables.words.items():
                one.context[word] = value
            one.context[Context.CHECK_SITES] = sites.ctypes.data
        for one in launches:
            one.context[Context.NOW] = one.context[Context.BEGIN] = records.begin * TICK
            one.context[Context.COMPLETE] = records.complete
            one.speculation = self

    # --- machine code's requests

    def answer(self, what: HostCall, value: int) -> None:
        """Answer a request: save a granule, prepare an allocation's records, or track the order that fences create."""
        fences = self.fences
        if what in (HostCall.SAVE, HostCall.PREPARE):
            try:
                with self._lock:
                    (self._save if what == HostCall.SAVE else self._prepare)(value)
            except MemoryError:
                # The NumPy engine needs less memory.
                raise SpeculationFailed(counts=False, lacks_records=True) from None
        elif what == HostCall.FENCE:
            fences.fence(value)
        elif what == HostCall.STRONG:
            fences.strong(value & 0xFFFFFFFF, value >> _LANES & 0xFFFFFFFF)
        elif what == HostCall.CONVERGE:
            fences.converge(value)
        elif what == HostCall.BARRIER:
            fences.barrier()
        else:
            context = self._launch.context
            context[Context.ANSWER] = fences.ordered(int(context[Context.RECORD]), value)

    def _save(self, number: int) -> None:
        """Save a granule, and if the ones before it are saved, as many granules after it as double their number."""
        flags = self._tables.flags
        if flags[number]:
            # Another thread has had it saved in the meantime.
            return
        count = min(2 * self._together.pop(number, 0), _MOST_TOGETHER) or 1
        if count > 1 and flags[number : number + count].any():
            count = 1
        base = self._memory.base
        start = self._tables.first + (number << GRANULE_BITS)
        end = start + count * _GRANULE
        index = max(bisect_right(self._starts, start) - 1, 0)
        while index < len(self._starts) and self._starts[index] < end:
            low, high = max(start, self._starts[index]) - base, min(end, self._ends[index]) - base
            if low < high:
                kept = _spare.take(count)
                kept[: high - low] = self._memory.bytes[low:high]
                self._saved.append((index, low, high, kept))
            index += 1
        self._together[number + count] = count
        self._tables.flag(number, count)

    def _prepare(self, number: int) -> None:
        """Prepare the row of an allocation; the number's lower half is its index, the rest says if it needs records."""
        index, recorded = number & 0xFFFFFFFF, number >> _LANES
        row = self._tables.extents[index]
        if row[ExtentCheck.READY] and (row[ExtentCheck.WRITES] or not recorded):
            # Another thread has had it prepared in the meantime.
            return
        if not recorded and self._records.are_needless(self._starts[index]):
            self._tables.prepare_unrecorded(index)
            return
        records = self._records.of(self._starts[index], self._shift)
        if records is None:
            raise SpeculationFailed(counts=False, lacks_records=True)
        self._kept.append(records)
        self._tables.prepare(index, records)

    # --- the end

    def doubted(self, context: Array) -> SpeculationFailed:
        """Return the exception that ends the attempt after a doubt; first decide which loads to record.

        `context` is that of the launch with the doubt.
        """
        doubt = int(context[Context.FAULT_MASK])
        if doubt == Doubt.UNWRITTEN:
            return SpeculationFailed(counts=False, unwritten=True)
        if doubt == Doubt.FINDING:
            return SpeculationFailed()
        recorded = self._recorded.sites
        if self._began_with.all():
            # All loads are recorded already.
            return SpeculationFailed()
        site = int(context[Context.FAULT_SITE])
        if doubt == Doubt.SHARED or self._began_with[site]:
            recorded[:] = True
        # Another thread of the launch may have had the same doubt.
        if not recorded[site]:
            # Loads near this one in the code probably load from the same memory. As many of them before it and after it
            # are recorded as there are recorded sites already, so that a kernel with many loads runs again only a few
            # times.
            around = np.count_nonzero(recorded)
            recorded[max(0, site - around) : site + around + 1] = True
        return SpeculationFailed(again=True)

    def overflows(self, context: Array) -> bool:
        """Return whether the time in a launch's context is about to overflow the records."""
        return int(context[Context.NOW]) // TICK > _LAST

    def undo(self) -> None:
        """Restore the contents that memory had before the launch.

        A granule may also hold parts of allocations that the launch didn't store to. They are left alone, because the
        host may have written to them in the meantime.
        """
        for index, low, high, kept in self._saved:
            if self._tables.extents[index][ExtentCheck.STORED]:
                self._memory.bytes[low:high] = kept[: high - low]

    def used(self) -> dict[int, tuple[int, int]]:
        """Return the allocations that the launch has used, as `AccessRecords.races` expects them."""
        ready = self._tables.extents[: len(self._starts), ExtentCheck.READY]
        found = {start: (start, start) for start in (self._starts[index] for index in np.flatnonzero(ready == 2))}
        for start, low, high in self.changed():
            if start in found:
                first, end = found[start]
                found[start] = (low if end == first else min(first, low), max(end, high))
        return found

    def unrecorded(self) -> Iterator[tuple[int, int, int]]:
        """Yield the loads that have left no records, as `AccessRecords.races` expects them."""
        for sites in self._sites:
            for number in np.flatnonzero(sites[:, SiteCheck.LAST]):
                yield int(number), int(sites[number, SiteCheck.FIRST]), int(sites[number, SiteCheck.LAST])

    def changed(self) -> Iterator[tuple[int, int, int]]:
        """Yield the parts of memory that the launch may have changed, as `AccessRecords.keep` expects them."""
        base = self._memory.base
        for index, low, high, _ in self._saved:
            yield self._starts[index], base + low, base + high

    def end(self) -> None:
        """Advance the time of the records, and keep the buffers of saved granules for later launches."""
        for *_, kept in self._saved:
            _spare.give_back(kept)
        self._saved.clear()
        self._records.end(max(int(launch.context[Context.NOW]) // TICK for launch in self._launches))
        # The launches and this attempt refer to each other. The cycle must be broken, because a launch's memory must be
        # freed with the last reference to the launch.
        for launch in self._launches:
            launch.speculation = None
