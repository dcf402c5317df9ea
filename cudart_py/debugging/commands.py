"""The debugger's commands, by the names of gdb's."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from .breakpoint_commands import BreakpointCommands
from .inspecting import number
from .session import NotRunningError
from .views.texts import shown_path

if TYPE_CHECKING:
    from .session import Stop
    from .stepping import Kind

Command = Callable[["Commands", str], bool]
# A word, and what follows it: "x" and "/4xw tile" of "x/4xw tile".
_WORD = re.compile(r"([\w-]*)\s*(.*)$", re.DOTALL)


class QuitDebugger(BaseException):
    """The command to end the debugger, and with it the program. No handler of the program catches it."""


class Commands(BreakpointCommands):
    """The commands. Each returns whether the launch, or the program, resumes."""

    def __init__(self, output: TextIO | None = None) -> None:
        super().__init__(output)
        self._last = ""
        # The steps that are left of a command such as ``next 3``.
        self._left: tuple[Kind, int] = ("into", 0)
        # Whether the debugger has been told to end, which a program such as pytest may have caught.
        self.has_quit = False
        # Whether the program has been started; breakpoints can be set before that.
        self.running = False

    @property
    def repeats(self) -> bool:
        """Whether an empty line repeats a command."""
        return False

    def execute(self, line: str) -> bool:
        """Execute one command, and return whether the launch resumes; an error is printed."""
        if self._reading is not None:
            self._read_attached(line)
            return False
        text = line.strip()
        if not text:
            text = self._last
        if not text or text.startswith("#"):
            return False
        self._last = text if self.repeats else ""
        try:
            command, rest = self.read(text)
            if command is Commands.examine and self._last:
                self._last = "x"  # as in gdb, an empty line shows the memory that follows
            return command(self, rest)
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

    def read(self, text: str) -> tuple[Command, str]:
        """Return the command that a line begins with, and the rest; raises ValueError for an unknown one."""
        match = _WORD.match(text)
        assert match is not None
        return self._find(match[1] or text.split()[0]), match[2].strip()

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
            if command.__doc__ is not None:  # `python -OO` removes it
                self._print(f"    {command.__doc__}")
        self._print("Commands may be shortened, and in a terminal an empty line repeats the last one.")
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

    def run(self, _: str) -> bool:
        """Start the program."""
        if self.running:
            raise ValueError("the program is already running; type continue to resume it")
        self.running = True
        return True

    def resume(self, text: str) -> bool:
        """Continue to the next breakpoint or finding; with a number, to so many hits of this breakpoint from now."""
        if text:
            times = number(text)
            if not times:
                raise ValueError("continue: the number must be at least 1")
            self.session.ignore(times - 1)
        return self._resumed(self.session.resume())

    def step(self, text: str) -> bool:
        """Continue to the next line, even into functions."""
        return self._steps(text, "into")

    def next(self, text: str) -> bool:
        """Continue to the next line of this function."""
        return self._steps(text, "over")

    def finish(self, _: str) -> bool:
        """Continue until the function in the chosen frame has returned."""
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

    def set_value(self, text: str) -> bool:
        """Explain that values cannot be changed; settings of gdb that have no meaning here are accepted."""
        if text.split(None, 1)[:1] in (["pagination"], ["confirm"], ["height"], ["width"]):
            return False
        raise ValueError(
            "values cannot be changed: a launch computes what it would without the debugger, so that it can be run "
            "again. Change the source or the arguments of the launch"
        )

    def quit(self, _: str) -> bool:
        """End the program and the debugger."""
        self.has_quit = True
        raise QuitDebugger

    # --- what the commands share

    def _resumed(self, stop: Stop | None) -> bool:
        return stop is None or self._stopped_at(stop)

    def _stopped_at(self, stop: Stop) -> bool:
        """Show a stop, and execute the commands of its breakpoint; return whether one of them resumes the launch."""
        texts, is_shown = self.commands_at(stop)
        if is_shown:
            self._show(stop)
        return any(self.execute(text) for text in texts)

    def _steps(self, text: str, kind: Kind) -> bool:
        self._left = kind, number(text) if text else 1
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
        for left in range(number(text) if text else 1, 0, -1):
            stop = self.session.step_back(kind)
            if left == 1 or stop.reason == "start":
                self._show(stop)
                break
        return False


_SHOWN: dict[str, Command] = {
    "break": Commands.set_breakpoint,
    "tbreak": Commands.set_temporary_breakpoint,
    "until": Commands.until,
    "watch": Commands.watch,
    "delete": Commands.delete,
    "disable": Commands.disable,
    "enable": Commands.enable,
    "ignore": Commands.ignore,
    "condition": Commands.condition,
    "commands": Commands.attach_commands,
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
    "x": Commands.examine,
    "ptype": Commands.define,
    "whatis": Commands.what_is,
    "display": Commands.display,
    "undisplay": Commands.undisplay,
    "list": Commands.list_source,
    "backtrace": Commands.backtrace,
    "frame": Commands.frame,
    "up": Commands.up,
    "down": Commands.down,
    "block": Commands.block,
    "thread": Commands.thread,
    "warp": Commands.warp,
    "lane": Commands.lane,
    "cuda": Commands.cuda,
    "set": Commands.set_value,
    "help": Commands.help,
    "quit": Commands.quit,
}
_USAGE = {
    "break": "[FILE:]LINE | FUNCTION [block X,Y,Z] [thread X,Y,Z] [kernel NAME] [if CONDITION]",
    "tbreak": "as for break",
    "until": "block X,Y,Z | as for break",
    "watch": "EXPRESSION [if CONDITION]",
    "delete": "[NUMBER ...]",
    "disable": "[NUMBER ...]",
    "enable": "[NUMBER ...]",
    "ignore": "NUMBER TIMES",
    "condition": "NUMBER [CONDITION]",
    "commands": "[NUMBER]",
    "continue": "[TIMES]",
    "step": "[TIMES]",
    "next": "[TIMES]",
    "stepi": "[TIMES]",
    "reverse-step": "[TIMES]",
    "reverse-next": "[TIMES]",
    "reverse-stepi": "[TIMES]",
    "info": "warps | locals | args | frame | registers [NAMES] | shared [NAMES] | barriers | breakpoints | threads | "
    "cuda kernels | cuda blocks | cuda threads | cuda warps | cuda lanes",
    "lanes": "[/FORMAT] [EXPRESSION, ...]",
    "print": "[/FORMAT] EXPRESSION",
    "x": "[/COUNT FORMAT SIZE] [ADDRESS] | /COUNT i [$pc]",
    "backtrace": "[full]",
    "ptype": "EXPRESSION | TYPE",
    "whatis": "EXPRESSION | TYPE",
    "display": "[/FORMAT] [EXPRESSION]",
    "undisplay": "[NUMBER]",
    "list": "[LINE | FUNCTION]",
    "frame": "[NUMBER]",
    "up": "[NUMBER]",
    "down": "[NUMBER]",
    "block": "[X[,Y[,Z]]]",
    "thread": "[X[,Y[,Z]]]",
    "warp": "[NUMBER]",
    "lane": "[NUMBER]",
    "cuda": "[block X,Y,Z] [thread X,Y,Z] [warp NUMBER] [lane NUMBER]",
}
# The short names of gdb.
_SHORT = {
    "b": "break", "d": "delete", "r": "run", "c": "continue", "u": "until", "advance": "until", "s": "step",
    "n": "next", "si": "stepi", "i": "info", "p": "print", "l": "list", "bt": "backtrace", "where": "backtrace",
    "f": "frame", "h": "help", "q": "quit", "rc": "reverse-continue", "rs": "reverse-step", "rn": "reverse-next",
    "rsi": "reverse-stepi",
}  # fmt: skip  # rows of a table
COMMANDS = {**_SHOWN, **{short: _SHOWN[name] for short, name in _SHORT.items()}}
