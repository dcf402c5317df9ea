"""Answer the calls that machine code makes to Python while it runs: system calls, and requests of the checks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class HostCalls:
    """A function that machine code calls with a number, at `address`; launches that run one after another share it."""

    def __init__(self) -> None:
        self._answer: Callable[[int], None]
        self._fail: Callable[[BaseException], None]
        answers = self._answers()
        next(answers)
        self._function = _PROTOTYPE(answers.send)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    @contextmanager
    def answered(self, answer: Callable[[int], None], fail: Callable[[BaseException], None]) -> Iterator[None]:
        """Let `answer` answer the calls in this context.

        An exception that it raises is passed to `fail`, because machine code can't propagate exceptions.
        """
        self._answer, self._fail = answer, fail
        try:
            yield
        finally:
            # They refer to the launch.
            del self._answer, self._fail

    def _answers(self) -> Generator[None, int]:
        """Answer each number that is sent to this generator.

        Python handles a signal that arrived while machine code ran as soon as it executes bytecode again. In a plain
        function, that would be before its ``try``: ctypes would drop the exception that the handler raises, and machine
        code would continue without an answer. A generator resumes inside its ``try``.
        """
        while True:
            try:
                while True:
                    number = yield
                    self._answer(number)
            except GeneratorExit:
                return
            except BaseException as error:
                self._fail(error)
