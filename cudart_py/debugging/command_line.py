"""The debugger's commands, read from standard input one per line, in a terminal or through a pipe."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from . import tables
from .texts import shown_path

if TYPE_CHECKING:
    from .breakpoints import Index
    from .session import Session, Stop
    from .stepping import Kind

PROMPT = "(cudart-py) "
Command = Callable[["CommandLine", str], bool]


class QuitDebugger(BaseException):
    """The command to end the debugger, and with it the program. No handler of the program catches it."""


class CommandLine:
    """The debugger's commands. Each returns whether the launch, or the program, resumes."""

    def __init__(self, commands: Sequence[str] | None = None, output: TextIO | None = None) -> None:
        # The commands of `cuda.debugger`; None means that they are read from standard input.
        self._commands = None if commands is None else list(commands)
        self._output = output
        self._session: Session | None = None
        self._last = ""
        # The steps that are left of a command such as ``next 3``.
        self._left: tuple[Kind, int] = ("into", 0)
        # Whether the program has been started; breakpoints can be set before that.
        self.running = False
        # Whether a person is asked for a command now.
        self.at_prompt = False

    # --- the frontend of a session

    def launched(self, session: Session) -> None:
        """Do nothing: a launch shows itself when it stops."""

    def finished(self, session: Session) -> None:
        """Do nothing, as above."""

    def stopped(self, session: Session, stop: Stop) -> None:
        """Show where the launch has stopped, and read commands until it resumes."""
        self._session = session
        if stop.reason == "step" and self._left[1]:
            following = self._step_on(stop)
            if following is None:
                return
            stop = following
        self._left = "into", 0
        self._show(stop)
        self.read_commands()

    def attach(self, session: Session) -> None:
        """Use a session for the commands that come before the first launch."""
        self._session = session

    def read_commands(self) -> None:
        """Read and execute commands until one resumes the launch or the program; the end of the input ends both.

        After the last command of `cuda.debugger`, launches run without further stops.
        """
        while True:
            line = self._read()
            if line is None and self._commands is None:
                raise QuitDebugger
            if line is None:
                self.session.ignore_stops()
                self.session.resume()
                return
            if self.execute(line):
                return

    def execute(self, line: str) -> bool:
        """Execute one command, and return whether the launch resumes; an error is printed."""
        text = line.strip()
        if not text:
            text = self._last
        if not text or text.startswith("#"):
            return False
        self._last = text if self._is_terminal else ""
        word, _, rest = text.partition(" ")
        try:
            return self._find(word)(self, rest.strip())
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

    @property
    def session(self) -> Session:
        """The session whose launch is shown."""
        assert self._session is not None
        return self._session

    @property
    def _is_terminal(self) -> bool:
        return self._commands is None and sys.stdin.isatty()

    def _read(self) -> str | None:
        """Return the next command, or None after the last one."""
        if self._is_terminal:
            return self._read_from_terminal()
        if self._commands == []:
            return None
        line = sys.stdin.readline() if self._commands is None else self._commands.pop(0)
        # As in a terminal, so that the output can be read on its own.
        self._print(PROMPT + line.rstrip("\n"))
        return line or None

    def _read_from_terminal(self) -> str | None:
        with contextlib.suppress(ImportError):  # some builds of Python lack it
            import readline  # noqa: F401  # its import lets input() edit lines
        self.at_prompt = True
        try:
            return input(PROMPT)
        except EOFError:
            return None
        finally:
            self.at_prompt = False

    def _print(self, text: str, end: str = "\n") -> None:
        print(text, end=end, file=self._output or sys.stdout, flush=True)

    def _find(self, word: str) -> Command:
        if word in COMMANDS:
            return COMMANDS[word]
        found = {COMMANDS[name] for name in COMMANDS if name.startswith(word)}
        if len(found) == 1:
            return found.pop()
        raise ValueError(f"the command {word!r} is {'ambiguous' if found else 'not known'}: help lists all commands")

    def _show(self, stop: Stop) -> None:
        reason = self.described(stop)
        self._print((f"{reason}\n" if reason else "") + self.location())

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
        made = self.session.breakpoints.read(text)
        self.session.locate()
        self._print(
            f"Breakpoint {made.number} at {shown_path(str(made))}"
            + ("" if made.sites else " (pending: no kernel that has been launched has code there)")
        )
        return False

    def delete(self, text: str) -> bool:
        """Remove a breakpoint, or all of them without a number."""
        if text:
            self.session.breakpoints.remove(_number(text))
        else:
            self.session.breakpoints.clear()
        self.session.locate()
        return False

    def run(self, _: str) -> bool:
        """Start the program."""
        if self.running:
            raise ValueError("the program is already running: use continue")
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
            raise ValueError("print needs an expression")
        self._print(tables.printed(self.session, text))
        return False

    def list_source(self, text: str) -> bool:
        """Show the lines around the present one, or around another one."""
        self._print(tables.source(self.session, _number(text) if text else None))
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
        raise QuitDebugger

    # --- shared by the commands

    def _resumed(self, stop: Stop | None) -> bool:
        """Return whether the launch resumes, which it does if the history has no stop to show."""
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
            raise ValueError("there is no caller" if level else "this is the innermost function")
        self.session.level = level
        self._print(tables.location(self.session))
        return False

    def _focus(self, text: str, lanes: list[tuple[int, Index]], kind: str) -> bool:
        """Put the first lane with an index in focus; missing coordinates of the index are 0."""
        requested = tuple(_number(part) for part in text.strip("() ").split(","))
        for lane, index in lanes:
            if index[: len(requested)] == requested and not any(index[len(requested) :]):
                self.session.focus(lane)
                self._print(tables.location(self.session))
                return False
        raise ValueError(f"there is no {kind} {text} here")


