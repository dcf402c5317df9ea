"""The frames of a call stack: functions that were called, and functions that the compiler inlined into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .lines import Place, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..ptx.syntax.instructions import Function
    from .dwarf import DebugInformation, Inlined
    from .lines import Lines
    from .moments import LaneGroup


class Frame(NamedTuple):
    """A function of the call stack of a group, and its place: that of the call of the frame inside it.

    `level` is the level of the group's call stack that contains its registers. `inlined` is None for a function that
    was called. `place` is None at the end of a function.
    """

    level: int
    inlined: Inlined | None
    function: str
    place: Place | None


def frames_of(group: LaneGroup, lines: Lines, information: DebugInformation) -> list[Frame]:
    """Return the frames of a group, innermost first."""
    found = []
    for number, level in enumerate(group.levels):
        place = None if level.site is None else place_of(level.site)
        index = None if level.site is None else lines.index(level.site)
        chain = (
            [] if index is None else list(inlined_at(information.inlined(level.code.name), level.code.function, index))
        )
        for inlined in reversed(chain):
            found.append(Frame(number, inlined, inlined.name, place))
            place = inlined.call
        found.append(Frame(number, None, lines.called(level.code.name), place))
    return found


def is_between(body: Function, span: Any, index: int) -> bool:
    """Return whether an instruction is between the labels `low` and `high` of a span; None is an open end."""
    low, high = (None if name is None else body.labels.get(name) for name in (span.low, span.high))
    return (low is None or low <= index) and (high is None or index < high)


def inlined_at(inlined: tuple[Inlined, ...], body: Function, index: int) -> Iterator[Inlined]:
    """Yield the inlined functions that contain an instruction, outermost first."""
    for one in inlined:
        if is_between(body, one, index):
            yield one
            yield from inlined_at(one.inlined, body, index)
            return


def inlined_in(inlined: tuple[Inlined, ...]) -> Iterator[Inlined]:
    """Yield inlined functions, and those inlined into them."""
    for one in inlined:
        yield one
        yield from inlined_in(one.inlined)
