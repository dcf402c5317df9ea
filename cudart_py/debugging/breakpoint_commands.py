"""The commands that set breakpoints and watchpoints, and those that change them afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from .expression_syntax import parse
from .inspecting import Inspection, number
from .views.texts import shown_path

if TYPE_CHECKING:
    from .breakpoints import Breakpoint
    from .session import Stop
    from .watches import Watch

_SILENT = "silent"
_KINDS = ("breakpoints", "watchpoints")


class BreakpointCommands(Inspection):
    """The commands for breakpoints and watchpoints, which share their numbers."""

    def __init__(self, output: TextIO | None = None) -> None:
        super().__init__(output)
        # The break- or watchpoint whose commands are being read, up to a line `end`.
        self._reading: Breakpoint | Watch | None = None

    def set_breakpoint(self, text: str) -> bool:
        """Stop at a line or at the start of a function, for all threads or for some."""
        self._made(text)
        return False

    def set_temporary_breakpoint(self, text: str) -> bool:
        """Stop there once."""
        self._made(text).is_temporary = True
        return False

    def watch(self, text: str) -> bool:
        """Stop when a value of the thread in focus changes, or only if a condition then holds."""
        expression, _, condition = text.partition(" if ")
        if not expression.strip():
            raise ValueError("an expression is missing")
        if condition:
            parse(condition)
        made = self.session.watch(expression.strip())
        made.condition = condition.strip()
        self._print(f"Watchpoint {made.number}: {made}")
        return False

    def delete(self, text: str) -> bool:
        """Remove breakpoints or watchpoints, or all of them without a number."""
        for one in self._named(text):
            self.session.remove(one.number)
        return False

    def disable(self, text: str) -> bool:
        """Disable the breakpoints or watchpoints with these numbers, or all of them if none are given."""
        return self._enabled(text, is_enabled=False)

    def enable(self, text: str) -> bool:
        """Enable disabled breakpoints or watchpoints again."""
        return self._enabled(text, is_enabled=True)

    def ignore(self, text: str) -> bool:
        """Ignore the next hits of a breakpoint or a watchpoint, given its number and the number of hits."""
        which, _, times = text.partition(" ")
        one = self.session.stop_point(number(which))
        one.ignored = number(times)
        self._print(f"The next {one.ignored} hits of {one.number} are ignored.")
        return False

    def condition(self, text: str) -> bool:
        """Change the condition of a breakpoint or a watchpoint; without an expression, remove it."""
        which, _, condition = text.partition(" ")
        one = self.session.stop_point(number(which))
        if condition.strip():
            parse(condition)
        one.condition = condition.strip()
        return False

    def attach_commands(self, text: str) -> bool:
        """Execute the following lines, up to a line `end`, at each stop at a breakpoint: the last one, or by number."""
        self._reading = self.session.stop_point(number(text) if text else self.session.breakpoints.last)
        self._reading.commands = []
        return False

    def _read_attached(self, line: str) -> None:
        """Add a line to the commands of a breakpoint, or end them."""
        assert self._reading is not None
        if line.strip() == "end":
            self._reading = None
        elif line.strip():
            self._reading.commands.append(line.strip())

    @staticmethod
    def commands_at(stop: Stop) -> tuple[list[str], bool]:
        """Return the commands of a stop's break- and watchpoints, and whether the stop itself is shown."""
        texts = [text for one in stop.points for text in one.commands]
        return [text for text in texts if text != _SILENT], _SILENT not in texts

    def _named(self, text: str) -> list[Breakpoint | Watch]:
        """Return the break- and watchpoints with the numbers in a text, or all of them if it has none."""
        words = [word for word in text.split() if not any(kind.startswith(word) for kind in _KINDS)]
        known = [*self.session.breakpoints, *self.session.watches]
        return [self.session.stop_point(number(word)) for word in words] if words else known

    def _enabled(self, text: str, *, is_enabled: bool) -> bool:
        for one in self._named(text):
            self.session.set_enabled(one, is_enabled=is_enabled)
        return False

    def _made(self, text: str) -> Breakpoint:
        made = self.session.breakpoints.read(text)
        self.session.locate()
        self._print(
            f"Breakpoint {made.number} at {shown_path(str(made))}"
            + ("" if made.sites else " (pending: no kernel that has been launched has code there)")
        )
        return made
