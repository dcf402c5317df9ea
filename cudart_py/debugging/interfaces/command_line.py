"""The debugger's commands, read from standard input one per line, in a terminal or through a pipe."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from ..commands import Commands, QuitDebugger

if TYPE_CHECKING:
    from ..session import Session, Stop
    from .terminal import Streams

PROMPT = "(cudart-py) "
# The first lines in a terminal.
_GREETING = """\
The debugger for kernels on the simulator. {program} has not started yet.
break FILE:LINE or break KERNEL chooses where to stop, run starts the program, and help lists all commands.
Without a breakpoint, kernels stop only at mistakes that the sanitizer finds, and where a launch fails."""


class CommandLine(Commands):
    """The commands, read from standard input or given to `cuda.debugger`."""

    def __init__(
        self, commands: Sequence[str] | None = None, output: TextIO | None = None, streams: Streams | None = None
    ) -> None:
        # The commands of `cuda.debugger`; None means that they are read from standard input.
        self._commands = None if commands is None else list(commands)
        super().__init__(output)
        # The streams for commands while a launch is stopped; None means those of the program.
        self._streams = streams
        # Whether a person is asked for a command now.
        self.at_prompt = False

    # --- the frontend of a session

    def launched(self, session: Session) -> None:
        """End this launch as well if the program has caught the exception that ended an earlier one."""
        if self.has_quit:
            raise QuitDebugger

    def finished(self, session: Session) -> None:
        """Do nothing: only a stop is shown."""

    def stopped(self, session: Session, stop: Stop) -> None:
        """Show where the launch has stopped, and read commands until it resumes."""
        self._session = session
        if stop.reason == "step" and self._left[1]:
            following = self._step_on(stop)
            if following is None:
                return
            stop = following
        self._left = "into", 0
        with contextlib.nullcontext() if self._streams is None else self._streams.restored():
            if not self._stopped_at(stop):
                self.read_commands()

    def ended(self, session: Session, status: int) -> None:
        """Show how the program has ended, and which breakpoints no kernel has reached."""
        for one in session.breakpoints:
            if one.found is None:
                self._print(
                    f"Breakpoint {one.number} at {one} was not set: no kernel that was launched has code there."
                )
        self._print(f"The program has ended with status {status}.")

    def greet(self, program: str) -> None:
        """In a terminal, say how to begin."""
        if self._is_terminal:
            self._print(_GREETING.format(program=program))

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

    @property
    def _prompt(self) -> str:
        return PROMPT if self._reading is None else ">"

    @property
    def repeats(self) -> bool:
        """Whether an empty line repeats a command: in a terminal."""
        return self._is_terminal

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
        self._print(self._prompt + line.rstrip("\n"))
        return line or None

    def _read_from_terminal(self) -> str | None:
        with contextlib.suppress(ImportError):  # some builds of Python lack it
            import readline  # noqa: F401  # its import lets input() edit lines
        self.at_prompt = True
        try:
            return input(self._prompt)
        except EOFError:
            return None
        finally:
            self.at_prompt = False
