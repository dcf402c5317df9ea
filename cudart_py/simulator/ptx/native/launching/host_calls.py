"""Answer the calls that machine code makes to Python while it runs: those of the system, and what the checks need."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from ..layout import Context

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


@contextmanager
def answering(context: Any, answer: Callable[[int], None], fail: Callable[[BaseException], None]) -> Iterator[None]:
    """Let machine code that runs with a context call `answer` with a number; `fail` takes what that raises.

    Machine code can't pass an exception on.
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
    """Answer each number that is sent.

    A signal that has come while machine code ran is handled as soon as Python runs again. In a function that would be
    in front of its ``try``: ctypes would drop what the handler raises, and machine code would go on without an answer.
    A generator goes on inside of its ``try``.
    """
    while True:
        try:
            while True:
                answer((yield))
        except GeneratorExit:
            return
        except BaseException as error:
            fail(error)
