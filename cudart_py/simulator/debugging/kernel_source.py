"""The source of the kernel that a launch runs: its lines, its functions, its variables and its calls."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from .frames import Frame, frames_of, inlined_at, inlined_in
from .symbols.dwarf import DebugInformation
from .symbols.lines import Lines, Place, place_of
from .symbols.shared_variables import SharedVariable, shared_variables

if TYPE_CHECKING:
    from ..ptx.syntax.instructions import Function, Instruction
    from ..ptx.syntax.parser import Entry, Module
    from .moments import LaneGroup

# The modules whose debug information is kept between launches.
_MODULES = 16


class KernelSource:
    """The source of the kernel of a launch, whose state is `state`."""

    def __init__(self) -> None:
        self.state: Any = None

    @cached_property
    def lines(self) -> Lines:
        """The source lines of the kernel."""
        return lines_of(self.state.launch.entry)

    @cached_property
    def information(self) -> DebugInformation:
        """The compiler's descriptions of the variables; there are none without -G."""
        return information_of(self.state.launch.entry.module)

    @cached_property
    def shared_variables(self) -> dict[str, SharedVariable]:
        """The kernel's variables in shared memory, by name."""
        return shared_variables(self.lines, self.state.shared_size, self.information)

    def function(self, name: str) -> list[Instruction]:
        """Return the first instructions of the functions with a name, and of their inlined copies; see `Lines`."""
        return self.lines.function(name) + [
            body.instructions[body.labels[one.low]]
            for body in self.lines.bodies
            for one in inlined_in(self.information.inlined(body.name))
            if one.name == name
        ]

    def begin(self, file: str, line: int) -> list[Instruction]:
        """Return the instructions at which a line begins, or the next line that has code; see `Lines.begin`."""
        return self.lines.begin(file, line, self._instance)[1]

    def _instance(self, body: Function, index: int) -> object:
        """Return the call of an inlined function that an instruction belongs to, or None."""
        chain = list(inlined_at(self.information.inlined(body.name), body, index))
        return id(chain[-1]) if chain else None

    def place(self, site: Instruction) -> Place:
        """Return the line of an instruction."""
        return place_of(site)

    def frames(self, group: LaneGroup) -> list[Frame]:
        """Return the frames of a group's call stack, innermost first."""
        return frames_of(group, self.lines, self.information)

    def source_place(self, group: LaneGroup | None) -> Place | None:
        """Return the line of a group in the innermost function whose source is available, or None at its end."""
        return None if group is None else self.frames(group)[self.source_frame(group)].place

    def user_place(self, group: LaneGroup) -> Place | None:
        """Return the line of a group in the kernel's file, from which it may have reached another file.

        If no function of the call stack is in the kernel's file, the line is that of `source_place`.
        """
        places = [frame.place for frame in self.frames(group)]
        home = (place for place in places if place is not None and place.file == self.lines.entry.home)
        return next(home, None) or self.source_place(group)

    def source_frame(self, group: LaneGroup) -> int:
        """Return the index of the innermost frame whose source is available, or 0 if there is none."""
        places = [frame.place for frame in self.frames(group)]
        return next((i for i, place in enumerate(places) if place is not None and self.lines.text(place.file)), 0)


@lru_cache(maxsize=_MODULES)
def lines_of(entry: Entry) -> Lines:
    """Return the source lines of a kernel."""
    return Lines(entry)


@lru_cache(maxsize=_MODULES)
def information_of(module: Module) -> DebugInformation:
    """Return the debug information of a module."""
    return DebugInformation(module.text)
