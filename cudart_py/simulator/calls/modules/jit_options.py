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


class JitOptions:
    """Options as the bindings take them; raises CUDA_ERROR_INVALID_VALUE if there aren't as many as the call says."""

    def __init__(self, count: Any, options: Sequence[Any] | None, values: Sequence[Any] | None) -> None:
        given = dict(zip(options or (), values or (), strict=False))
        if number(count) != len(given):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        self._buffer = given.get(CUjit_option.CU_JIT_ERROR_LOG_BUFFER)
        self._bytes = number(given.get(CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES))

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
        """Write a report into the log, if there is one with room for it, as far as it fits."""
        room = self._bytes
        if isinstance(self._buffer, bytes | bytearray):  # the bindings also write into bytes objects
            room = room if room <= len(self._buffer) else 0
        address = host_address(self._buffer)
        if report and address and room > 0:
            text = report.encode()[: room - 1] + b"\0"
            ctypes.memmove(address, text, len(text))
