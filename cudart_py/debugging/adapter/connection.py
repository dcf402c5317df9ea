"""Messages of the Debug Adapter Protocol: JSON with a header that gives its length."""

from __future__ import annotations

import io
import json
import threading
from typing import Any, BinaryIO

_LENGTH = b"content-length"


class Connection:
    """A connection to a client; several threads may send messages."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()
        self._sent = 0

    def read(self) -> dict[str, Any] | None:
        """Return the next request, or None if the client has disconnected."""
        size = 0
        while (line := self._source.readline()).strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == _LENGTH:
                size = int(value)
        text = self._source.read(size) if line and size else b""
        if len(text) < max(size, 1):
            return None
        message: dict[str, Any] = json.loads(text)
        return message

    def respond(self, request: dict[str, Any], body: dict[str, Any] | None = None, error: str = "") -> None:
        """Answer a request with a body, or with an error."""
        message = {"request_seq": request.get("seq", 0), "success": not error, "command": request.get("command", "")}
        if error:
            message |= {"message": error, "body": {"error": {"id": 1, "format": error, "showUser": True}}}
        elif body is not None:
            message["body"] = body
        self._send("response", message)

    def event(self, event: str, **body: Any) -> None:
        """Send an event."""
        self._send("event", {"event": event, "body": body})

    def _send(self, kind: str, message: dict[str, Any]) -> None:
        with self._lock:
            self._sent += 1
            text = json.dumps({"seq": self._sent, "type": kind, **message}).encode()
            try:
                self._target.write(b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
                self._target.flush()
            except (OSError, ValueError):
                # The client has gone; the program goes on.
                return


class OutputEvents(io.TextIOBase):
    """A text stream that sends the written text as output events; `category` is stdout or stderr."""

    def __init__(self, connection: Connection, category: str) -> None:
        super().__init__()
        self._connection = connection
        self._category = category

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Send a text."""
        if text:
            self._connection.event("output", category=self._category, output=text)
        return len(text)
