"""Capture what kernels print: a GPU's driver writes it to C's standard output, other drivers to Python's."""

from __future__ import annotations

import ctypes
import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TextIO

import cudart_py as cuda


class _Caught(io.StringIO):
    """Capture of Python's standard output, except rich's, whose progress bar stays in the terminal."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self.rich_proxied_file = terminal  # where rich's Console looks for the file to write to


def printed(work: Callable[[], object]) -> list[str]:
    """Run `work`, wait for the current device, and return the lines that its kernels have printed."""
    with tempfile.TemporaryFile() as file, open(os.dup(1), "w", encoding="utf-8") as terminal:
        caught = _Caught(terminal)
        with redirect_stdout(caught):
            _flush()
            os.dup2(file.fileno(), 1)
            try:
                work()
                cuda.current_device().synchronize()
            finally:
                _flush()
                os.dup2(terminal.fileno(), 1)
        file.seek(0)
        return (file.read().decode(errors="replace") + caught.getvalue()).splitlines()


def _flush() -> None:
    """Flush the buffers of the C library and of Python for standard output."""
    ctypes.CDLL(None).fflush(None)
    if sys.__stdout__ is not None:
        sys.__stdout__.flush()
