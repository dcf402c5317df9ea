"""Answer the calls that machine code makes to Python while it runs: system calls, and requests of the checks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from ..layout import Context

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


@contextmanager
def answering(context: Any, answer: Callable[[int], None], fail: Callable[[BaseException], None]) -> Iterator[None]:
    """Let machine code that runs with `context` call `answer` with a number.

    An exception that `answer` raises is passed to `fail`, because machine code can't propagate exceptions.
    """
    answers = _answers(answer, fail)
    next(answers)
    function = _PROTOTYPE(answers.send)
    context[Context.PYTHON] = ctypes.cast(function, ctypes.c_void_p).value
    try:
        yield
    finally:
        answers.close()


def _answers(answer: Callable[[int], None], fail: Callable[[BaseException], None]) -> Generator[None, int]:
    """Answer each number that is sent to this generator.

    Python handles a signal that arrived while machine code ran as soon as it executes bytecode again. In a plain
    function, that would be before its ``try``: ctypes would drop the exception that the handler raises, and machine
    code would continue without an answer. A generator resumes inside its ``try``.
    """
    while True:
        try:
            while True:
                answer((yield))
        except GeneratorExit:
            return
        except BaseException as error:
            fail(error)
