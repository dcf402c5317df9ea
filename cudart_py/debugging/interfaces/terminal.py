"""The terminal: the streams that the debugger started with, and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..session import Session
    from .command_line import CommandLine


class Streams:
    """Standard input and output as they were at the start; a program such as pytest may have redirected them since."""

    def __init__(self) -> None:
        self._streams = sys.stdin, sys.stdout
        self._descriptors = [_duplicate(number) for number in (0, 1)]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Use the streams inside the block, and then those of the program again."""
        of_program = sys.stdin, sys.stdout
        with contextlib.suppress(ValueError):  # it may be closed
            sys.stdout.flush()
        descriptors = [_duplicate(number) for number in (0, 1)]
        _install(self._descriptors)
        sys.stdin, sys.stdout = self._streams
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stdin, sys.stdout = of_program
            _install(descriptors)
            for descriptor in descriptors:
                if descriptor is not None:
                    os.close(descriptor)


def _duplicate(number: int) -> int | None:
    """Return a copy of a file descriptor, or None if it is closed."""
    try:
        return os.dup(number)
    except OSError:
        return None


def _install(descriptors: list[int | None]) -> None:
    for number, descriptor in enumerate(descriptors):
        if descriptor is not None:
            os.dup2(descriptor, number)


@contextlib.contextmanager
def interrupting(session: Session, frontend: CommandLine) -> Iterator[None]:
    """Let Ctrl-C stop a kernel at its next instruction; a second one before that ends the program as usual.

    At the prompt, it does nothing. Only the main thread may handle signals, so in another thread, the effect of Ctrl-C
    does not change.
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
