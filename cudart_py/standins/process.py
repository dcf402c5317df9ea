"""The process that a stand-in is loaded into: the table of its functions, its output, and the reports at its end.

In a process of C++, the stand-in has started Python; then the program's standard output is C's, which kernels print to,
and warnings have no line of Python to name. In a process of Python, everything is Python's own.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any, TextIO

from ..driver import backend
from ..errors import SimulatorWarning
from . import messages, profile_report, progress
from .functions import Function, driver_functions, linker_functions, runtime_functions
from .messages import Implementation, say

_UNKNOWN = 999
_LAUNCH_FAILED = 719
# The exit status of `cudart-py run` for programs that it cannot run.
_REFUSED = 2

# Python's side of the tables; the C code has only their addresses.
_callbacks: list[Any] = []
_is_prepared = False


def fill(library: str, address: int, embedded: int) -> None:
    """Write the addresses of a library's functions into its table, in the order of `functions`."""
    _prepare(bool(embedded))
    functions, implementation = _library(library)
    table = (ctypes.c_void_p * len(functions)).from_address(address)
    for index, function in enumerate(functions.values()):
        callback = function.prototype(_guarded(function, implementation(function)))
        _callbacks.append(callback)
        table[index] = ctypes.cast(callback, ctypes.c_void_p)


def _library(name: str) -> tuple[dict[str, Function], Callable[[Function], Implementation]]:
    """Return the functions of a library and their implementations, imported only if a program uses the library."""
    if name == "libcuda":
        from .driver import table  # imported late: it imports the bindings, which the program may not need

        return driver_functions(), table.implementation
    if name == "libcudart":
        from .runtime import table as runtime_table  # imported late, as above

        return runtime_functions(), runtime_table.implementation
    from . import linker  # imported late, as above

    return linker_functions(), linker.implementation


def _prepare(embedded: bool) -> None:
    """Choose the simulator, and connect the process's output, once."""
    global _is_prepared
    if _is_prepared:
        return
    _is_prepared = True
    messages.note_embedding(embedded)
    if embedded:
        sys.stdout = _CStream("stdout")
        sys.argv = [os.readlink("/proc/self/exe")]
        warnings.showwarning = _show
    else:
        atexit.register(finish)
    warnings.simplefilter("always", SimulatorWarning)
    backend.select("simulator")
    try:
        backend.chosen()
    except ValueError as error:  # a setting in the environment
        say(str(error))
        ctypes.CDLL(None).fflush(None)  # the program's output so far
        os._exit(_REFUSED)  # not with an exception, because the program has called a function of C
    profile_report.begin()
    if embedded:
        progress.start()
    else:
        from .runtime import bindings  # imported late: programs in C++ need no bindings

        bindings.replace_functions(_guarded)


def finish() -> None:
    """Print the messages for the end of the program: repeated findings, the profile, this package's own messages."""
    messages.say_repeats()
    profile_report.end()
    if messages.is_embedded():
        # Python is not finalized in a program of C++, so its own handlers would not run.
        atexit._run_exitfuncs()


class _CStream:
    """A text stream on one of C's standard streams, so that Python's and the program's own output keep their order."""

    encoding = "utf-8"

    def __init__(self, name: str) -> None:
        self._library = ctypes.CDLL(None)
        self._stream = ctypes.c_void_p.in_dll(self._library, name)

    def write(self, text: str) -> int:
        """Write text."""
        content = text.encode(errors="replace")
        self._library.fwrite(content, ctypes.c_size_t(1), ctypes.c_size_t(len(content)), self._stream)
        return len(text)

    def flush(self) -> None:
        """Write what C has buffered."""
        self._library.fflush(self._stream)

    def fileno(self) -> int:
        """Return the number of the file that the stream writes to."""
        return int(self._library.fileno(self._stream))

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return os.isatty(self.fileno())


def _guarded(function: Function, implementation: Implementation) -> Implementation:
    """Return a callback from an implementation: it reports faults, and no exception leaves it.

    After KeyboardInterrupt, it returns the complement of a status, which the C code knows.
    """
    # Like a wait that an interrupt ends on a GPU, a call succeeds after one, except if its results are missing.
    has_results = any(item.is_pointer and not item.constant for item in function.declaration.parameters)
    interrupted = ~(_UNKNOWN if has_results else 0) if function.result is ctypes.c_int else 0

    def call(*arguments: Any) -> Any:
        try:
            with progress.calling():
                result = implementation(*arguments)
        except SimulatorWarning as finding:  # the mode of the checks is "error"
            say(str(finding))
            result = _LAUNCH_FAILED
        except KeyboardInterrupt:
            return interrupted
        except BaseException:
            traceback.print_exc()
            result = _UNKNOWN
        if result and function.result is ctypes.c_int:
            report = backend.chosen().explanation(int(result))
            if report:
                say(report)
        return result

    return call


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning without a line of Python, since the program has none."""
    messages.say_finding(str(message))
