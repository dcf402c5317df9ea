"""The commands that show what a stopped launch contains, and those that choose the thread and the frame."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from .views import overviews, tables
from .views.formats import Format, printed_letter, read_format
from .views.memory_dump import MemoryDump
from .views.texts import UNKNOWN, shown_path
from .waits import waits

if TYPE_CHECKING:
    from .breakpoints import Breakpoint, Index
    from .session import Session
    from .watches import Watch

_INSTRUCTIONS = re.compile(r"/(\d*)i\s*(.*)$")
_FORMATTED = re.compile(r"/(\S*)\s*(.*)$", re.DOTALL)
# The coordinates that `cuda` accepts, in the order in which they are chosen; the debugger shows only one of each of the
# first ones.
_SINGLE = ("kernel", "grid", "device", "sm")
_ORDER = (*_SINGLE, "block", "thread", "warp", "lane")
_COORDINATE = re.compile(rf"\s*({'|'.join(_ORDER)})(?:\s+\(?(\d+(?:\s*,\s*\d+){{0,2}})\)?)?(?=\s|$)")


class Inspection:
    """The commands that show a session's launch. Each returns whether the launch resumes: False."""

    def __init__(self, output: TextIO | None = None) -> None:
        # None stands for standard output.
        self._output = output
        self._session: Session | None = None
        # The expressions that each stop shows, with their formats, by number.
        self._displays: dict[int, str] = {}
        # The line that `list` has shown last, and the moment, thread and level at which it did.
        self._listed: tuple[object, int] = (None, 0)
        self._dump = MemoryDump()

    def attach(self, session: Session) -> None:
        """Use a session for the commands that come before the first launch."""
        self._session = session

    @property
    def session(self) -> Session:
        """The session whose launch is shown."""
        assert self._session is not None
        return self._session

    def _print(self, text: str, end: str = "\n") -> None:
        print(text, end=end, file=self._output or sys.stdout, flush=True)

    def location(self) -> str:
        """Return the thread in focus and its place."""
        return ("[in the past] " if self.session.is_past else "") + tables.location(self.session)

    # --- values

    def print_value(self, text: str) -> bool:
        """Show a value of the thread in focus, after a slash in a format: x d u o t z a c f."""
        letter, expression = with_letter(text)
        self._print(tables.printed(self.session, expression, letter))
        tables.keep(self.session, expression)
        return False

    def display(self, text: str) -> bool:
        """Show a value at each stop; without an expression, show these values now."""
        if text:
            number = max(self._displays, default=0) + 1
            if not _INSTRUCTIONS.match(text):
                tables.check(with_letter(text)[1])
            self._displays[number] = text
            if self.session.is_running:
                self._print(f"{number}: {text} = {self._value_of(text)}")
        elif self._displays:
            self._print(self._displayed())
        return False

    def undisplay(self, text: str) -> bool:
        """Stop showing a value at each stop, or all of them without a number."""
        if text and number(text) not in self._displays:
            raise ValueError(f"no value with the number {text} is displayed")
        self._displays = {key: one for key, one in self._displays.items() if text and key != number(text)}
        return False

    def _displayed(self) -> str:
        return "\n".join(f"{number}: {text} = {self._value_of(text)}" for number, text in self._displays.items())

    def _value_of(self, text: str) -> str:
        instructions = _INSTRUCTIONS.match(text)
        if instructions is not None:
            return "\n" + tables.instructions(self.session, int(instructions[1] or 1), instructions[2])
        letter, expression = with_letter(text)
        try:
            return tables.printed(self.session, expression, letter)
        except ValueError:
            return UNKNOWN

    def lanes(self, text: str) -> bool:
        """Show variables or expressions for each lane of the warp, after a slash in a format."""
        letter, expressions = with_letter(text, needed=False)
        self._print(tables.lanes(self.session, _expressions(expressions), letter))
        return False

    def examine(self, text: str) -> bool:
        """Show memory at an address, or after what was shown last: x/4xw shows four words in hexadecimal."""
        match = _FORMATTED.match(text)
        instructions = _INSTRUCTIONS.match(text)
        if instructions is not None:
            self._print(tables.instructions(self.session, int(instructions[1] or 1), instructions[2]))
            return False
        chosen = Format(None, "", "") if match is None else read_format(match[1])
        self._print(self._dump.show(self.session, text if match is None else match[2], chosen))
        return False

    def define(self, text: str) -> bool:
        """Show the type of an expression, or a type, with its members."""
        self._print(f"type = {tables.type_text(self.session, text, with_members=True)}")
        return False

    def what_is(self, text: str) -> bool:
        """Show the type of an expression without its members."""
        self._print(f"type = {tables.type_text(self.session, text, with_members=False)}")
        return False

    # --- tables

    def info(self, text: str) -> bool:
        """Show the state of the launch or of the thread in focus."""
        self._print(_chosen(_TABLES, "info", text)(self.session, _rest(text)))
        return False

    def list_source(self, text: str) -> bool:
        """Show the lines around the present one, a line or a function, and then the lines after these."""
        session = self.session
        key = session.moment, session.lane, session.level
        file = None
        if text and not text.isdigit():
            found = session.recorder.function(text)
            if not found:
                raise ValueError(f"the kernel has no line or function {text!r}")
            file, middle = session.recorder.place(found[0])
        elif text:
            middle = int(text)
        else:
            middle = self._listed[1] + tables.LISTED if self._listed[0] == key else tables.present_line(session)
        self._print(tables.source(session, middle, file=file))
        self._listed = key, middle
        return False

    def backtrace(self, text: str) -> bool:
        """Show the calls that the thread in focus is in, also those that are inlined; full adds their variables."""
        if text not in ("", "full", "-full"):
            raise ValueError(f"{text!r} is not understood: write backtrace or backtrace full")
        self._print((tables.calls_with_variables if text else tables.calls)(self.session))
        return False

    # --- the frame and the thread in focus

    def frame(self, text: str) -> bool:
        """Show a frame by its number in the backtrace, or the present one."""
        return self._to_level(number(text) if text else self.session.level)

    def up(self, text: str) -> bool:
        """Show the caller of this function, or the one so many calls further out."""
        return self._to_level(self.session.level + (number(text) if text else 1))

    def down(self, text: str) -> bool:
        """Show the function that this one has called, or the one so many calls further in."""
        return self._to_level(self.session.level - (number(text) if text else 1))

    def block(self, text: str) -> bool:
        """Put another block in focus, at its latest moment; the launch resumes from the present one."""
        if text:
            self._focus("block", text)
        self._print(self.location())
        return False

    def thread(self, text: str) -> bool:
        """Put another thread of the block in focus."""
        return self._put("thread", text)

    def warp(self, text: str) -> bool:
        """Put the first thread of another warp of the block in focus."""
        return self._put("warp", text)

    def lane(self, text: str) -> bool:
        """Put another lane of the warp in focus."""
        return self._put("lane", text)

    def cuda(self, text: str) -> bool:
        """Put another block and thread in focus, as in cuda-gdb: cuda block 3,0,0 thread 5."""
        chosen: list[tuple[str, str]] = []
        rest = text
        while match := _COORDINATE.match(rest):
            chosen.append((match[1], match[2] or ""))
            rest = rest[match.end() :]
        if rest.strip() or not chosen:
            raise ValueError(f"{rest.strip()!r} is not understood: write kernel, block, thread, warp or lane")
        before = self.session.focused
        try:
            for what, text in sorted(chosen, key=lambda one: _ORDER.index(one[0])):
                if what in _SINGLE:
                    _check_single(what, text)
                elif text:
                    self._focus(what, text)
        except ValueError:
            self.session.focused = before
            raise
        self._print(self.location())
        return False

    def _to_level(self, level: int) -> bool:
        if not 0 <= level < len(self.session.recorder.frames(self.session.group)):
            raise ValueError("there is no caller" if level > 0 else "this is the innermost function")
        self.session.level = level
        self._print(tables.location(self.session))
        return False

    def _put(self, what: str, text: str) -> bool:
        if text:
            self._focus(what, text)
        self._print(tables.location(self.session))
        return False

    def _focus(self, what: str, text: str) -> None:
        """Put a block, a thread, a warp or a lane in focus; raises ValueError if there is none."""
        if any(word in text for word in _ORDER):
            raise ValueError(f"{what} {text}: write cuda {what} {text} to choose several at once")
        session, chosen = self.session, index(text)
        if what == "block":
            session.focus_block((*chosen, *(0,) * (3 - len(chosen))))
            return
        for lane, one in _coordinates(session, what):
            if one[: len(chosen)] == chosen and not any(one[len(chosen) :]):
                session.focus(lane)
                return
        raise ValueError(f"there is no {what} {text} here")


