"""Texts about the state of a launch: places, values, threads and masks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...pages.text_tables import aligned
from .formats import float_text, formatted

if TYPE_CHECKING:
    from ...simulator.debugging.moments import LaneGroup, Moment
    from ...simulator.debugging.recorder import Recorder
    from ...simulator.debugging.values import Value
    from ..session import Session

UNKNOWN = "-"
# The number of elements and members of an aggregate that are shown.
_MOST_ELEMENTS = 16
_DEEPEST = 2
_INDENT = "  "


def index_text(index: tuple[int, ...]) -> str:
    """Return coordinates as ``(x, y, z)``."""
    return f"({', '.join(map(str, index))})"


def shown_path(path: str) -> str:
    """Return a path relative to the working folder if it is inside."""
    return path.removeprefix(os.getcwd() + os.sep)


def place_text(recorder: Recorder, group: LaneGroup, frame: int | None = None) -> str:
    """Return the line of a group as ``file:line``, in a frame of its call stack or in the innermost one with source."""
    place = recorder.frames(group)[recorder.source_frame(group) if frame is None else frame].place
    if place is None:
        return "the end"
    return f"{shown_path(recorder.lines.name(place.file))}:{place.line}"


def site_text(recorder: Recorder, site: Any) -> str:
    """Return the line of an instruction as ``file:line``."""
    place = recorder.place(site)
    return f"{shown_path(recorder.lines.name(place.file))}:{place.line}"


def user_place_text(recorder: Recorder, group: LaneGroup) -> str:
    """Return the line of a group in the kernel's file, and that in the header that it has reached from there."""
    inner, place = place_text(recorder, group), recorder.user_place(group)
    if place is None or place == recorder.source_place(group):
        return inner
    return f"{shown_path(recorder.lines.name(place.file))}:{place.line} (in {os.path.basename(inner)})"


def thread_text(moment: Moment, lane: int) -> str:
    """Return a thread's coordinates, warp and lane."""
    warp, number = moment.warp_of(lane)
    return f"{threads_text(moment, [lane])}, warp {warp} lane {number}"


def grid_thread_text(moment: Moment, number: int) -> str:
    """Return the block and the thread that has a number in the whole grid."""
    block, thread = moment.indices_of(number)
    return f"block {index_text(block)}, thread {index_text(thread)}"


def threads_text(moment: Moment, lanes: Sequence[int]) -> str:
    """Return the block and the thread of a lane, or those of several lanes: ``block (1, 0, 0), threads 0-31``."""
    if len(lanes) == 1:
        return grid_thread_text(moment, moment.chunk.first * moment.chunk.threads + lanes[0])
    blocks: dict[int, list[int]] = {}
    for lane in lanes:
        blocks.setdefault(moment.block_of(lane), []).append(lane)
    return " and ".join(
        threads_text(moment, inside)
        if len(inside) == 1
        else f"block {index_text(moment.block_index(inside[0]))}, threads "
        + ranges(lane % moment.chunk.threads for lane in inside)
        for inside in blocks.values()
    )


def ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers as ranges: ``0-15, 17``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def mask_text(lanes: Iterable[int]) -> str:
    """Return lanes of a warp as a mask."""
    return f"{sum(1 << lane for lane in lanes):#010x}"


def waiting_text(group: LaneGroup) -> str:
    """Return the barrier that a group waits at, or "" if it does not wait."""
    if group.waiting is None:
        return ""
    number, expected = group.waiting
    if number >= 1 << 16:
        return "waits at the cluster's barrier"
    return f"waits at barrier {number}" + ("" if expected is None else f" for {expected} threads")


def number_text(number: Any, type_: Any = None) -> str:
    """Return one number as C++ writes it, or the name of an enumerator of its type."""
    if isinstance(number, np.bool_):
        return "true" if number else "false"
    if isinstance(number, np.floating):
        return float_text(number)
    names: dict[int, str] = dict(getattr(type_, "enumerators", ()))
    return names.get(int(number), str(int(number)))


def element_text(type_: Any, data: bytes, written: Sequence[bool], depth: int = 0) -> str:
    """Return the value that bytes of memory contain; its parts that have not been written are unknown."""
    kind = type(type_).__name__
    if kind in ("Array", "Structure"):
        if depth > _DEEPEST:
            return "{...}"
        parts, more = _parts(type_)
        texts = []
        for name, part, start in parts:
            span = slice(start, start + part.size)
            texts.append(name + element_text(part, data[span], written[span], depth + 1))
        return "{" + ", ".join([*texts, *more]) + "}"
    if not all(written):
        return UNKNOWN
    if kind in ("Pointer", "Unknown"):
        return f"{int.from_bytes(data, 'little'):#x}"
    return number_text(np.frombuffer(data, type_.dtype)[0], type_)


def value_text(session: Session, value: Value, position: int, letter: str = "") -> str:
    """Return the value for the lane at a position of the group in focus."""
    return value_text_in(session.scope.memory, value, position, letter)


def value_text_in(memory: Any, value: Value, position: int, letter: str = "") -> str:
    """Return a value for the lane at a position of a group whose memory this is, in the format of a letter."""
    return _value_text(memory, value, position, letter, depth=0)


def _value_text(memory: Any, value: Value, position: int, letter: str, *, depth: int) -> str:
    if not value.known[position]:
        return UNKNOWN
    kind = type(value.type).__name__
    if kind in ("Array", "Structure"):
        return _aggregate_text(memory, value, position, letter, depth)
    number = value.data[position]
    if letter:
        return formatted(number, letter)
    return f"{int(number):#x}" if kind == "Pointer" else number_text(number, value.type)


def _aggregate_text(memory: Any, value: Value, position: int, letter: str, depth: int) -> str:
    if value.members:
        members = value.members.items()
        return (
            "{" + ", ".join(f"{n} = {_value_text(memory, v, position, letter, depth=depth)}" for n, v in members) + "}"
        )
    if depth > _DEEPEST or value.addresses is None:
        return "{...}"
    parts, more = _parts(value.type)
    texts = []
    for name, part, offset in parts:
        loaded = memory.load(part, value.addresses + np.uint64(offset), value.known)
        texts.append(name + _value_text(memory, loaded, position, letter, depth=depth + 1))
    return "{" + ", ".join([*texts, *more]) + "}"


def _parts(type_: Any) -> tuple[list[tuple[str, Any, int]], list[str]]:
    """Return the names, types and offsets of the first parts of an array or a structure, and "..." for further ones."""
    if type(type_).__name__ == "Array":
        count = type_.count
        parts = [("", type_.element, number * type_.element.size) for number in range(min(count, _MOST_ELEMENTS))]
    else:
        count = len(type_.members)
        parts = [(f"{one.name} = ", one.type, one.offset) for one in type_.members[:_MOST_ELEMENTS]]
    return parts, ["..."] if count > _MOST_ELEMENTS else []


def table(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Return rows as an indented table; the first `left` columns are flush left, all others flush right."""
    return "\n".join(_INDENT + line for line in aligned(rows, left))
