"""Records of the checks that are kept while one chunk of thread blocks runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..state.memory.records.shadow import History
from .divergence import Divergence
from .races.asynchronous import AsynchronousCopies
from .races.bulk import BulkCopies
from .uninitialised.marks import Marks

if TYPE_CHECKING:
    from ..ptx.running.scheduler import Chunk


@dataclass(slots=True)
class ChunkRecords:
    """The records of the checks for one chunk, each created when it is first needed.

    The chunk refers to its records. The records do not refer back to the chunk, so both are freed as soon as the chunk
    has run, except for `shared`, the history of its shared memory, which a later chunk uses again. `local_written` has
    a flag for each piece of local memory that says whether its thread has written it.
    """

    divergence: Divergence | None = None
    marks: Marks | None = None
    copies: AsynchronousCopies | None = None
    bulk: BulkCopies | None = None
    shared: History | None = None
    local_written: NDArray[np.bool_] | None = None

    def divergence_of(self, chunk: Chunk) -> Divergence:
        """Return the record of the threads that wait at the chunk's barriers."""
        if self.divergence is None:
            self.divergence = Divergence(chunk.blocks)
        return self.divergence

    def marks_of(self, chunk: Chunk) -> Marks:
        """Return the marks of uninitialised values in the chunk's registers."""
        if self.marks is None:
            self.marks = Marks(chunk.lanes)
        return self.marks

    def copies_of(self, chunk: Chunk) -> AsynchronousCopies:
        """Return the groups of the chunk's asynchronous copies."""
        if self.copies is None:
            self.copies = AsynchronousCopies(chunk)
        return self.copies

    def bulk_of(self, chunk: Chunk) -> BulkCopies:
        """Return the bulk copies of the chunk."""
        if self.bulk is None:
            self.bulk = BulkCopies(chunk)
        return self.bulk

    def local_written_of(self, chunk: Chunk, shift: int) -> NDArray[np.bool_]:
        """Return a mask of the pieces of ``1 << shift`` bytes of the chunk's local memory that have been written."""
        if self.local_written is None:
            self.local_written = np.zeros(len(chunk.local.bytes) >> shift, np.bool_)
        return self.local_written


def records_of(chunk: Chunk) -> ChunkRecords:
    """Return the records of a chunk; the first call creates them."""
    if chunk.notes is None:
        chunk.notes = ChunkRecords()
    records: Any = chunk.notes
    assert isinstance(records, ChunkRecords)
    return records
