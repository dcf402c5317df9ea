"""The limit on the total memory that the checks' records take."""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .....host.environment import whole_number

LIMIT_VARIABLE = "CUDART_PY_SANITIZER_MIB"
_MEBIBYTE = 1 << 20
# The default limit in MiB, and the fraction of the machine's memory (one fourth) that it does not exceed.
_MOST = 8192
_PART = 4
# Arrays of fewer bytes aren't counted, because counting an array takes as long as creating it.
_SMALL = 1 << 16


class RecordLimit:
    """The limit on the total size of records; `taken` is the number of bytes that existing records take."""

    def __init__(self) -> None:
        self.taken = 0
        self.said = False
        self._most = 0

    def most(self) -> int:
        """Return the limit in bytes from the environment, or else 8 GiB, but at most a quarter of the machine's memory.

        The environment is read only once, by cuInit, because an error in the middle of work would interrupt the work.
        An invalid `CUDART_PY_SANITIZER_MIB` raises ValueError.
        """
        if not self._most:
            machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _PART // _MEBIBYTE
            default = max(1, min(_MOST, machine))
            self._most = whole_number(LIMIT_VARIABLE, default, 1, 1 << 30) * _MEBIBYTE
        return self._most

    def admits(self, size: int) -> bool:
        """Return whether there is room for `size` more bytes."""
        return size < _SMALL or self.taken + size <= self.most()

    def zeros(self, count: int, dtype: DTypeLike) -> NDArray[Any] | None:
        """Return an array of zeros for records, or None if there is no room for it."""
        if not self.admits(count * np.dtype(dtype).itemsize):
            return None
        try:
            return self._counted(np.zeros(count, dtype))
        except MemoryError:
            return None

    def copy(self, records: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of records; raise MemoryError if there is no room for it."""
        if not self.admits(records.nbytes):
            raise MemoryError
        return self._counted(records.copy())

    def repeated(self, records: list[NDArray[Any]], times: int) -> list[NDArray[Any]] | None:
        """Return copies of the arrays with each element repeated, or None if there is no room for all of them."""
        if not self.admits(sum(array.nbytes for array in records) * times):
            return None
        try:
            return [self._counted(np.repeat(array, times)) for array in records]
        except MemoryError:
            return None

    def _counted(self, records: NDArray[Any]) -> NDArray[Any]:
        size = records.nbytes
        if size >= _SMALL:
            weakref.finalize(records, self._give_back, size).atexit = False
            self.taken += size
        return records

    def _give_back(self, size: int) -> None:
        self.taken -= size

    def say_no_room(self, size: int) -> None:
        """Report that there is no room for the records of an allocation of `size` bytes, as `say` does."""
        self.say(
            f"the records of {size:,} bytes of memory would take too much memory",
            "races are not checked for there, and uninitialised values only in larger pieces. Launches that take long "
            "are not checked at all if they use that memory",
        )

    def say(self, reason: str, consequence: str, remedy: str = "") -> None:
        """Report on standard error, once per process, that the checks detect less from now on.

        The default of `remedy` is another limit for the records.
        """
        stream = sys.stderr
        if self.said or stream is None:
            return
        self.said = True
        remedy = (
            remedy or f"All records take at most {self.most() // _MEBIBYTE} MiB; {LIMIT_VARIABLE} sets another limit"
        )
        with contextlib.suppress(ValueError, OSError):  # it is closed, or nobody reads from the pipe
            stream.write(
                f"cudart-py: {reason}: {consequence}. Results do not depend on it. {remedy}. "
                "This message appears once\n"
            )


limit = RecordLimit()
