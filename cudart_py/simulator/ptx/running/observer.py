"""The events of a launch, for counters and checks.

An observer's methods are called for every basic block, memory access, branch and barrier. Basic blocks are compiled in
a second form that makes these calls, so a launch without an observer pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..compiling.analysis.control_flow import Block, Code
    from ..faults import Fault
    from ..syntax.instructions import Instruction
    from .groups import Group
    from .memory.addresses import Address, Mixed
    from .scheduler import Chunk


class BlockCount(NamedTuple):
    """The number of times that warps have executed a basic block of a code, and the number of lanes that took part."""

    code: Code
    block: Block
    warps: int
    lanes: int


class AccessCount(NamedTuple):
    """The counts of an instruction's accesses to one space, taken by machine code and summed over the warps.

    `kind` is as in `Observer.access`, ldsm for ``ldmatrix``, or bypass for a copy around the L1 cache, and `times`
    counts the warps that made the access. `first` and `second` depend on the space. For global memory they count the
    sectors and the distinct addresses of each warp, and for atomics what `count_atomic_sectors` in
    `cudart_py.simulator.counters.sectors` returns. For shared memory they count the wavefronts and the bank conflicts.
    For local memory, `first` counts the sectors. For constant memory, `second` counts the distinct addresses. For
    textures, `first` counts the sectors of the texels and `second` the groups of lanes that fetch together.
    """

    code: Code
    site: Instruction
    kind: str
    space: str
    size: int
    times: int
    first: int
    second: int


class Apart(IntEnum):
    """The distance of two threads, from near to far: lanes of one warp, warps of one block, or different blocks.

    Several threads may read a piece of memory, or update it with atomics, without being ordered. Both engines record
    the last of these accesses, and how far the farthest of the others is from its thread. Machine code stores the
    distance as flags in the record of the last access. NumPy stores the record of the farthest access, because it
    reports the race.

    A later write needs no comparison with the rest. Barriers order it after the accesses of all threads up to some
    distance from its own thread. If any access is by a thread beyond this distance, so is the last one or the farthest
    one.
    """

    LANES = 1 << 28
    WARPS = 1 << 29
    BLOCKS = 1 << 30


@dataclass(frozen=True)
class PieceRecords:
    """The records of the writes and reads of each piece of an allocation; each record has 64 bits.

    Each line of 32 pieces also has a record of its own, which replaces the records of its pieces unless it is 0.
    `sites` says whether the number of each record's site is kept, which `site_numbers` returns. `unwritten` is True if
    some pieces may never have been written; the records of such pieces are 0. `WRITTEN` is the record of a piece that
    was written before any launch. Its two lowest bits are 0, because in a line's record they contain the number of
    pieces per thread. A record contains the thread, flags such as `BLOCK_SCOPE`, `STRONG` and those of `Apart`, and the
    time, shifted by `TIME`.
    """

    WRITTEN: ClassVar = 4
    LINE: ClassVar = 32
    THREAD: ClassVar = (1 << 27) - 1
    BLOCK_SCOPE: ClassVar = 1 << 27
    STRONG: ClassVar = 1 << 31
    TIME: ClassVar = 32

    writes: NDArray[np.uint64]
    reads: NDArray[np.uint64]
    write_lines: NDArray[np.uint64]
    read_lines: NDArray[np.uint64]
    sites: bool
    unwritten: bool

    def fill(self, first: int, end: int) -> None:
        """Record, between two launches, that the pieces from `first` up to but not including `end` are written."""
        whole = -(-first // self.LINE), end // self.LINE
        if whole[0] < whole[1]:
            self.write_lines[slice(*whole)] = self.WRITTEN
        for start, stop in {(first, min(end, whole[0] * self.LINE)), (max(first, whole[1] * self.LINE), end)}:
            if start < stop and not self.write_lines[start // self.LINE]:
                self.writes[start:stop] = self.WRITTEN


def records_in(room: NDArray[np.uint16]) -> NDArray[np.uint64]:
    """Return the records in memory for records and their sites; it has 5 elements per record, for a multiple of 4.

    The number of each record's site is kept below the records, last first.
    """
    return room[len(room) // 5 :].view(np.uint64)


def site_numbers(records: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return the number of each record's site in machine code."""
    room: Any = records.base
    return np.asarray(room[: len(room) // 5][::-1][: len(records)])


class MatrixPiece(NamedTuple):
    """The part of a matrix in memory that each lane reads or writes: `size` bytes at its address.

    These bytes belong to the instruction's register `number`, starting at byte `first` of the register. `values`
    contains the value that a store is about to write there, and is empty for a load. The address is an `Address` or a
    `Mixed`.
    """

    address: Any
    size: int
    number: int
    first: int
    values: tuple[NDArray[Any], ...]


class MatrixRows(NamedTuple):
    """The addresses of 16-byte rows, and the positions of the lanes that supply them; None means all lanes."""

    address: Address
    positions: NDArray[np.intp] | None


class AccessRecords(Protocol):
    """The records that machine code makes of one launch's accesses to global memory; their times start at `begin`.

    Times are comparable only within one `era`. `complete` says that all loads must be recorded, and the records given
    to `races` at the end, because other work may overlap the launch.
    """

    begin: int
    era: int
    complete: bool

    def of(self, start: int, shift: int) -> PieceRecords | None:
        """Return the records of the allocation that starts at an address, in pieces of ``1 << shift`` bytes.

        None means that they would cost too much; the NumPy engine then runs the launch.
        """

    def are_needless(self, start: int) -> bool:
        """Return whether loads need no records of the allocation that starts at an address: all of it is written."""

    def races(
        self,
        used: Mapping[int, tuple[int, int]],
        unrecorded: Iterable[tuple[int, int, int]],
        shift: int,
        sites: Sequence[Instruction],
    ) -> bool:
        """Return whether the launch, which has ended without a doubt, may race with other work.

        `used` maps the start of each allocation that it has used to two addresses between which all its writes are.
        `unrecorded` has a site's number and two addresses for the loads that have left no records: strong loads, and
        guesses for a compare-and-swap.
        `shift` is the one given to `of`, and `sites` are the instructions that the sites in the records refer to.
        """

    def end(self, now: int) -> None:
        """Advance the time to `now`, and forget the launch's writes unless `keep` has saved them."""

    def keep(self, changed: Iterable[tuple[int, int, int]]) -> None:
        """Save the launch's writes, once the launch will certainly not run again.

        `changed` are the parts of memory that it may have changed: the start of the allocation, the first address and
        the end.
        """


class RunAgain(Exception):  # noqa: N818  # it is not an error: the blocks run again
    """All blocks of the launch must run again, because a debugger must see one of those that have run unseen."""


class Observer:
    """The receiver of a launch's events; `group.lane_numbers` are the lanes of the chunk that take part in an event.

    A subclass only needs the methods for the events that it observes. `watch` names what machine code may record
    instead of calling these methods. None means that the observer must see the events themselves. A `stepped` observer
    sees a basic block for every instruction, and one block or cluster of the grid at a time, from the block on that
    `stepped_from` returns. An observer that `can_restart` may see the events of a launch again; see `restart`.
    """

    watch: frozenset[str] | None = None
    stepped = False
    can_restart = False

    def start(self, state: Any) -> None:
        """Begin a launch; `state` contains its shape, module and program."""

    def stepped_from(self, first: int) -> int:
        """Return the first block, from `first` on, that a stepped observer must see instruction by instruction."""
        return first

    def restart(self, state: Any) -> None:
        """Begin the launch again, after `RunAgain`."""

    def has_mistake(self) -> bool:
        """Return whether the observer has found a mistake in the kernel, and need not observe all of a long launch.

        Several observers of one launch always observe all of it.
        """
        return False

    def lack_records(self) -> None:
        """Take note that there is no room for machine code's records of this launch."""

    def lacks_records(self) -> bool:
        """Return whether there is no room for machine code's records, so that a long launch is not observed.

        Several observers of one launch always observe it.
        """
        return False

    def end_early(self) -> None:
        """Note that the rest of the launch has run without the observer."""

    def records(self) -> AccessRecords:
        """Return new records for a launch that machine code runs while checks watch it."""
        raise NotImplementedError

    def block(self, group: Group, block: Block) -> None:
        """Observe a group that is about to execute a basic block."""

    def executed(self, group: Group, block: Block) -> None:
        """Observe a group that has executed the instructions of a basic block, but not yet its terminator."""

    def unwritten(self, group: Group, slot: int) -> None:
        """Observe a group that is about to read a register that none of its lanes has written."""

    def outside(self, group: Group, site: Instruction | None, position: int) -> None:
        """Observe a group at an instruction whose member mask doesn't name the lane at `position`."""

    def deserted(self, group: Group, site: Instruction | None, position: int) -> None:
        """Observe a group that continues without some lanes in the member mask of the lane at `position`."""

    def apart(self, group: Group, site: Instruction, position: int, other: Instruction) -> None:
        """Observe the lane at `position` at a barrier of its block, while others of the block wait at another one."""

    def passing(self, group: Group, block: Block, position: int, barrier: Instruction) -> None:
        """Observe the lane at `position` at a block past a barrier, at which others of its thread block wait."""

    def access(
        self, group: Group, kind: str, address: Any, offset: int, size: int, site: Instruction, values: tuple[Any, ...]
    ) -> None:
        """Observe an access (`kind` is ld, st, atom, red or mbarrier) to `size` bytes at ``address + offset``.

        `values` contains the values that a store is about to write, element by element, and is empty for all other
        kinds.
        """

    def matrix(
        self, group: Group, kind: str, pieces: Sequence[MatrixPiece], rows: MatrixRows | None, site: Instruction
    ) -> None:
        """Observe whole warps that are about to load or store matrices (`kind` is ld or st).

        `pieces` are the parts that lanes read or write. `rows` contains the row addresses that lanes supply, and is
        None for ``wmma``.
        """

    def texture(self, group: Group, positions: Any, places: Any, site: Instruction) -> None:
        """Observe the lanes at `positions` of a group, which are about to fetch texels.

        `places` contains one row per lane: the offsets of its texels in global memory, or -1 if the border is read.
        For a CUDA array, these are the offsets that the texels have in hardware.
        """

    def object_access(
        self, group: Group, kind: str, positions: Any, address: Address, size: int, site: Instruction, values: Any
    ) -> None:
        """Observe the lanes at `positions` of a group, which are about to access a texture or a surface.

        Each of them reads (`kind` is ld) or writes (st) `size` bytes at its address in global memory, such as one of
        the texels of a fetch. `values` is as in `access`.
        """

    def fence(self, group: Group, site: Instruction) -> None:
        """Observe a fence."""

    def bulk(self, group: Group, kind: str, units: Mixed, size: int, barriers: Any, site: Instruction) -> None:
        """Observe an access that the asynchronous proxy is about to make for lanes of a group (`kind` is ld or st).

        `units` contains the address of each unit of `size` bytes, in a single part in which lane positions may repeat.
        `barriers` contains, for each unit, the offset of the mbarrier that counts its bytes. It is None if no mbarrier
        counts them.
        """

    def copies(self, group: Group, site: Instruction, event: str, allowed: int) -> None:
        """Observe the commit of a group of asynchronous copies or a wait (`event` is commit, wait or wait_all).

        A wait covers all groups of copies except the latest `allowed` groups.
        """

    def shuffle(self, group: Group, site: Instruction, mode: str, lane: Any, control: Any) -> None:
        """Observe a group that is about to shuffle (`mode` is up, down, bfly or idx).

        `lane` and `control` are the operands b and c of ``shfl``.
        """

    def branch(self, group: Group, site: Instruction | None, taken: Any) -> None:
        """Observe a conditional branch; `taken` is a scalar, or an array over the group's lanes."""

    def barrier(self, group: Group, site: Instruction, event: str) -> None:
        """Observe a group that arrives at a barrier or leaves one (`event` is arrive or release)."""

    def exit(self, group: Group) -> None:
        """Observe lanes that exit."""

    def never_ends(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether the launch can only repeat itself. Only a stepped observer is asked.

        `chunks` are those that have begun and not ended; all of their lanes wait, or have had a turn.
        """
        return False

    def ended(self, chunk: Chunk) -> None:
        """Observe a chunk whose lanes have all exited."""

    def failed(self, chunk: Chunk, fault: Fault) -> None:
        """Observe the fault that ends the launch, while the chunk still has its groups."""

    def counted(self, blocks: Iterable[BlockCount], accesses: Iterable[AccessCount]) -> None:
        """Receive the counts that machine code took for a launch, or for some of its blocks."""

    def finish(self, state: Any) -> None:
        """End a launch after all its blocks have run."""
