"""Python programs that a command runs in this process, as Python itself would run them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .callers import begin_at_program

_SOURCES = {".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".ptx"}
_EXECUTABLE = b"\x7fELF"


class Program:
    """A Python program: a file, or, like ``python -m``, a module."""

    # Whether one runs in this process. The command that runs it watches this process, but not the program's children.
    running = False

    def __init__(self, name: str, arguments: Sequence[str], *, is_module: bool) -> None:
        self._name = name
        self._arguments = arguments
        self._is_module = is_module

    def __str__(self) -> str:
        return f"{'the module ' if self._is_module else ''}{self._name}"

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Set sys.argv and the first entry of sys.path as Python does for a program, and restore them at the end."""
        folder = os.getcwd() if self._is_module else str(Path(self._name).resolve().parent)
        before = sys.argv, sys.path[:]
        sys.argv, sys.path[0] = [self._name, *self._arguments], folder
        try:
            yield
        finally:
            sys.argv, sys.path[:] = before

    @property
    def exists(self) -> bool:
        """Whether the file or the module exists."""
        if not self._is_module:
            return Path(self._name).is_file()
        try:
            return importlib.util.find_spec(self._name) is not None
        except (ImportError, ValueError):
            return False

    @property
    def other_language(self) -> str | None:
        """The kind of a file that is not a Python program, or None if it may be one."""
        program = Path(self._name)
        if self._is_module:
            return None
        if program.suffix.lower() in _SOURCES:
            return "PTX" if program.suffix.lower() == ".ptx" else "C++"
        with program.open("rb") as file:
            return "an executable or a cubin" if file.read(len(_EXECUTABLE)) == _EXECUTABLE else None

    def run(self) -> int:
        """Run the program and return its exit status; an exception that the program does not catch is raised."""
        Program.running = True
        try:
            if self._is_module:
                runpy.run_module(self._name, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(self._name, run_name="__main__")
        except SystemExit as end:
            return _status(end.code)
        finally:
            Program.running = False
        return 0

    def failed(self, failure: Exception) -> int:
        """Print an uncaught exception of the program as Python does, and return the exit status."""
        begin_at_program(failure)
        sys.excepthook(type(failure), failure, failure.__traceback__)
        return 1


def _status(code: object) -> int:
    """Return the exit status for an argument of sys.exit; print a value that is not a number, as Python does."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)  # noqa: T201  # Python prints it too
    return 1
