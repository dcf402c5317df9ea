"""The debugger's commands, by the names of gdb's."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from . import tables
from .session import NotRunningError
from .texts import UNKNOWN, shown_path

if TYPE_CHECKING:
    from .breakpoints import Breakpoint, Index
    from .session import Session, Stop
    from .stepping import Kind

Command = Callable[["Commands", str], bool]


class QuitDebugger(BaseException):
    """The command to end the debugger, and with it the program. No handler of the program catches it."""


class Commands:
    """The commands. Each returns whether the launch, or the program, resumes."""

    def __init__(self, output: TextIO | None = None) -> None:
        # None stands for standard output.
        self._output = output
        self._session: Session | None = None
        self._last = ""
        # The steps that are left of a command such as ``next 3``.
        self._left: tuple[Kind, int] = ("into", 0)
        # The expressions that each stop shows, by number.
        self._displays: dict[int, str] = {}
        # The line that `list` has shown last, and the moment, thread and level at which it did.
        self._listed: tuple[object, int] = (None, 0)
        # Whether the debugger has been told to end, which a program such as pytest may have caught.
        self.has_quit = False
        # Whether the program has been started; breakpoints can be set before that.
        self.running = False

    def attach(self, session: Session) -> None:
        """Use a session for the commands that come before the first launch."""
        self._session = session

    @property
    def session(self) -> Session:
        """The session whose launch is shown."""
        assert self._session is not None
        return self._session

    @property
    def repeats(self) -> bool:
        """Whether an empty line repeats a command."""
        return False

    def execute(self, line: str) -> bool:
        """Execute one command, and return whether the launch resumes; an error is printed."""
        text = line.strip()
        if not text:
            text = self._last
        if not text or text.startswith("#"):
            return False
        self._last = text if self.repeats else ""
        word, _, rest = text.partition(" ")
        try:
            return self._find(word)(self, rest.strip())
        except NotRunningError as error:
            self._print(str(error) if self.running else "the program has not started: type run")
            return False
        except ValueError as error:
            self._print(str(error))
            return False

    def answer(self, line: str) -> tuple[str, bool]:
        """Execute one command; return its output, and whether the launch resumes."""
        before, self._output = self._output, io.StringIO()
        try:
            resumes = self.execute(line)
            return self._output.getvalue(), resumes
        finally:
            self._output = before

    def _print(self, text: str, end: str = "\n") -> None:
        print(text, end=end, file=self._output or sys.stdout, flush=True)

    def _find(self, word: str) -> Command:
        if word in COMMANDS:
            return COMMANDS[word]
        found = {COMMANDS[name] for name in COMMANDS if name.startswith(word)}
        if len(found) == 1:
            return found.pop()
        raise ValueError(f"{'ambiguous' if found else 'unknown'} command {word!r}; type help for a list")

    def _show(self, stop: Stop) -> None:
        reason = self.described(stop)
        self._print((f"{reason}\n" if reason else "") + self.location())
        if self._displays:
            self._print(self._displayed())

    def _displayed(self) -> str:
        return "\n".join(f"{number}: {text} = {self._value_of(text)}" for number, text in self._displays.items())

    def _value_of(self, text: str) -> str:
        try:
            return tables.printed(self.session, text)
        except ValueError:
            return UNKNOWN

    def location(self) -> str:
        """Return the thread in focus and its place."""
        return ("[in the past] " if self.session.is_past else "") + tables.location(self.session)

    def described(self, stop: Stop) -> str:
        """Return why a launch has stopped; "" for a step."""
        found = []
        if stop.breakpoint is not None:
            found.append(f"Breakpoint {stop.breakpoint.number}, {shown_path(str(stop.breakpoint))}")
        reasons = {
            "exited": "The thread has exited.",
            "start": "The recorded history begins here.",
            "end": "The recorded history ends here. The launch itself continues from here.",
            "finding": "The sanitizer stops the launch:",
            "fault": "The launch fails:",
            "interrupt": "Interrupted.",
        }
        if stop.reason == "entry":
            lines = self.session.recorder.lines
            found.append(f"Kernel {lines.called(lines.entry.name)} begins.")
        found += [reasons.get(stop.reason, ""), stop.text]
        return "\n".join(text for text in found if text)

    # --- commands

    def help(self, _: str) -> bool:
        """List the commands."""
        for name, command in _SHOWN.items():
            self._print(f"{name} {_USAGE.get(name, '')}".rstrip())
            self._print(f"    {command.__doc__}")
        self._print("Commands may be shortened, and in a terminal an empty line repeats the last one.")
        return False

    def set_breakpoint(self, text: str) -> bool:
        """Stop at a line or at the start of a function, for all threads or for some."""
        self._made(text)
        return False

    def set_temporary_breakpoint(self, text: str) -> bool:
        """Stop there once."""
        self._made(text).is_temporary = True
        return False

    def until(self, text: str) -> bool:
        """Continue to a place, or to the first line of the kernel in a block."""
        session = self.session
        if text.startswith("block"):
            text = f"{session.recorder.lines.entry.name} {text}"
        made = session.breakpoints.read(text)
        made.is_temporary = True
        session.locate()
        if not made.sites or made.first_block(session.recorder, 0) == session.recorder.state.blocks:
            session.remove(made.number)
            raise ValueError(f"the launch has no place {shown_path(str(made))}")
        return self.resume("")

    def watch(self, text: str) -> bool:
        """Stop when a value of the thread in focus changes."""
        if not text:
            raise ValueError("an expression is missing")
        made = self.session.watch(text)
        self._print(f"Watchpoint {made.number}: {made}")
        return False

    def delete(self, text: str) -> bool:
        """Remove a breakpoint or a watchpoint, or all of them without a number."""
        if text:
            self.session.remove(_number(text))
        else:
            self.session.breakpoints.clear()
            self.session.watches = []
            self.session.locate()
        return False

    def display(self, text: str) -> bool:
        """Show a value at each stop; without an expression, show these values now."""
        if text:
            number = max(self._displays, default=0) + 1
            tables.check(text)
            self._displays[number] = text
            if self.session.is_running:
                self._print(f"{number}: {text} = {self._value_of(text)}")
        elif self._displays:
            self._print(self._displayed())
        return False

    def undisplay(self, text: str) -> bool:
        """Stop showing a value at each stop, or all of them without a number."""
        if text and _number(text) not in self._displays:
            raise ValueError(f"no value with the number {text} is displayed")
        self._displays = {number: one for number, one in self._displays.items() if text and number != _number(text)}
        return False

    def run(self, _: str) -> bool:
        """Start the program."""
        if self.running:
            raise ValueError("the program is already running; type continue to resume it")
        self.running = True
        return True

    def resume(self, _: str) -> bool:
        """Continue to the next breakpoint or finding."""
        return self._resumed(self.session.resume())

    def step(self, text: str) -> bool:
        """Continue to the next line, even into functions."""
        return self._steps(text, "into")

    def next(self, text: str) -> bool:
        """Continue to the next line of this function."""
        return self._steps(text, "over")

    def finish(self, _: str) -> bool:
        """Continue until this function has returned."""
        return self._resumed(self.session.step("out"))

    def step_instruction(self, text: str) -> bool:
        """Continue to the next instruction."""
        return self._steps(text, "instruction")

    def reverse_continue(self, _: str) -> bool:
        """Go back to the last breakpoint or finding."""
        self._show(self.session.resume_backwards())
        return False

    def reverse_step(self, text: str) -> bool:
        """Go back to the start of the line, or to the line before, even into functions."""
        return self._steps_back(text, "into")

    def reverse_next(self, text: str) -> bool:
        """Go back to the start of the line, or to the line before in this function."""
        return self._steps_back(text, "over")

    def reverse_finish(self, _: str) -> bool:
        """Go back to the call of this function."""
        return self._steps_back("", "out")

    def reverse_instruction(self, text: str) -> bool:
        """Go back to the instruction before."""
        return self._steps_back(text, "instruction")

    def info(self, text: str) -> bool:
        """Show what the launch, or the thread in focus, contains."""
        word, _, rest = text.partition(" ")
        found = [name for name in _TABLES if word and name.startswith(word)]
        if word == "b":  # as in gdb
            found = ["breakpoints"]
        if len(found) != 1:
            raise ValueError(f"info shows {', '.join(_TABLES)}")
        self._print(_TABLES[found[0]](self.session, rest.split()))
        return False

    def lanes(self, text: str) -> bool:
        """Show variables or expressions for each lane of the warp."""
        self._print(tables.lanes(self.session, _expressions(text)))
        return False

    def print_value(self, text: str) -> bool:
        """Show a value for the thread in focus."""
        if not text:
            raise ValueError("an expression is missing")
        self._print(tables.printed(self.session, text))
        return False

    def list_source(self, text: str) -> bool:
        """Show the lines around the present one, a line or a function, and then the lines after these."""
        session = self.session
        key = session.moment, session.lane, session.level
        file = None
        if text and not text.isdigit():
            found = session.recorder.lines.function(text)
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

    def backtrace(self, _: str) -> bool:
        """Show the calls that the thread in focus is in."""
        self._print(tables.calls(self.session))
        return False

    def up(self, _: str) -> bool:
        """Show the caller of this function."""
        return self._to_level(self.session.level + 1)

    def down(self, _: str) -> bool:
        """Show the function that this one has called."""
        return self._to_level(self.session.level - 1)

    def block(self, text: str) -> bool:
        """Put another block in focus, at its latest moment; the launch resumes from the present one."""
        if text:
            index = _index(text)
            self.session.focus_block((*index, *(0,) * (3 - len(index))))
        self._print(self.location())
        return False

    def thread(self, text: str) -> bool:
        """Put another thread of the block in focus."""
        session = self.session
        block = session.moment.block_lanes(session.lane)
        return self._focus(text, [(lane, session.moment.thread_index(lane)) for lane in block], "thread")

    def warp(self, text: str) -> bool:
        """Put the first thread of another warp of the block in focus."""
        session, moment = self.session, self.session.moment
        block = moment.block_lanes(session.lane)
        present = [lane for lane in block if moment.group_of(lane) is not None]
        return self._focus(text, [(lane, (moment.warp_of(lane)[0],)) for lane in present], "warp")

    def lane(self, text: str) -> bool:
        """Put another lane of the warp in focus."""
        session, moment = self.session, self.session.moment
        return self._focus(
            text, [(lane, (moment.warp_of(lane)[1],)) for lane in moment.warp_lanes(session.lane)], "lane"
        )

    def quit(self, _: str) -> bool:
        """End the program and the debugger."""
        self.has_quit = True
        raise QuitDebugger

    # --- what the commands share

    def _made(self, text: str) -> Breakpoint:
        made = self.session.breakpoints.read(text)
        self.session.locate()
        self._print(
            f"Breakpoint {made.number} at {shown_path(str(made))}"
            + ("" if made.sites else " (pending: no kernel that has been launched has code there)")
        )
        return made

    def _resumed(self, stop: Stop | None) -> bool:
        if stop is None:
            return True
        self._show(stop)
        return False

    def _steps(self, text: str, kind: Kind) -> bool:
        self._left = kind, _number(text) if text else 1
        return self._resumed(self._step_on(None))

    def _step_on(self, stop: Stop | None) -> Stop | None:
        """Make the steps that are left of a command, unless one of them stops for another reason.

        Returns None if the launch itself must resume first.
        """
        kind, times = self._left
        while times and (stop is None or stop.reason == "step"):
            times -= 1
            self._left = kind, times
            stop = self.session.step(kind)
            if stop is None:
                return None
        self._left = kind, 0
        return stop

    def _steps_back(self, text: str, kind: Kind) -> bool:
        for left in range(_number(text) if text else 1, 0, -1):
            stop = self.session.step_back(kind)
            if left == 1 or stop.reason == "start":
                self._show(stop)
                break
        return False

    def _to_level(self, level: int) -> bool:
        if not 0 <= level < len(self.session.group.levels):
            raise ValueError("there is no caller" if level > 0 else "this is the innermost function")
        self.session.level = level
        self._print(tables.location(self.session))
        return False

    def _focus(self, text: str, known: list[tuple[int, Index]], what: str) -> bool:
        if not text:
            self._print(tables.location(self.session))
            return False
        index = _index(text)
        for lane, one in known:
            if one[: len(index)] == index and not any(one[len(index) :]):
                self.session.focus(lane)
                self._print(tables.location(self.session))
                return False
        raise ValueError(f"there is no {what} {text} here")


def _breakpoints(session: Session, _: list[str]) -> str:
    rows = []
    for one in session.breakpoints:
        state = f"hit {one.hits} time{'' if one.hits == 1 else 's'}" if one.found is not None else "pending"
        rows.append(f"  {one.number}  {shown_path(str(one))}, {state}")
    rows += [f"  {one.number}  watchpoint, {one}" for one in session.watches]
    return "\n".join(rows) or "no breakpoints"


_TABLES: dict[str, Callable[[Session, list[str]], str]] = {
    "warps": lambda session, _: tables.warps(session),
    "locals": lambda session, _: tables.variables(session),
    "registers": tables.registers,
    "shared": tables.shared,
    "barriers": lambda session, _: tables.barriers(session),
    "breakpoints": _breakpoints,
}
_SHOWN: dict[str, Command] = {
    "break": Commands.set_breakpoint,
    "tbreak": Commands.set_temporary_breakpoint,
    "until": Commands.until,
    "watch": Commands.watch,
    "delete": Commands.delete,
    "run": Commands.run,
    "continue": Commands.resume,
    "step": Commands.step,
    "next": Commands.next,
    "finish": Commands.finish,
    "stepi": Commands.step_instruction,
    "reverse-continue": Commands.reverse_continue,
    "reverse-step": Commands.reverse_step,
    "reverse-next": Commands.reverse_next,
    "reverse-finish": Commands.reverse_finish,
    "reverse-stepi": Commands.reverse_instruction,
    "info": Commands.info,
    "lanes": Commands.lanes,
    "print": Commands.print_value,
    "display": Commands.display,
    "undisplay": Commands.undisplay,
    "list": Commands.list_source,
    "backtrace": Commands.backtrace,
    "up": Commands.up,
    "down": Commands.down,
    "block": Commands.block,
    "thread": Commands.thread,
    "warp": Commands.warp,
    "lane": Commands.lane,
    "help": Commands.help,
    "quit": Commands.quit,
}
_USAGE = {
    "break": "[FILE:]LINE | FUNCTION [block X,Y,Z] [thread X,Y,Z] [kernel NAME] [if CONDITION]",
    "tbreak": "as for break",
    "until": "block X,Y,Z | as for break",
    "watch": "EXPRESSION",
    "delete": "[NUMBER]",
    "step": "[TIMES]",
    "next": "[TIMES]",
    "stepi": "[TIMES]",
    "reverse-step": "[TIMES]",
    "reverse-next": "[TIMES]",
    "reverse-stepi": "[TIMES]",
    "info": "warps | locals | registers [NAMES] | shared [NAMES] | barriers | breakpoints",
    "lanes": "[EXPRESSION, ...]",
    "print": "EXPRESSION",
    "display": "[EXPRESSION]",
    "undisplay": "[NUMBER]",
    "list": "[LINE | FUNCTION]",
    "block": "[X[,Y[,Z]]]",
    "thread": "[X[,Y[,Z]]]",
    "warp": "[NUMBER]",
    "lane": "[NUMBER]",
}
# The short names of gdb.
_SHORT = {
    "b": "break", "d": "delete", "r": "run", "c": "continue", "u": "until", "advance": "until", "s": "step",
    "n": "next", "si": "stepi", "i": "info", "p": "print", "l": "list", "bt": "backtrace", "where": "backtrace",
    "h": "help", "q": "quit", "rc": "reverse-continue", "rs": "reverse-step", "rn": "reverse-next",
    "rsi": "reverse-stepi",
}  # fmt: skip  # rows of a table
COMMANDS = {**_SHOWN, **{short: _SHOWN[name] for short, name in _SHORT.items()}}


def _number(text: str) -> int:
    if not text.strip():
        raise ValueError("a number is missing")
    if not text.strip().isdigit():
        raise ValueError(f"{text!r} is not a number")
    return int(text)


def _index(text: str) -> tuple[int, ...]:
    return tuple(_number(part) for part in text.strip("() ").split(","))


def _expressions(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")] if text else []
    if "" in parts:
        raise ValueError("an expression is missing beside a comma")
    return parts
