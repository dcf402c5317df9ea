"""The debugger's full-screen interface, with Textual: source, variables of all lanes, warps, memory and commands."""

from __future__ import annotations

import asyncio
import contextlib
import io
import queue
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Footer, Input, RichLog, Static, TabbedContent, TabPane

from ...host.programs import Program
from ..attaching import attached
from ..session import Session, Stop
from ..views import tables
from ..waits import waits
from .command_line import CommandLine

_LINES = 30
# The panes, with the functions that make their texts.
_PANES: dict[str, Callable[[Session], str]] = {
    "Variables": tables.variables,
    "Lanes": lambda session: tables.lanes(session, []),
    "Warps": tables.warps,
    "Shared": tables.shared,
    "Barriers": waits,
    "Calls": tables.calls,
    "Registers": tables.registers,
}


class _Output(io.TextIOBase):
    """A text stream that passes each line on."""

    def __init__(self, show: Callable[[str], object]) -> None:
        super().__init__()
        self._show = show
        self._rest = ""

    def write(self, text: str) -> int:
        """Pass on the lines that are complete."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._show(line)
        return len(text)


class _CommandLine(Input):
    """A line for commands; Up and Down recall earlier ones."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "recall(-1)", show=False),
        Binding("down", "recall(1)", show=False),
    ]

    def __init__(self, placeholder: str, id: str) -> None:
        super().__init__(placeholder=placeholder, id=id)
        self._earlier: list[str] = []
        self._place = 0

    def keep(self, command: str) -> None:
        """Remember a command."""
        self._earlier.append(command)
        self._place = len(self._earlier)

    def action_recall(self, distance: int) -> None:
        """Show the command before or after the one that is shown."""
        self._place = min(max(self._place + distance, 0), len(self._earlier))
        self.value = (*self._earlier, "")[self._place]
        self.cursor_position = len(self.value)


