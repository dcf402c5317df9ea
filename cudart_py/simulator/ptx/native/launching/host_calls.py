"""Answer the calls that machine code makes to Python while it runs: system calls, and requests of the checks."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .launch import NativeLaunch

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class HostCalls:
    """A function that machine code calls with a number, at `address`; launches that run one after another share it.

    `launch` is the launch that answers the calls. Its `fail` gets the exceptions of its `answer`, because machine code
    can't propagate exceptions.
    """

    def __init__(self) -> None:
        self.launch: NativeLaunch | None = None
        answers = self._answers()
        next(answers)
        self._function = _PROTOTYPE(answers.send)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

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
                    assert self.launch is not None
                    self.launch.answer(number)
            except GeneratorExit:
                return
            except BaseException as error:
                assert self.launch is not None
                self.launch.fail(error)
