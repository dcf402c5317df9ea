"""Interrupts that tests plant where Python may raise one: at the start of a Python function, and after a C call."""

import functools
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import cudart_py as cuda


class Interrupt(KeyboardInterrupt):
    """An interrupt planted by a test."""


def interrupted(
    function: Callable[[], object],
    within: set[CodeType],
    step: int,
    *,
    behind_driver: bool = True,
    anywhere: bool = False,
) -> bool:
    """Run a function twice, and raise an Interrupt at the `step`-th call that functions `within` make the second time.

    Calls made by the functions that they call count too, but calls inside a simulated driver do not. Without
    `behind_driver`, no interrupt comes after a call of that driver, where the result of the call would be lost. With
    `anywhere`, the interrupt comes at the `step`-th bytecode instruction instead.

    Return whether the interrupt was raised: False means that there were fewer than `step` calls or instructions.
    """
    left = step

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        caller = frame.f_back if event in ("call", "return") else frame
        # Python raises no interrupt before a C function, where a lock may be about to be released, nor when a Python
        # function returns. A function of a simulated driver counts as a C function.
        if event == "c_call" or (event == "return" and not (behind_driver and _room(frame) == "simulator")):
            return
        if caller is None or not _counts(caller, within):
            return
        left -= 1
        if left == 0:
            sys.setprofile(None)
            raise Interrupt

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if not _counts(frame, within):
            return None
        frame.f_trace_opcodes = True
        left -= event in ("opcode", "call")
        if left == 0:
            sys.settrace(None)
            raise Interrupt
        return trace

    function()  # the first run makes calls that later ones do not
    before = sys.getprofile(), sys.gettrace()
    if anywhere:
        sys.settrace(trace)
    else:
        sys.setprofile(profile)
    try:
        function()
    except Interrupt:
        return True
    finally:
        sys.setprofile(before[0])
        sys.settrace(before[1])
    return False


def _counts(frame: FrameType, within: set[CodeType]) -> bool:
    """Return whether a toolkit frame runs one of the functions `within`, or was called by one and not by the driver."""
    each: FrameType | None = frame
    while each is not None and each.f_code not in within:
        # Exceptions in finalizers are ignored, and finalizers may run anywhere.
        if each.f_code.co_name == "__del__" or _room(each) == "simulator":
            return False
        each = each.f_back
    return each is not None and _room(frame) != ".."


@functools.cache
def _room_of(filename: str) -> str:
    return os.path.relpath(filename, os.path.dirname(cuda.__file__)).split(os.sep)[0]


def _room(frame: FrameType) -> str:
    """Return the top-level layer or module of the toolkit that a frame's code is in, or ".." for other code."""
    return _room_of(frame.f_code.co_filename)
