"""The events of a launch, for counters and checks.

An observer's methods are called for every block of instructions, memory access, branch and barrier. Blocks are
compiled in a second form for it, so a launch without one pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..compiling.control_flow import Block, Code
    from ..syntax.instructions import Instruction
    from .groups import Group
    from .memory.addresses import Address, Mixed
    from .scheduler import Chunk


class BlockCount(NamedTuple):
    """How many warps have executed a block of instructions, and how many lanes of them."""

    block: Block
    warps: int
    lanes: int


class AccessCount(NamedTuple):
    """What machine code has counted of an instruction's accesses to one space, summed over the warps.

    `kind` is that of `Observer.access`, and `times` are the warps. Of global memory `first` counts the sectors and
    `second` the different addresses of each warp, of constant memory `second` the different addresses, of local memory
    `first` the sectors, of shared memory `first` the wavefronts and `second` the conflicts among them.
    """

    code: Code
    site: Instruction
    kind: str
    space: str
    size: int
    times: int
    first: int
    second: int


class PieceRecords(NamedTuple):
    """The records of the writes and reads of each piece of an allocation, 64 bits each.

    Of each line of 32 pieces there is one record more, which holds in place of theirs unless it is 0. `unwritten` says
    that there may be pieces that nothing has written, whose records are 0.
    """

    writes: NDArray[np.uint64]
    reads: NDArray[np.uint64]
    write_lines: NDArray[np.uint64]
    read_lines: NDArray[np.uint64]
    unwritten: bool


class MatrixPiece(NamedTuple):
    """What each lane reads or writes of a matrix in memory: `size` bytes at its address.

    They are the bytes from `first` on of the register with some `number` among those of the instruction. `values` has
    what a store is about to store there, and is empty for a load. The address is an `Address`, or `Mixed`.
    """

    address: Any
    size: int
    number: int
    first: int
    values: tuple[NDArray[Any], ...]


class MatrixRows(NamedTuple):
    """The addresses of rows of 16 bytes, and the positions of the lanes that name them; None stands for all lanes."""

    address: Address
    positions: NDArray[np.intp] | None


class AccessRecords(Protocol):
    """The records that machine code makes of one launch's accesses to global memory; their times start at `begin`."""

    begin: int

    def of(self, start: int, shift: int) -> PieceRecords | None:
        """Return the records of the allocation that starts at an address, in pieces of ``1 << shift`` bytes.

        None says that they cost too much, so that the NumPy engine runs the launch.
        """

    def end(self, now: int) -> None:
        """Advance the time, whether the launch has ended or runs again."""

    def keep(self) -> None:
        """Note what the launch has written, which has ended."""


class Observer:
    """Watch a launch; `group.lane_numbers` tells which lanes of which chunk take part in an event.

    A class that inherits from this one need only have the methods for what it wants to see. `watch` names what machine
    code may record in place of calls of these methods; None if it has to see the events themselves.
    """

    watch: frozenset[str] | None = None

    def start(self, state: Any) -> None:
        """Begin: the launch's shape, module and program are at hand."""

    def records(self) -> AccessRecords:
        """Return new records for a launch that machine code runs while checks watch it."""
        raise NotImplementedError

    def block(self, group: Group, block: Block) -> None:
        """Observe a group that is about to execute the instructions of a block."""

    def executed(self, group: Group, block: Block) -> None:
        """Observe a group that has executed the instructions of a block, but not the one that ends it."""

    def unwritten(self, group: Group, slot: int) -> None:
        """Observe a group that is about to read a register that none of its lanes has written."""

    def deserted(self, group: Group, block: Block, position: int) -> None:
        """Observe a group that goes on without lanes which the member mask of the lane at `position` names."""

    def access(
        self, group: Group, kind: str, address: Any, offset: int, size: int, site: Instruction, values: tuple[Any, ...]
    ) -> None:
        """Observe an access (`kind` is ld, st, atom, red or mbarrier) of `size` bytes, `offset` behind an address.

        `values` are what a store is about to store, element by element, and empty for everything else.
        """

    def matrix(
        self, group: Group, kind: str, pieces: Sequence[MatrixPiece], rows: MatrixRows | None, site: Instruction
    ) -> None:
        """Observe whole warps that are about to load or store matrices (`kind` is ld or st).

        `pieces` are what lanes read or write, and `rows` what they name for that; ``wmma`` names no rows.
        """

    def texture(self, group: Group, positions: Any, places: Any, site: Instruction) -> None:
        """Observe lanes at some positions of a group that are about to fetch texels.

        `places` has a row for each lane: the places in global memory of the texels' bytes, -1 for none.
        """

    def fence(self, group: Group, site: Instruction) -> None:
        """Observe a fence."""

    def bulk(self, group: Group, kind: str, units: Mixed, barriers: Any, site: Instruction) -> None:
        """Observe what the asynchronous proxy is about to read (`kind` is ld) or write (st) for lanes of a group.

        `units` has a place for each 16 bytes, in one part whose positions repeat. `barriers` has the place of the
        barrier that counts each unit's bytes, None where none does.
        """

    def copies(self, group: Group, site: Instruction, event: str, allowed: int) -> None:
        """Observe the end of a group of asynchronous copies or a wait for one (`event` is commit, wait or wait_all).

        A wait is for all groups of copies but the last `allowed` ones.
        """

    def shuffle(self, group: Group, site: Instruction, mode: str, lane: Any, control: Any) -> None:
        """Observe a group that is about to shuffle (`mode` is up, down, bfly or idx), with the operands b and c."""

    def branch(self, group: Group, site: Instruction | None, taken: Any) -> None:
        """Observe a conditional branch; `taken` is a scalar, or an array over the group's lanes."""

    def barrier(self, group: Group, site: Instruction, event: str) -> None:
        """Observe a group that arrives at a barrier or leaves one (`event` is arrive or release)."""

    def exit(self, group: Group) -> None:
        """Observe lanes that end."""

    def ended(self, chunk: Chunk) -> None:
        """Observe that all lanes of a chunk have ended."""

    def counted(self, blocks: Iterable[BlockCount], accesses: Iterable[AccessCount]) -> None:
        """Take what machine code has counted of a launch, or of some of its blocks."""

    def finish(self, state: Any) -> None:
        """End: all blocks have run."""
