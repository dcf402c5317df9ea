"""The adapter: it answers a client's requests, and tells it when launches stop."""

from __future__ import annotations

import base64
import os
import queue
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..interfaces.command_line import CommandLine
from ..session import Session, Stop
from ..views import tables
from ..views.formats import LETTERS
from ..views.texts import index_text, mask_text
from .shown import Shown, ShownValues

if TYPE_CHECKING:
    from ...simulator.debugging.frames import Frame
    from ..stepping import Kind
    from .connection import Connection

_ABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "supportsStepBack": True,
    "supportsSteppingGranularity": True,
    "supportsExceptionInfoRequest": True,
    "supportsTerminateRequest": True,
    "supportsValueFormattingOptions": True,
    "supportsReadMemoryRequest": True,
    "exceptionBreakpointFilters": [
        {"filter": "findings", "label": "Mistakes that the sanitizer finds, and faults", "default": True}
    ],
}
_REASONS = {
    "exited": "step", "start": "step", "end": "step", "finding": "exception", "fault": "exception",
    "interrupt": "pause", "watch": "data breakpoint",
}  # fmt: skip  # rows of a table
# The commands of the terminal that are also understood in the client's console.
_COMMANDS = re.compile(
    r"(info|lanes|block|thread|warp|lane|cuda|list|backtrace|frame|up|down|ptype|whatis|watch|delete|until|help)(?=[\s/]|$)"
    r"|(print|p|x)(?=/)|print\s"
)
# A format after a comma, as other debuggers of C++ have it.
_SUFFIX = re.compile(rf"\s*,\s*([{''.join(LETTERS)}])$")
Handler = Callable[["Adapter", dict[str, Any]], "dict[str, Any] | None"]


