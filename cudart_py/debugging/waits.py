"""The threads that wait, and what they wait for: at barriers, and in loops that never end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .views.texts import grid_thread_text, index_text, ranges, shown_path, user_place_text, waiting_text

if TYPE_CHECKING:
    from ..simulator.debugging.moments import LaneGroup
    from ..simulator.debugging.repeating.endless import Read
    from ..simulator.debugging.writers import LastWrite
    from ..simulator.ptx.running.scheduler import Chunk
    from .session import Session

_MOST_NAMED_BLOCKS = 4
_MOST_READS = 4
_MOST_EXITED_ROWS = 4
_EXITED = "exited"
# The state spaces that other threads may change; the workspace is that of the grid's barrier.
_SHARED_SPACES = ("global", "shared", "workspace")


class _Threads(NamedTuple):
    """Threads of a block, by their indices in it."""

    block: int
    threads: tuple[int, ...]


def waits(session: Session, *, is_summary: bool = False) -> str:
    """Return the waiting threads with the reasons for their waits, and the places of all other threads.

    These are the threads of the block in focus. If threads wait in a loop for other blocks, they are those of all
    blocks. A summary has a single line for threads that have exited if their lines would be many.
    """
    recorder, moment = session.recorder, session.moment
    groups = [(moment.chunk, group) for group in moment.groups]
    everywhere = bool(recorder.reads) and not session.is_past
    if everywhere:
        groups += recorder.elsewhere(moment)
    blocks = range(moment.chunk.state.blocks) if everywhere else [moment.block_of(session.lane)]
    waiting: dict[str, list[_Threads]] = defaultdict(list)
    others: dict[str, list[_Threads]] = defaultdict(list)
    present: dict[int, set[int]] = defaultdict(set)
    for chunk, group in groups:
        for part in _by_block(chunk, group):
            if part.block in blocks:
                present[part.block].update(part.threads)
                reason = _reason(session, chunk, group)
                (waiting if reason else others)[reason or user_place_text(recorder, group)].append(part)
    threads = moment.chunk.threads
    for block in blocks[: recorder.begun]:
        for text, gone in _exited(session, block, set(range(threads)) - present[block]):
            others[text].append(_Threads(block, gone))
    if everywhere and recorder.begun < len(blocks):
        left = range(recorder.begun, len(blocks))
        others["not begun"] = [_Threads(block, tuple(range(threads))) for block in left]
    if not waiting:
        return "no thread of the block waits at a barrier"
    lines = ["waiting:", *_rows(session, waiting, everywhere=everywhere)]
    if others:
        lines += ["not waiting:", *_other_rows(session, others, everywhere=everywhere, is_summary=is_summary)]
    return "\n".join(lines)


def _by_block(chunk: Chunk, group: LaneGroup) -> Iterator[_Threads]:
    numbers = group.lanes // chunk.threads
    for number in np.unique(numbers).tolist():
        yield _Threads(chunk.first + number, tuple((group.lanes[numbers == number] % chunk.threads).tolist()))


def _reason(session: Session, chunk: Chunk, group: LaneGroup) -> str:
    """Return what a group waits for, and where, or "" if it does not wait."""
    if group.waiting is not None:
        return f"{waiting_text(group).removeprefix('waits ')}, {user_place_text(session.recorder, group)}"
    texts: dict[str, None] = {}
    place = ""
    for read in session.recorder.reads:
        inside = np.isin(read.lanes, group.lanes)
        if read.chunk is chunk and read.space in _SHARED_SPACES and inside.any():
            place = user_place_text(session.recorder, read.running)
            texts[_read_text(session, read, np.unique(read.places[inside]))] = None
    return f"in a loop, {place}, until {' or '.join(list(texts)[:_MOST_READS])}" if texts else ""


def _read_text(session: Session, read: Read, places: NDArray[Any]) -> str:
    """Return what must change so that a loop can end: up to four addresses with their values and writers."""
    if read.space == "workspace":
        return "all blocks arrive at the grid's barrier"
    texts = [_address_text(session, read, place) for place in places[:_MOST_READS].tolist()]
    more = len(places) - len(texts)
    if more:
        texts.append(f"{more} other address changes" if more == 1 else f"{more} other addresses change")
    return " or ".join(texts)


def _address_text(session: Session, read: Read, place: int) -> str:
    """Return the address of a place that is read, its name, its value, and who has written it."""
    recorder, size, array = session.recorder, read.size, read.array
    address = recorder.address_of(read.space, place, read.chunk)
    name = session.scope.name_at(address) or recorder.allocation_of(address)
    text = f"the {size} bytes at {address:#x}" + (f" ({name})" if name else "")
    value = int.from_bytes(array[place : place + size].tobytes(), "little")
    return f"{text} change (now {value}, {_writer_text(session, recorder.last_writer(array, place, size))})"


def _writer_text(session: Session, writer: LastWrite | None) -> str:
    if writer is None:
        is_complete = session.recorder.is_complete
        return "not written by this launch" if is_complete else "not written since the recording began: use `watch`"
    text = f"written at {user_place_text(session.recorder, writer.group)}"
    return text if writer.thread is None else f"{text} by {grid_thread_text(session.moment, writer.thread)}"


def _exited(session: Session, block: int, gone: set[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the threads of a block that have exited, with a text that names their last line."""
    for place, threads in session.recorder.exits.of(block).items():
        known = gone.intersection(threads)
        if place is not None and known:
            gone = gone - known
            name = shown_path(session.recorder.lines.name(place.file))
            yield f"{_EXITED} after {name}:{place.line}", tuple(sorted(known))
    if gone:
        yield _EXITED, tuple(sorted(gone))


def _other_rows(
    session: Session, others: dict[str, list[_Threads]], *, everywhere: bool, is_summary: bool
) -> list[str]:
    exited = {text: parts for text, parts in others.items() if text.startswith(_EXITED)}
    rows = _rows(session, exited, everywhere=everywhere)
    if is_summary and len(rows) > _MOST_EXITED_ROWS:
        count = sum(len(part.threads) for parts in exited.values() for part in parts)
        rows = [f"  {count:,} threads have exited: `info barriers` shows after which lines"]
    present = {text: parts for text, parts in others.items() if text not in exited}
    return _rows(session, present, everywhere=everywhere) + rows


def _rows(session: Session, found: dict[str, list[_Threads]], *, everywhere: bool) -> list[str]:
    rows = []
    for text, parts in found.items():
        by_threads: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for part in parts:
            by_threads[part.threads].append(part.block)
        for threads, blocks in by_threads.items():
            who = f"thread{'' if len(threads) == 1 else 's'} {ranges(threads)}"
            if everywhere:
                who = f"{_blocks_text(session, blocks)}, {who}"
            rows.append(f"  {who} ({len(threads) * len(blocks):,}): {text}")
    return rows


def _blocks_text(session: Session, blocks: Sequence[int]) -> str:
    """Return blocks by their numbers in a grid with one dimension, and otherwise by their coordinates."""
    launch = session.moment.chunk.state.launch
    name = "block" if len(blocks) == 1 else "blocks"
    if launch.grid[0] == prod(launch.grid):
        return f"{name} {ranges(sorted(blocks))}"
    named = [index_text(launch.block_index(block)) for block in blocks[:_MOST_NAMED_BLOCKS]]
    more = len(blocks) - len(named)
    return f"{name} {', '.join(named)}" + (f" and {more:,} more" if more else "")
