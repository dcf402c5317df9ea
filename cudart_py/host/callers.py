"""The line of the program that called the toolkit, for reports and warnings."""

from __future__ import annotations

import os
import runpy
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
# Libraries that call the driver for the program under `cudart-py run`. Tests in their repositories are programs.
_LIBRARIES = tuple(
    os.sep + os.path.join("site-packages", *name, "") for name in (("numba_cuda",), ("numba", "cuda"), ("cuda",))
)


def calling_frame() -> FrameType | None:
    """Return the innermost frame outside this package and the libraries that call it, or None if there is none.

    Frames of IPython and contextlib are skipped as well: the caller of a magic is the line in the cell, and the caller
    of the end of a block is the block's line.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (_is_toolkit(frame.f_code.co_filename) or _is_between(frame)):
        frame = frame.f_back
    return frame


def _is_between(frame: FrameType) -> bool:
    """Return whether a frame belongs to IPython, which runs magics, or to contextlib, which ends `with` blocks."""
    module: str = frame.f_globals.get("__name__", "")
    return module.startswith("IPython.") or module == "contextlib"


def _is_toolkit(filename: str) -> bool:
    return filename.startswith(_PACKAGE) or any(library in filename for library in _LIBRARIES)


def call_site() -> str:
    """Return ``file:line`` of the calling frame, or an empty string if there is none."""
    frame = calling_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_caller(text: str, category: type[Warning]) -> None:
    """Issue a warning at the calling frame's line, so that filters by module apply and it names the program's line."""
    frame = calling_frame()
    if frame is None:
        warnings.warn(text, category, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__", "")
    warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def end_at_caller(error: BaseException) -> None:
    """Make an exception's traceback end at the program's line that called the toolkit, without the toolkit's frames."""
    last, entry = None, error.__traceback__
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            last = entry
        entry = entry.tb_next
    if last is not None:
        last.tb_next = None


def begin_at_program(error: BaseException) -> None:
    """Make an exception's traceback begin at the program that the toolkit ran with runpy, without the frames above it.

    If no frame belongs to the program, the traceback of a SyntaxError is removed, because the error itself names a
    line. Other tracebacks then stay complete.
    """
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename.startswith((_PACKAGE, "<frozen ", runpy.__file__)):
        entry = entry.tb_next
    if entry is not None or isinstance(error, SyntaxError):
        error.__traceback__ = entry
