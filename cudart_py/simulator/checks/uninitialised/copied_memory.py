"""Copies of device memory that nothing has written, such as the part that a grid was too small to reach.

A copy to the host is reported. A copy to other device memory leaves the same bytes of the destination unwritten.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.wording import counted
from ...state import memory
from ...state.memory import Allocation
from ...state.memory.records.record_limit import limit
from ...state.memory.records.shadow import History, ShadowMemory
from ..findings import mode, put_finding
from .stored_structures import LARGEST_ALIGNMENT

Array = NDArray[Any]

# A copy between device addresses whose source has more runs of written bytes than this counts as written completely.
_MOST_RUNS = 1000
# For each number of unwritten bytes that may be padding, the alignment of the member that would require it.
_ALIGNMENTS = np.array([0, 2, 4, 4, 8, 8, 8, 8, *[LARGEST_ALIGNMENT] * 8])
# The members of a structure are runs of written bytes that are shorter than this.
_LONGEST_RUN = 64
# The number of written runs on each side of padding among which the member may be that requires the padding.
_NEAR = 2


def check_copy_to_host(rows: Sequence[tuple[int, int]], destination: int, site: str) -> None:
    """Report the bytes that a copy to the host reads although nothing has written them.

    `rows` are the contiguous parts of the source, each an address and a size in bytes, in one allocation of a device.
    Copies to other memory than the host's are not checked, and neither are CUDA arrays. `site` is the line of the
    program that queued the copy.
    """
    source, target = _partly_written(rows[0][0]), memory.live.find(destination)
    if source is None or not (target is None or target.on_host):
        return
    try:
        _report_unwritten(rows, source, site)
    except MemoryError:
        limit.say("no memory is left for the check of a copy", "uninitialised values that it reads may go unnoticed")


def _report_unwritten(rows: Sequence[tuple[int, int]], source: Allocation, site: str) -> None:
    shadow = source.shadow
    unwritten = first = done = 0
    place = None
    for address, size in rows:
        gaps = _gaps(shadow, address - shadow.first, size)
        if len(gaps) and place is None:
            place = shadow.first + int(gaps[0, 0])
            first = done + place - address
        unwritten += int((gaps[:, 1] - gaps[:, 0]).sum())
        done += size
    if place is not None:
        what = (
            f"uninitialised value reaches the host: a copy of {counted(done, 'byte')} reads "
            f"{counted(unwritten, 'byte')} where nothing has been written, the first at byte {first} of the copy, "
            f"{place:#x} ({memory.describe(place)}){memory.unordered_writer(place) or _last_writer(source)}"
        )
        queued = f"; this copy was queued at {site}" if site else ""
        put_finding("uninitialised", what + queued, ("copy to the host", site, source.identity), noun="copy")


def note_copied(rows: Sequence[tuple[int, int, int]]) -> bool:
    """Record a copy from a source that has not been written completely; return False, doing nothing, for any other.

    Each row has the address in the destination, the address in the source, and the size in bytes.
    """
    target, source = memory.live.find(rows[0][0]), _partly_written(rows[0][1])
    if source is None or target is None or target.kind != memory.DEVICE:
        return False
    target.shadow.paddings |= source.shadow.paddings
    with contextlib.suppress(MemoryError):  # the destination then counts as written
        for to, address, size in rows:
            start = address - source.shadow.first
            runs, offset = _runs(source.shadow.history, start, size)
            written = runs[1 - offset :: 2].tolist()
            for begin, end in written if len(written) <= _MOST_RUNS else [(start, start + size)]:
                target.shadow.fill(to + begin - start, end - begin)
        return True
    return False


def _partly_written(address: int) -> Allocation | None:
    """Return the allocation at an address if it is device memory that has not been written completely, or else None."""
    allocation = None if mode() == "off" else memory.live.find(address)
    if allocation is None or allocation.kind != memory.DEVICE:
        return None
    allocation.shadow.look_through()
    return None if allocation.shadow.initialised else allocation


def _last_writer(source: Allocation) -> str:
    writer = source.shadow.writer
    return f"; the last launch that wrote there is that of {writer}" if writer else "; no launch has written there"


def _gaps(shadow: ShadowMemory, start: int, size: int) -> Array:
    """Return the unwritten parts of a range that are not padding of structures, as `_runs` does."""
    runs, offset = _runs(shadow.history, start, size)
    return np.asarray(runs[offset::2][~_is_padding(runs, offset, shadow.paddings)])


def _runs(history: History, start: int, size: int) -> tuple[Array, int]:
    """Return the runs of written and of unwritten bytes, which alternate: a row for each, its start and its end.

    The second value is the index of the first unwritten run. All numbers are bytes from the start of the allocation.
    """
    written, first, shift = history.written_pieces(start, start + size)
    edges = np.flatnonzero(written[1:] != written[:-1]) + 1
    bounds = np.concatenate(([0], edges, [len(written)]))
    bounds = np.clip(first + (bounds << shift), start, start + size)
    return np.stack((bounds[:-1], bounds[1:]), axis=1), int(written[0])


def _is_padding(runs: Array, offset: int, paddings: frozenset[tuple[int, int]]) -> Array:
    """Return which of the runs `offset`, `offset` + 2, ... may be padding between the members of a structure.

    Padding ends where a member of a larger alignment begins, or where the structure ends, whose size is a multiple of
    its largest alignment. Such a member has been written near the padding, or a kernel's code shows the structure:
    `paddings` has the number of written bytes before each padding in it, and the padding's size.
    """
    nothing = np.zeros((2 * _NEAR, 2), runs.dtype)
    around = np.concatenate((nothing, runs, nothing))
    gaps = runs[offset::2]
    lengths = gaps[:, 1] - gaps[:, 0]
    alignments = _ALIGNMENTS[np.minimum(lengths, len(_ALIGNMENTS) - 1)]
    found = (lengths < len(_ALIGNMENTS)) & (gaps[:, 1] % np.maximum(alignments, 1) == 0)
    near = [around[offset + at :: 2][: len(gaps)] for at in range(1, 4 * _NEAR, 2)]
    before = near[_NEAR - 1][:, 1] - near[_NEAR - 1][:, 0]
    sought = [written * LARGEST_ALIGNMENT + size for written, size in paddings]
    stored = np.isin(before * LARGEST_ALIGNMENT + lengths, sought)
    return np.asarray(found & (stored | np.logical_or.reduce([_has_member(each, alignments) for each in near])))


def _has_member(runs: Array, alignments: Array) -> Array:
    """Return which runs of written bytes are as short as in a structure, and contain a whole aligned member."""
    starts = -(-runs[:, 0] // np.maximum(alignments, 1)) * alignments
    return np.asarray((starts + alignments <= runs[:, 1]) & (runs[:, 1] - runs[:, 0] < _LONGEST_RUN))
