"""The driver's error log: the latest messages about failed calls, and the callbacks that receive each message.

A failed call adds the driver's explanation, if there is one, and then a message with the status and the call's name.
All threads share the log. Each message has the number of the thread that made the call, as pthread_self returns it.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

# A GPU's driver keeps as many messages.
CAPACITY = 100


class Message(NamedTuple):
    """One message; `number` counts all messages of the process, and `time` is in seconds since the epoch."""

    number: int
    time: float
    thread: int
    text: str

    def __str__(self) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(self.time))
        return f"[{clock}.{int(self.time * 1000) % 1000:03}][{self.thread}][CUDA][E] {self.text}"


class _DriverLog:
    """The latest messages, and the functions that receive each new one, keyed by handle."""

    def __init__(self) -> None:
        self.messages: deque[Message] = deque(maxlen=CAPACITY)
        self.receivers: dict[int, Callable[[Message], None]] = {}
        self._numbers = itertools.count()

    @property
    def end(self) -> int:
        """The number that the next message will have."""
        try:
            return self.messages[-1].number + 1
        except IndexError:
            return 0

    def write(self, text: str) -> None:
        """Add a message of the calling thread."""
        message = Message(next(self._numbers), time.time(), threading.get_ident(), text)
        self.messages.append(message)
        for receive in list(self.receivers.values()):
            receive(message)


log = _DriverLog()
