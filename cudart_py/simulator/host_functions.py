"""Host functions: calls of the host that wait in a stream for their turn."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUresult

from . import work
from .errors import StatusError, entry, number
from .memory import host_address
from .streams import find_stream, submit

if TYPE_CHECKING:
    from .contexts import Context

__all__ = ["cuLaunchHostFunc"]

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class HostCall:
    """A call of the C function at an address with one pointer."""

    __slots__ = ("data", "function")

    def __init__(self, function: int, data: int) -> None:
        self.function = function
        self.data = data

    def run(self, context: Context) -> None:
        """Call it; what it asks of the driver meanwhile is refused where it would have to wait."""
        work.runner.in_callback = True
        try:
            _PROTOTYPE(self.function)(self.data)
        finally:
            work.runner.in_callback = False


@entry()
def cuLaunchHostFunc(hStream: Any, fn: Any, userData: Any) -> None:
    """Call a host function when the stream gets there, as cuLaunchHostFunc."""
    stream = find_stream(hStream)
    function = number(fn)
    if not function:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    submit(stream, HostCall(function, host_address(userData)))
