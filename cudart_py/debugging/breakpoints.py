"""Breakpoints: where they are, and for which blocks and threads they stop a launch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .expression_syntax import parse

if TYPE_CHECKING:
    from ..simulator.debugging.moments import Moment
    from ..simulator.debugging.recorder import Recorder

Index = tuple[int, ...]

_AT_LINE = re.compile(r"(?:(.+):)?(\d+)$")
_SELECTION = re.compile(r"\s*(block|thread|kernel)\s+\(?([\w:<>]+(?:\s*,\s*\d+){0,2})\)?")


@dataclass
class Breakpoint:
    """A breakpoint at a line of a file, or at a function, for some blocks and threads.

    `file` is the end of a path, and "" stands for the file of the kernel that runs. `line` is 0 for a function. Only
    lanes for which the condition holds stop the launch, and only once if `is_temporary`. The next `ignored` hits do not
    stop it. Its `commands` are executed at each stop. `found` is the line that has code, once a kernel that contains it
    has been launched, and `shown` the same line in the Python program if that contains the source.
    `names_program` says that `file` is this program.
    """

    number: int
    file: str
    line: int
    function: str = ""
    condition: str = ""
    block: Index | None = None
    thread: Index | None = None
    kernel: str = ""
    is_temporary: bool = False
    hits: int = 0
    ignored: int = 0
    found: tuple[str, int] | None = None
    shown: tuple[str, int] | None = None
    names_program: bool = False
    is_enabled: bool = True
    commands: list[str] = field(default_factory=list, repr=False)
    sites: set[int] = field(default_factory=set, repr=False)

    def __str__(self) -> str:
        text = self.function or (f"{self.file}:{self.line}" if self.file else f"line {self.line}")
        place = self.shown if self.names_program else self.found
        if place is not None:
            text = f"{place[0]}:{place[1]}"
        for name, chosen in (("block", self.block), ("thread", self.thread)):
            text += f" {name} {','.join(map(str, chosen))}" if chosen is not None else ""
        text += f" kernel {self.kernel}" if self.kernel else ""
        return f"{text} if {self.condition}" if self.condition else text

    def locate(self, recorder: Recorder) -> None:
        """Find the breakpoint's instructions in the kernel of a launch."""
        lines = recorder.lines
        self.sites = set()
        if self.kernel and self.kernel not in (lines.entry.name, lines.called(lines.entry.name)):
            return
        if self.function:
            found = recorder.function(self.function)
        else:
            found = recorder.begin(self.file or lines.name(lines.entry.home), self.line)
        self.sites = {id(site) for site in found}
        if found:
            place = recorder.place(found[0])
            path, distance = lines.shown_in(place.file)
            self.found = lines.name(place.file), place.line
            self.shown = path or lines.name(place.file), place.line + distance
            self.names_program = lines.is_shown_in(self.file, place.file)

    def first_block(self, recorder: Recorder, first: int) -> int:
        """Return the first block, from `first` on, in which the breakpoint may stop the launch, or their number."""
        return recorder.first_block(first, self.block, self.condition)

    def lane(self, recorder: Recorder, moment: Moment, focus: int) -> int | None:
        """Return the lane at which the breakpoint stops the launch: the one in focus if possible, else the first.

        Raises ValueError for a condition that has no value here.
        """
        group = moment.running
        assert group is not None
        chosen = group.lanes >= 0
        if self.block is not None:
            chosen &= [_matches(moment.block_index(int(lane)), self.block) for lane in group.lanes]
        if self.thread is not None:
            chosen &= [_matches(moment.thread_index(int(lane)), self.thread) for lane in group.lanes]
        if self.condition and chosen.any():
            holds, known = recorder.holds(self.condition, recorder.scope(moment, group))
            if not known[chosen].any():
                raise ValueError(
                    "a part of it has no value in any thread here"
                    + (": a function's variables are assigned after its first line" if self.function else "")
                )
            chosen &= holds
        lanes = group.lanes[chosen]
        if not len(lanes):
            return None
        return focus if focus in lanes else int(lanes[0])


def _matches(index: Index, chosen: Index) -> bool:
    return index[: len(chosen)] == chosen and not any(index[len(chosen) :])


class Breakpoints:
    """All breakpoints, by number."""

    def __init__(self) -> None:
        self._all: dict[int, Breakpoint] = {}
        self._last = 0

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(list(self._all.values()))

    def add(
        self,
        file: str,
        line: int,
        function: str = "",
        condition: str = "",
        block: Index | None = None,
        thread: Index | None = None,
        kernel: str = "",
    ) -> Breakpoint:
        """Add a breakpoint, and return it."""
        number = self.next_number()
        made = self._all[number] = Breakpoint(number, file, line, function, condition, block, thread, kernel)
        return made

    def next_number(self) -> int:
        """Return a new number, for a breakpoint or a watchpoint."""
        self._last += 1
        return self._last

    @property
    def last(self) -> int:
        """The number that was given last."""
        return self._last

    def get(self, number: int) -> Breakpoint:
        """Return a breakpoint; raises ValueError if there is none with this number."""
        if number not in self._all:
            raise ValueError(f"there is no breakpoint or watchpoint {number}")
        return self._all[number]

    def remove(self, number: int) -> None:
        """Remove a breakpoint; raises ValueError if there is none with this number."""
        del self._all[self.get(number).number]

    def clear(self, file: str | None = None) -> None:
        """Remove all breakpoints, or those at lines of a file, or, if the file is "", those at functions."""
        keep = {number: one for number, one in self._all.items() if file is not None and _file_key(one) != file}
        self._all = keep

    def read(self, text: str) -> Breakpoint:
        """Add the breakpoint that a text describes: ``FILE:LINE block 1,0 thread 3 if CONDITION``, or a function."""
        place, _, condition = f" {text} ".partition(" if ") if " if " in f" {text} " else (text, "", "")
        # The arguments of a template may contain spaces.
        where, *rest = re.sub(r"\s*([<>,])\s*(?=[^<]*>)", r"\1", place).strip().split(None, 1) or [""]
        if not where:
            raise ValueError("name a line, such as kernel.cu:12, or a kernel")
        chosen: dict[str, str] = {}
        remaining = rest[0] if rest else ""
        while match := _SELECTION.match(remaining):
            chosen[match[1]] = match[2]
            remaining = remaining[match.end() :]
        if remaining.strip():
            raise ValueError(
                f"{remaining.strip()!r} is not understood: write block X,Y,Z, thread X,Y,Z or if CONDITION"
            )
        if " if " in f" {text} ":
            parse(condition)
        match_line = _AT_LINE.match(where)
        file, line, function = ("", 0, where) if match_line is None else (match_line[1] or "", int(match_line[2]), "")
        indices = {name: _index(name, chosen[name]) for name in ("block", "thread") if name in chosen}
        return self.add(
            file,
            line,
            function,
            condition.strip(),
            indices.get("block"),
            indices.get("thread"),
            chosen.get("kernel", ""),
        )


def _file_key(breakpoint_: Breakpoint) -> str:
    return "" if breakpoint_.function else breakpoint_.file


def _index(name: str, text: str) -> Index:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{name} needs one to three numbers, such as {name} 1,0,0, and not {text!r}") from None
