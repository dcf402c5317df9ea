"""Interrupts that tests plant where Python lets one in: at the beginning of a function, and behind calls of C."""

import functools
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import cudart_py as cuda


class Interrupt(KeyboardInterrupt):
    """An interrupt that a test plants."""


def interrupted(
    function: Callable[[], object],
    within: set[CodeType],
    step: int,
    *,
    behind_driver: bool = True,
    anywhere: bool = False,
) -> bool:
    """Run a function with an interrupt at one of the calls that some functions of the toolkit make.

    Calls that these make in turn count too, and those inside a driver in software do not. Without `behind_driver` none
    comes behind a call of the driver, where what it returns is lost. With `anywhere` it comes before an instruction.

    Tells whether there were as many calls, or instructions.
    """
    left = step

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        caller = frame.f_back if event in ("call", "return") else frame
        # Before a function of C, where a lock may be about to be released, Python lets none in, nor where a function of
        # Python returns. A driver in software stands for one of C.
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

    function()  # the first time makes calls that later ones do not
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
    """Return whether a frame is of some functions of the toolkit, or was called by them and not by the driver."""
    each: FrameType | None = frame
    while each is not None and each.f_code not in within:
        # Finalizers swallow what is raised in them, and may run anywhere.
        if each.f_code.co_name == "__del__" or _room(each) == "simulator":
            return False
        each = each.f_back
    return each is not None and _room(frame) != ".."


@functools.cache
def _room_of(filename: str) -> str:
    return os.path.relpath(filename, os.path.dirname(cuda.__file__)).split(os.sep)[0]


def _room(frame: FrameType) -> str:
    """Return the room of the toolkit that a frame is in, ".." for none."""
    return _room_of(frame.f_code.co_filename)
