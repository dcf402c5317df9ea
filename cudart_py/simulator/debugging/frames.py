"""The frames of a call stack: functions that were called, and functions that the compiler inlined into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .symbols.dwarf import Inlined
from .symbols.lines import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..ptx.syntax.instructions import Function, Instruction
    from .moments import LaneGroup
    from .symbols.dwarf import DebugInformation
    from .symbols.lines import Lines


class Frame(NamedTuple):
    """A function in the call stack of a group, and its place: in outer frames, that of the call of the next frame.

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
        site = level.site
        place = None if site is None else Place(site.file, site.line)
        for inlined in () if site is None else _inlined_around(site, level.code.function, lines, information):
            found.append(Frame(number, inlined, inlined.name, place))
            place = inlined.call
        found.append(Frame(number, None, lines.called(level.code.name), place))
    return found


def _inlined_around(
    site: Instruction, body: Function, lines: Lines, information: DebugInformation
) -> Iterable[Inlined]:
    """Return the inlined functions that contain an instruction, innermost first; without -G they have no variables."""
    described = information.inlined(body.name)
    if described or not site.calls:
        return reversed(list(inlined_at(described, body, lines.index(site))))
    names = [lines.called(information.text_at(call.function)) for call in site.calls]
    return [
        Inlined(name, "", "", Place(call.file, call.line), (), ()) for name, call in zip(names, site.calls, strict=True)
    ]


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