def _breakpoints(session: Session, _: list[str]) -> str:
    rows = [f"  {one.number}  {shown_path(str(one))}, hit {one.hits} times" for one in session.breakpoints]
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
    "break": CommandLine.set_breakpoint,
    "delete": CommandLine.delete,
    "run": CommandLine.run,
    "continue": CommandLine.resume,
    "step": CommandLine.step,
    "next": CommandLine.next,
    "finish": CommandLine.finish,
    "stepi": CommandLine.step_instruction,
    "reverse-continue": CommandLine.reverse_continue,
    "reverse-step": CommandLine.reverse_step,
    "reverse-next": CommandLine.reverse_next,
    "reverse-finish": CommandLine.reverse_finish,
    "reverse-stepi": CommandLine.reverse_instruction,
    "info": CommandLine.info,
    "lanes": CommandLine.lanes,
    "print": CommandLine.print_value,
    "list": CommandLine.list_source,
    "backtrace": CommandLine.backtrace,
    "up": CommandLine.up,
    "down": CommandLine.down,
    "thread": CommandLine.thread,
    "warp": CommandLine.warp,
    "lane": CommandLine.lane,
    "help": CommandLine.help,
    "quit": CommandLine.quit,
}
_USAGE = {
    "break": "[FILE:]LINE | FUNCTION [block X,Y,Z] [thread X,Y,Z] [kernel NAME] [if CONDITION]",
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
    "list": "[LINE]",
    "thread": "X[,Y[,Z]]",
    "warp": "NUMBER",
    "lane": "NUMBER",
}
# The short names of gdb.
_SHORT = {
    "b": "break", "d": "delete", "r": "run", "c": "continue", "s": "step", "n": "next", "si": "stepi", "i": "info",
    "p": "print", "l": "list", "bt": "backtrace", "where": "backtrace", "h": "help", "q": "quit",
    "rc": "reverse-continue", "rs": "reverse-step", "rn": "reverse-next", "rsi": "reverse-stepi",
}  # fmt: skip  # rows of a table
COMMANDS = {**_SHOWN, **{short: _SHOWN[name] for short, name in _SHORT.items()}}


def _number(text: str) -> int:
    if not text.strip().isdigit():
        raise ValueError(f"expected a number, got {text!r}")
    return int(text)


def _expressions(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@contextlib.contextmanager
def interrupting(session: Session, frontend: CommandLine) -> Iterator[None]:
    """Let Ctrl-C stop a kernel at its next instruction; a second one before that ends the program as usual.

    At the prompt, it does nothing. Only the main thread may handle signals, so in another thread Ctrl-C does what it
    did before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if frontend.at_prompt:
            return
        if session.is_running and not session.is_interrupted:
            session.interrupt()
        else:
            signal.default_int_handler(number, frame)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