class Adapter:
    """The frontend of a session for one client.

    The program and its launches run in one thread. Another thread reads requests and answers them; while a launch is
    stopped, the first thread waits for it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session = Session(self)
        # The launch request's arguments, once the client has configured the session.
        self.configured: queue.Queue[dict[str, Any]] = queue.Queue()
        self._launch: dict[str, Any] = {}
        self._resumed: queue.Queue[None] = queue.Queue()
        self._stop: Stop | None = None
        self._has_ended = self._is_left = False
        self._shown = ShownValues(self._session)
        self._texts: list[str] = []
        self._command_line = CommandLine([], None)
        self._command_line.attach(self._session)

    @property
    def session(self) -> Session:
        """The session."""
        return self._session

    # --- the frontend of the session

    def launched(self, session: Session) -> None:
        """Tell the client at which lines its breakpoints are now."""
        for one in session.breakpoints:
            if one.sites:
                self._connection.event("breakpoint", reason="changed", breakpoint=self._breakpoint(one))

    def finished(self, session: Session) -> None:
        """Do nothing: the client never requests launches."""

    def stopped(self, session: Session, stop: Stop) -> None:
        """Tell the client, and wait until it resumes the launch."""
        self._tell(stop)
        self._resumed.get()

    def ended(self, status: int) -> None:
        """Tell the client that the program has ended; it then disconnects."""
        self._has_ended = True
        self._connection.event("exited", exitCode=status)
        self._connection.event("terminated")

    # --- requests

    def serve(self) -> None:
        """Answer requests until the client has gone, which also ends the program."""
        while not self._is_left and (request := self._connection.read()) is not None:
            if request.get("type") == "request":
                self._answer(request)
        if not self._has_ended:
            # The program may be anywhere, even in a driver call that does not return.
            os._exit(0)

    def _answer(self, request: dict[str, Any]) -> None:
        command = request.get("command", "")
        handler = _HANDLERS.get(command)
        if handler is None:
            self._connection.respond(request, error=f"the request {command!r} is not supported")
            return
        try:
            body = handler(self, request.get("arguments") or {})
        except (ValueError, KeyError, IndexError) as error:
            self._connection.respond(request, error=str(error))
            return
        self._connection.respond(request, body)
        after = _AFTERWARDS.get(command)
        if after is not None:
            after(self, request.get("arguments") or {})

    def _initialize(self, _: dict[str, Any]) -> dict[str, Any]:
        return dict(_ABILITIES)

    def _initialized(self, _: dict[str, Any]) -> None:
        self._connection.event("initialized")

    def _start(self, arguments: dict[str, Any]) -> None:
        self._launch = arguments
        if arguments.get("stopOnEntry"):
            self._session.stop_at_next_entry()

    def _configured(self, _: dict[str, Any]) -> None:
        self.configured.put(self._launch)

    def _set_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        source = arguments["source"]
        path = source.get("path") or source.get("name", "")
        breakpoints = self._session.breakpoints
        breakpoints.clear(path)
        made = [
            breakpoints.add(path, one["line"], condition=one.get("condition", ""))
            for one in arguments.get("breakpoints", [])
        ]
        self._session.locate()
        return {"breakpoints": [self._breakpoint(one) for one in made]}

    def _set_function_breakpoints(self, arguments: dict[str, Any]) -> dict[str, Any]:
        breakpoints = self._session.breakpoints
        breakpoints.clear("")
        made = [breakpoints.add("", 0, one["name"], one.get("condition", "")) for one in arguments["breakpoints"]]
        self._session.locate()
        return {"breakpoints": [self._breakpoint(one) for one in made]}

    def _set_exception_breakpoints(self, arguments: dict[str, Any]) -> None:
        self._session.stop_at_findings = "findings" in arguments.get("filters", [])

    def _breakpoint(self, one: Any) -> Shown:
        shown: Shown = {"id": one.number, "verified": one.found is not None}
        if one.shown is None:
            shown["message"] = "pending: no kernel that has been launched has code there"
        else:
            shown["line"] = one.shown[1]
        return shown

    def _threads(self, _: dict[str, Any]) -> dict[str, Any]:
        if self._stop is None:
            return {"threads": [{"id": 1, "name": "kernels"}]}
        moment = self._session.moment
        threads = []
        for number, lane in enumerate(self._first_lanes()):
            lanes = moment.warp_lanes(lane)
            present = [moment.warp_of(one)[1] for one in lanes if moment.group_of(one) is not None]
            block, warp = index_text(moment.block_index(lane)), moment.warp_of(lane)[0]
            name = f"block {block} warp {warp}, lanes {mask_text(present)}"
            threads.append({"id": number + 1, "name": name})
        return {"threads": threads}

    def _stack_trace(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._stop is None:
            raise ValueError("no launch is stopped")
        lane = self._lane_of(int(arguments["threadId"]))
        group = None if lane is None else self._session.moment.group_of(lane)
        if lane is None or group is None:
            return {"stackFrames": [], "totalFrames": 0}
        frames = [self._frame(lane, number, one) for number, one in enumerate(self._session.recorder.frames(group))]
        first = int(arguments.get("startFrame") or 0)
        count = int(arguments.get("levels") or len(frames))
        return {"stackFrames": frames[first : first + count], "totalFrames": len(frames)}

    def _frame(self, lane: int, number: int, one: Frame) -> Shown:
        thread = index_text(self._session.moment.thread_index(lane))
        name = f"{one.function}, thread {thread}"
        frame: Shown = {"id": self._shown.frame(lane, number), "name": name, "line": 0, "column": 1}
        if one.place is not None:
            frame["source"], distance = self._source(one.place.file)
            frame["line"] = one.place.line + distance
        return frame

    def _source(self, file: int) -> tuple[Shown, int]:
        """Return a source for the client, and the distance of its line numbers from the compiler's."""
        lines = self._session.recorder.lines
        name = lines.name(file)
        path, distance = lines.shown_in(file)
        if path:
            return {"name": os.path.basename(path), "path": path}, distance
        text = "\n".join(lines.text(file))
        if text not in self._texts:
            self._texts.append(text)
        return {"name": os.path.basename(name), "sourceReference": self._texts.index(text) + 1}, 0

    def _source_text(self, arguments: dict[str, Any]) -> dict[str, Any]:
        reference = int(arguments.get("sourceReference") or arguments.get("source", {}).get("sourceReference") or 0)
        if not reference:
            return {"content": Path(arguments["source"]["path"]).read_text(encoding="utf-8", errors="replace")}
        return {"content": self._texts[reference - 1]}

    def _scopes(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"scopes": self._shown.scopes(int(arguments["frameId"]))}

    def _variables(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self._shown.letter = _letter(arguments)
        return {"variables": self._shown.parts(int(arguments["variablesReference"]))}

    def _evaluate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        text = str(arguments["expression"]).strip()
        if arguments.get("context") == "repl" and _COMMANDS.match(text):
            return {"result": self._executed(text), "variablesReference": 0}
        if self._stop is None:
            raise ValueError("no launch is stopped")
        suffix = _SUFFIX.search(text)
        self._shown.letter = _letter(arguments) if suffix is None else suffix[1]
        text = _SUFFIX.sub("", text)
        frame = arguments.get("frameId") or self._shown.frame(self._session.lane, self._session.level)
        scope, position = self._shown.scope(int(frame))
        value = self._session.recorder.evaluate(text, scope)
        shown = self._shown.value(text, value, scope, position)
        return {"result": shown.pop("value"), **shown}

    def _executed(self, text: str) -> str:
        """Execute a command of the terminal, and return its output; the client hears of a change of the thread."""
        stop, before = self._stop, self._session.focused[:2] if self._stop is not None else None
        said, resumes = self._command_line.answer(text)
        if resumes:
            self._stop = None
            self._resumed.put(None)
        elif stop is not None and self._session.focused[:2] != before:
            self._tell(Stop("step"))
        return said.rstrip("\n")

    def _read_memory(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._stop is None:
            raise ValueError("no launch is stopped")
        text, _, lane = str(arguments["memoryReference"]).partition("@")
        start, count = int(text, 0) + int(arguments.get("offset") or 0), int(arguments["count"])
        data, known = tables.memory(self._session, start, count, int(lane) if lane else None)
        readable = int(np.argmin(known)) if not known.all() else count
        content = base64.b64encode(data[:readable].tobytes()).decode()
        return {"address": f"{start:#x}", "data": content, "unreadableBytes": count - readable}

    def _exception(self, _: dict[str, Any]) -> dict[str, Any]:
        if self._stop is None or not self._stop.text:
            raise ValueError("the launch has not stopped at a mistake")
        return {"exceptionId": self._stop.reason, "description": self._stop.text, "breakMode": "always"}

    def _pause(self, _: dict[str, Any]) -> None:
        self._session.interrupt()

    def _leave(self, _: dict[str, Any]) -> None:
        self._is_left = True

    # --- going on

    def _go(self, stop: Callable[[], Stop | None]) -> None:
        """Resume after the answer: tell the client of a stop in the past, or resume the launch itself."""
        if self._stop is None:
            return
        self._stop = None
        found = stop()
        if found is None:
            self._resumed.put(None)
        else:
            self._tell(found)

    def _accept(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._stop is None:
            raise ValueError("no launch is stopped")
        lane = self._lane_of(int(arguments.get("threadId") or 0))
        if lane is not None and self._session.moment.group_of(lane) is not None:
            self._session.focus(lane)
        return {"allThreadsContinued": True}

    def _step(self, arguments: dict[str, Any], kind: Kind, *, back: bool = False) -> None:
        if arguments.get("granularity") == "instruction" and kind != "out":
            kind = "instruction"
        self._go(lambda: self._session.step_back(kind) if back else self._session.step(kind))

    def _tell(self, stop: Stop) -> None:
        """Tell the client that the launch has stopped, and why."""
        self._stop = stop
        self._shown = ShownValues(self._session)
        moment, lane = self._session.moment, self._session.lane
        body: dict[str, Any] = {
            "reason": _REASONS.get(stop.reason, stop.reason),
            "threadId": self._first_lanes().index(moment.warp_lanes(lane).start) + 1,
            "allThreadsStopped": True,
        }
        if stop.text:
            body |= {"description": stop.reason, "text": stop.text}
        if stop.breakpoint is not None:
            body["hitBreakpointIds"] = [stop.breakpoint.number]
        self._connection.event("stopped", **body)

    def _first_lanes(self) -> list[int]:
        """Return the first lane of each warp of the blocks that run together."""
        moment = self._session.moment
        found, lane = [], 0
        while lane < moment.chunk.lanes:
            found.append(lane)
            lane = moment.warp_lanes(lane).stop
        return found

    def _lane_of(self, thread: int) -> int | None:
        """Return the lane that stands for a warp: the one in focus, or the first one that has not exited."""
        first = self._first_lanes()
        if not 0 < thread <= len(first):
            return None
        moment = self._session.moment
        lanes = moment.warp_lanes(first[thread - 1])
        if self._session.lane in lanes:
            return self._session.lane
        return next((lane for lane in lanes if moment.group_of(lane) is not None), None)


def _letter(arguments: dict[str, Any]) -> str:
    """Return the format that a request asks for."""
    return "x" if (arguments.get("format") or {}).get("hex") else ""


_HANDLERS: dict[str, Handler] = {
    "initialize": Adapter._initialize,
    "launch": Adapter._start,
    "attach": Adapter._start,
    "configurationDone": lambda adapter, _: None,
    "setBreakpoints": Adapter._set_breakpoints,
    "setFunctionBreakpoints": Adapter._set_function_breakpoints,
    "setExceptionBreakpoints": Adapter._set_exception_breakpoints,
    "threads": Adapter._threads,
    "stackTrace": Adapter._stack_trace,
    "scopes": Adapter._scopes,
    "variables": Adapter._variables,
    "evaluate": Adapter._evaluate,
    "readMemory": Adapter._read_memory,
    "source": Adapter._source_text,
    "exceptionInfo": Adapter._exception,
    "pause": Adapter._pause,
    "terminate": lambda adapter, _: None,
    "disconnect": lambda adapter, _: None,
    **dict.fromkeys(("continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue"), Adapter._accept),
}
# The actions that follow the answer to a request.
_AFTERWARDS: dict[str, Callable[[Adapter, dict[str, Any]], None]] = {
    "initialize": Adapter._initialized,
    "configurationDone": Adapter._configured,
    "terminate": Adapter._leave,
    "disconnect": Adapter._leave,
    "continue": lambda adapter, _: adapter._go(adapter._session.resume),
    "reverseContinue": lambda adapter, _: adapter._go(adapter._session.resume_backwards),
    "next": lambda adapter, arguments: adapter._step(arguments, "over"),
    "stepIn": lambda adapter, arguments: adapter._step(arguments, "into"),
    "stepOut": lambda adapter, arguments: adapter._step(arguments, "out"),
    "stepBack": lambda adapter, arguments: adapter._step(arguments, "over", back=True),
}
