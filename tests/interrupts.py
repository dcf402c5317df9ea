"""Interrupts that tests plant where Python lets one in: at the beginning of a function, and behind a call."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import cudart_py as cuda


class Interrupt(KeyboardInterrupt):
    """An interrupt that a test plants."""


def interrupted(function: Callable[[], object], within: set[CodeType], step: int) -> bool:
    """Run a function with an interrupt at one of the calls that some functions of the toolkit make.

    Calls that these make in turn count too, and those inside a driver in software do not. Tells whether there were as
    many.
    """
    left = step

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        caller = frame.f_back if event in ("call", "return") else frame
        if caller is None or not _counts(caller, within):
            return
        left -= 1
        if left == 0:
            sys.setprofile(None)
            raise Interrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    except Interrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


def _counts(frame: FrameType, within: set[CodeType]) -> bool:
    """Return whether a frame of the toolkit is one of some functions, or was called by them."""
    room = os.path.relpath(frame.f_code.co_filename, os.path.dirname(cuda.__file__)).split(os.sep)[0]
    if room in ("..", "simulator"):
        return False
    each: FrameType | None = frame
    # Finalizers swallow what is raised in them, and may run anywhere.
    while each is not None and each.f_code not in within and each.f_code.co_name != "__del__":
        each = each.f_back
    return each is not None and each.f_code.co_name != "__del__"
