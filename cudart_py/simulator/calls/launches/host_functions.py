"""Host functions, which the host runs in stream order."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUgraphNodeType, CUresult

from ....host.failures import host_failures
from ...state.arguments import host_address, number
from ...state.errors import StatusError
from ...state.queue.operations import Operation
from ...state.queue.runner import runner
from ...state.queue.work import hear
from ...state.streams import find_stream, submit
from ..entry import entry

if TYPE_CHECKING:
    from ...state.contexts import Context

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class HostCall(Operation):
    """A call of the C function at an address, with one pointer as its argument."""

    __slots__ = ("data", "function")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST
    computes = True

    def __init__(self, function: int, data: int) -> None:
        self.function = function
        self.data = data

    def __str__(self) -> str:
        return "a host function"

    def run(self, context: Context) -> None:
        """Call the function; in the meantime, driver calls are refused."""
        runner.in_callback = True
        try:
            with _handlers_raising() as raised:
                _PROTOTYPE(self.function)(self.data)
        finally:
            runner.in_callback = False
        if runner.piece is not None:
            hear(runner.piece.work)  # the function may have told another thread of the host
        runner.poll()
        if raised:
            host_failures.drop(raised[0])
            raise raised[0]


@contextlib.contextmanager
def _handlers_raising() -> Iterator[list[BaseException]]:
    """Collect the exceptions that signal handlers raise while a host function runs.

    No function that C has called can raise an exception. A GPU's driver calls host functions in a thread of its
    own, while signals are handled in the main thread, where their exceptions reach the program.
    """
    raised: list[BaseException] = []
    handlers: dict[int, Any] = {}

    def handle(which: int, frame: FrameType | None) -> None:
        try:
            handlers[which](which, frame)
        except BaseException as error:
            raised.append(error)
            raise

    if threading.current_thread() is not threading.main_thread():
        yield raised
        return
    handlers.update((which, signal.getsignal(which)) for which in signal.valid_signals())
    watched = [which for which, handler in handlers.items() if callable(handler)]
    for which in watched:
        signal.signal(which, handle)
    try:
        yield raised
    finally:
        for which in watched:
            # Unless the function has set another handler.
            if signal.getsignal(which) is handle:
                signal.signal(which, handlers[which])


@entry()
def cuLaunchHostFunc(hStream: Any, fn: Any, userData: Any) -> None:
    """Call a host function in stream order (cuLaunchHostFunc)."""
    stream = find_stream(hStream)
    function = number(fn)
    if not function:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    submit(stream, HostCall(function, host_address(userData)))