def _coordinates(session: Session, what: str) -> list[tuple[int, Index]]:
    """Return the lanes that can be put in focus, with their threads, warps or lanes."""
    moment = session.moment
    block = moment.block_lanes(session.lane)
    if what == "thread":
        return [(lane, moment.thread_index(lane)) for lane in block]
    if what == "warp":
        return [(lane, (moment.warp_of(lane)[0],)) for lane in block if moment.group_of(lane) is not None]
    return [(lane, (moment.warp_of(lane)[1],)) for lane in moment.warp_lanes(session.lane)]


def _check_single(what: str, text: str) -> None:
    """Raise ValueError for another kernel than the one that runs; one kernel runs at a time, on one device."""
    expected = "1" if what == "grid" else "0"
    if text and text != expected:
        raise ValueError(f"there is no {what} {text}: one kernel runs at a time, which is {what} {expected}")


def number(text: str) -> int:
    """Return the number that a text contains; raises ValueError for another text."""
    if not text.strip():
        raise ValueError("a number is missing")
    if not text.strip().isdigit():
        raise ValueError(f"{text!r} is not a number")
    return int(text)


def index(text: str) -> tuple[int, ...]:
    """Return the coordinates that a text contains; raises ValueError for another text."""
    return tuple(number(part) for part in text.strip("() ").split(","))


