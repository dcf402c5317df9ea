"""The options of calls that compile or link: the only one with an effect is the log for errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cuda.bindings.driver import CUjit_option, CUresult

from ...state.arguments import host_address, number
from ...state.errors import StatusError
from ...state.fault_reports import put_report, take_report


class Log:
    """A buffer of the caller for a log, which is empty until something is written."""

    def __init__(self, buffer: Any, size: Any) -> None:
        self._buffer = buffer
        self._room = number(size)
        if isinstance(buffer, bytes | bytearray) and self._room > len(buffer):  # the bindings also write into bytes
            self._room = 0
        self.write("")

    def write(self, text: str) -> None:
        """Write a text as far as it fits, if there is a buffer with room for it."""
        address = host_address(self._buffer)
        if address and self._room > 0:
            content = text.encode()[: self._room - 1] + b"\0"
            ctypes.memmove(address, content, len(content))


class JitOptions:
    """Options as the bindings take them; raises CUDA_ERROR_INVALID_VALUE if there aren't as many as the call says."""

    def __init__(self, count: Any, options: Sequence[Any] | None, values: Sequence[Any] | None) -> None:
        given = dict(zip(options or (), values or (), strict=False))
        if number(count) != len(given):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        names = CUjit_option
        Log(given.get(names.CU_JIT_INFO_LOG_BUFFER), given.get(names.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES))
        self._errors = Log(
            given.get(names.CU_JIT_ERROR_LOG_BUFFER), given.get(names.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        )

    @contextmanager
    def logging(self) -> Iterator[None]:
        """Write the report of a StatusError that leaves the block into the log."""
        try:
            yield
        except StatusError:
            report = take_report()
            if report is not None:
                put_report(report)
                self.log(report)
            raise

    def log(self, report: str) -> None:
        """Write a report into the log for errors, if there is one."""
        if report:
            self._errors.write(report)
