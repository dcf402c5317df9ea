"""Host functions: functions that the host runs in stream order."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .. import arguments, errors
from ..context import lifetimes
from ..context.capture import captures, find
from ..context.current import activated
from ..context.device import Device
from ..context.resetting import at_reset
from ..driver import enums
from ..driver.calls import api
from ..driver.unwrap import failure
from .awaiting import ask_for

if TYPE_CHECKING:
    from .stream import Stream


class _Waiting:
    """A function that is queued in a stream, to run once, or part of a graph, to run at each launch."""

    __slots__ = ("__weakref__", "device", "function", "key")

    def __init__(self, function: Callable[[], object], device: Device) -> None:
        self.function = function
        self.device = device
        self.key = next(_keys)


class _Captured:
    """The object that a graph keeps alive: as long as it exists, its function can be called."""

    __slots__ = ("_waiting",)

    def __init__(self, waiting: _Waiting) -> None:
        self._waiting = waiting

    def __del__(self) -> None:
        _repeated.pop(self._waiting.key, None)


_keys = itertools.count(1)
# The driver is given a number, not an object's address: a number that is no longer registered is harmless.
_once: dict[int, _Waiting] = {}
at_reset(_once.clear)
_repeated: dict[int, _Waiting] = {}
# Functions that have run. A later call outside host functions drops them, because that may close arrays, and a host
# function must not make CUDA calls.
_finished: list[_Waiting] = []


def _run(key: int) -> None:
    """Call the function that is registered under a number."""
    waiting = _repeated.get(key) or _once.get(key)
    if waiting is None:
        return
    with _in_host_function():
        try:
            # Called through C, so that its exceptions go to sys.unraisablehook, with the function's name.
            _CALL(waiting.function)()
        finally:
            # Removed only now, so that the exit of the program waits for a function that is running.
            if key in _once:
                _finished.append(waiting)
                del _once[key]


@contextlib.contextmanager
def _in_host_function() -> Iterator[None]:
    thread = threading.get_ident()
    lifetimes.in_host_function.add(thread)
    try:
        yield
    finally:
        lifetimes.in_host_function.discard(thread)


_CALL = ctypes.CFUNCTYPE(None)
_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_run)
_address: int = ctypes.cast(_callback, ctypes.c_void_p).value or 0


def launch_host_function(stream: Stream, function: Callable[[], object]) -> None:
    """Queue a call of a function in a stream (cuLaunchHostFunc); see `Stream.launch_host_function`."""
    arguments.function("Stream.launch_host_function", "function", function)
    _finished.clear()
    device = stream.device
    waiting = _Waiting(function, device)
    capture = find(stream.handle) if captures else None
    if capture is not None:
        capture.refuse_in_body("Stream.launch_host_function")
    kept = _once if capture is None else _repeated
    kept[waiting.key] = waiting
    try:
        with activated(device):
            if capture is None:
                api.cuLaunchHostFunc(stream.native, _address, waiting.key)
            else:
                _add_node(stream, waiting.key)
    except BaseException:
        kept.pop(waiting.key, None)
        raise
    if capture is None:
        ask_for(stream)
    else:
        capture.hold("a callback", (_Captured(waiting),))


def _add_node(stream: Stream, key: int) -> None:
    """Append a host node to the graph that the stream records into.

    Capturing cuLaunchHostFunc is not possible: the bindings pass the driver a memory block of their own and free it at
    the first call, but the second launch of a graph would use it again.
    """
    info = api.cuStreamGetCaptureInfo(stream.native)
    if info[0] != enums.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE:
        raise failure(enums.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamGetCaptureInfo")
    graph, before = info[2], list(info[3])
    parameters = enums.CUDA_HOST_NODE_PARAMS()
    parameters.fn = enums.CUhostFn(_address)
    parameters.userData = key
    node = api.cuGraphAddHostNode(graph, before, len(before), parameters)
    flags = enums.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
    api.cuStreamUpdateCaptureDependencies(stream.native, [node], None, 1, int(flags))


@atexit.register
def _wait_at_exit() -> None:
    # A driver thread that enters Python while the interpreter shuts down would hang.
    for device in {waiting.device for waiting in (*_once.values(), *_repeated.values())}:
        with contextlib.suppress(errors.CudaError), activated(device):  # a lost context has nothing to wait for
            api.cuCtxSynchronize()
