"""Catch what kernels print, which a GPU's driver writes to C's standard output and others to Python's."""

from __future__ import annotations

import ctypes
import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout

import cudart_py as cuda

__all__ = ["printed"]


def printed(work: Callable[[], object]) -> list[str]:
    """Run `work`, wait for the current device, and return the lines that its kernels have printed."""
    with tempfile.TemporaryFile() as file, redirect_stdout(io.StringIO()) as of_python:
        before = os.dup(1)
        try:
            _flush()
            os.dup2(file.fileno(), 1)
            work()
            cuda.current_device().synchronize()
        finally:
            _flush()
            os.dup2(before, 1)
            os.close(before)
        file.seek(0)
        return (file.read().decode(errors="replace") + of_python.getvalue()).splitlines()


def _flush() -> None:
    """Write out what the C library and Python still hold for the standard output."""
    ctypes.CDLL(None).fflush(None)
    if sys.__stdout__ is not None:
        sys.__stdout__.flush()