def with_letter(text: str, *, needed: bool = True) -> tuple[str, str]:
    """Return the letter of the format after a slash, or "", and the expression; raises ValueError without the latter.

    The expression may be missing unless it is `needed`.
    """
    match = _FORMATTED.match(text)
    letter, expression = ("", text) if match is None else (printed_letter(match[1]), match[2])
    if needed and not expression:
        raise ValueError("an expression is missing")
    return letter, expression


def _expressions(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")] if text else []
    if "" in parts:
        raise ValueError("an expression is missing beside a comma")
    return parts


Table = Callable[["Session", str], str]


def _chosen(known: dict[str, Table], command: str, text: str) -> Table:
    """Return the table whose name begins with the first word of a text."""
    word = text.partition(" ")[0]
    found = [name for name in known if word and name.startswith(word)]
    if word == "b":  # as in gdb
        found = ["breakpoints"]
    if len(found) != 1:
        raise ValueError(f"{command} shows {', '.join(known)}")
    return known[found[0]]


def _rest(text: str) -> str:
    return text.partition(" ")[2].strip()


def _breakpoints(session: Session, _: str) -> str:
    rows: list[tuple[Breakpoint | Watch, str]] = []
    for made in session.breakpoints:
        state = f"hit {made.hits} time{'' if made.hits == 1 else 's'}" if made.found is not None else "pending"
        rows.append((made, f"{shown_path(str(made))}, {state}"))
    rows += [(watch, f"watchpoint, {watch}") for watch in session.watches]
    texts = []
    for one, text in rows:
        marks = ("" if one.is_enabled else ", disabled") + (f", ignores {one.ignored} more" if one.ignored else "")
        texts += [f"  {one.number}  {text}{marks}", *(f"         {command}" for command in one.commands)]
    return "\n".join(texts) or "no breakpoints"


_CUDA_TABLES: dict[str, Table] = {
    "kernels": lambda session, _: overviews.kernels(session),
    "blocks": lambda session, _: overviews.blocks(session),
    "threads": lambda session, _: overviews.threads(session),
    "warps": lambda session, _: tables.warps(session),
    "lanes": lambda session, _: tables.lanes(session, []),
}
_TABLES: dict[str, Table] = {
    "warps": lambda session, _: tables.warps(session),
    "locals": lambda session, _: tables.variables(session),
    "args": lambda session, _: tables.variables(session, only_parameters=True),
    "frame": lambda session, _: tables.location(session),
    "registers": lambda session, text: tables.registers(session, text.split()),
    "shared": lambda session, text: tables.shared(session, text.split()),
    "barriers": lambda session, _: waits(session),
    "breakpoints": _breakpoints,
    "threads": lambda session, _: overviews.threads(session),
    "cuda": lambda session, text: _chosen(_CUDA_TABLES, "info cuda", text)(session, _rest(text)),
}
