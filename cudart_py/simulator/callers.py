"""Find where the program is that called the driver, for reports."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

__all__ = ["call_site", "calling_frame"]

_PACKAGE = str(Path(__file__).parents[1]) + "/"


def calling_frame() -> FrameType | None:
    """Return the innermost frame outside this package, or None when there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def call_site() -> str:
    """Return that frame's ``file:line``, empty when there is none."""
    frame = calling_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