class Screen(App[int]):
    """The interface. The program runs in another thread, which waits here while a launch is stopped."""

    TITLE = "cudart-py debug"
    CSS = """
    #source { width: 1fr; border: round $primary; }
    #state { width: 1fr; }
    #place { height: 3; padding: 0 1; background: $surface; }
    #log { height: 25%; min-height: 4; max-height: 12; border: round $primary; }
    VerticalScroll { overflow-x: auto; scrollbar-size: 1 1; }
    RichLog { scrollbar-size: 1 1; }
    VerticalScroll > Static { width: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "command('continue')", "continue", priority=True),
        Binding("f6", "command('reverse-continue')", "back", priority=True),
        Binding("f7", "command('reverse-next')", "back a line", priority=True),
        Binding("f8", "command('next')", "next", priority=True),
        Binding("f9", "command('step')", "step", priority=True),
        Binding("f10", "command('finish')", "finish", priority=True),
        Binding("ctrl+c", "interrupt", "stop", priority=True),
        Binding("ctrl+q", "leave", "quit", priority=True),
    ]

    def __init__(
        self, program: Program, breakpoints: Sequence[str], *, optimized: bool = False, stop_at_findings: bool = True
    ) -> None:
        super().__init__()
        self._program = program
        self._optimized = optimized
        self._command_line = CommandLine([])
        self._session = Session(self, stop_at_entry=not breakpoints, stop_at_findings=stop_at_findings)
        self._command_line.attach(self._session)
        self._command_line.running = True
        for text in breakpoints:
            self._session.breakpoints.read(text)
        self._resumed: queue.Queue[None] = queue.Queue()
        self._stopped = False
        self._changed = asyncio.Event()
        # The output of the program and of the commands.
        self.said: list[str] = []

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        yield Static("the program is starting", id="place")
        with Horizontal():
            with VerticalScroll(id="source"):
                yield Static(id="lines")
            with Vertical(id="state"), TabbedContent():
                for name in _PANES:
                    with TabPane(name, id=f"pane-{name.lower()}"), VerticalScroll():
                        yield Static(id=name.lower(), markup=False)
        yield RichLog(id="log", wrap=True, markup=False)
        yield _CommandLine(placeholder="a command, such as: break 12 if i > 3", id="command")
        yield Footer()

    def on_mount(self) -> None:
        """Start the program."""
        self.query_one("#command", Input).focus()
        threading.Thread(target=self._run, name="cudart_py debugged program", daemon=True).start()

    # --- the frontend of the session, in the program's thread

    def launched(self, session: Session) -> None:
        """Do nothing: a launch shows itself when it stops."""

    def finished(self, session: Session) -> None:
        """Do nothing, as above."""

    def stopped(self, session: Session, stop: Stop) -> None:
        """Show where the launch has stopped, and wait until it resumes."""
        self.call_from_thread(self._show_stop, stop)
        self._resumed.get()

    def _run(self) -> None:
        status = 1
        output = _Output(lambda line: self.call_from_thread(self._say, line))
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                with attached(self._session, optimized=self._optimized):
                    status = self._program.run()
            except Exception as failure:
                status = self._program.failed(failure)
        self.call_from_thread(self._end, status)

    # --- what is shown

    async def settled(self) -> None:
        """Wait until a launch has stopped, or the program has ended."""
        await self._changed.wait()
        self._changed.clear()

    def text_of(self, name: str) -> str:
        """Return the text of a part of the screen, by its name in lower case."""
        return str(self.query_one(f"#{name}", Static).content)

    def show_pane(self, name: str) -> None:
        """Show a pane."""
        self.query_one(TabbedContent).active = f"pane-{name.lower()}"

    def _say(self, text: str) -> None:
        self.said.append(text)
        self.query_one("#log", RichLog).write(text, expand=True)

    def _end(self, status: int) -> None:
        self._stopped = False
        self._say(f"The program has ended with status {status}.")
        self.query_one("#place", Static).update(f"The program has ended with status {status}.")
        self._changed.set()

    def _show_stop(self, stop: Stop) -> None:
        self._stopped = True
        reason = self._command_line.described(stop)
        if reason:
            self._say(reason)
        self._refresh_state()
        for text in self._command_line.commands_at(stop)[0]:
            if self._stopped:
                self.action_command(text)
        self._changed.set()

    def _refresh_state(self) -> None:
        """Show the state at the moment and thread in focus."""
        session = self._session
        self.query_one("#place", Static).update(Content(self._command_line.location()))
        lines = tables.source(session, lines=_LINES).split("\n")
        self.query_one("#lines", Static).update(_marked(lines))
        present = next((number for number, line in enumerate(lines) if line[1:2] == ">"), 0)
        source = self.query_one("#source", VerticalScroll)
        source.scroll_to(y=present - source.size.height // 2, animate=False)
        for name, text_of in _PANES.items():
            self.query_one(f"#{name.lower()}", Static).update(text_of(session))

    # --- commands

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Execute a command."""
        event.input.clear()
        if event.value.strip():
            self.query_one(_CommandLine).keep(event.value.strip())
            self.action_command(event.value.strip())

    def action_command(self, text: str) -> None:
        """Execute a command, and show its output and the state after it."""
        if text in ("quit", "q"):
            self.exit(0)
            return
        if not self._stopped and not text.startswith("b"):
            self._say("the program is running, and no launch is stopped; Ctrl-C stops the kernel that runs")
            return
        said, resumes = self._command_line.answer(text)
        self._say(f"> {text}")
        if said.rstrip():
            self._say(said.rstrip())
        if resumes:
            self._stopped = False
            self.query_one("#place", Static).update("running")
            self._resumed.put(None)
        elif self._stopped:
            self._refresh_state()

    def action_interrupt(self) -> None:
        """Stop the kernel that runs at its next instruction."""
        self._session.interrupt()

    def action_leave(self) -> None:
        """End the program and the debugger."""
        self.exit(0)


def _marked(lines: Sequence[str]) -> Content:
    """Return source lines in which the present one is highlighted."""
    parts = [(f"{line}\n", "reverse") if line[1:2] == ">" else f"{line}\n" for line in lines]
    return Content.assemble(*parts)
