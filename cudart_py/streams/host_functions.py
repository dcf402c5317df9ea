"""Host functions: functions that the host runs in stream order."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import errors
from ..base import arguments
from ..context import lifetimes
from ..context.capture import RetainedObjects, captures, find, hold_node
from ..context.current import activated
from ..context.device import Device
from ..context.resetting import at_reset
from ..driver import enums
from ..driver.calls import api
from ..driver.unwrap import failure
from ..host.failures import host_failures
from .awaiting import ask_for
from .graphs.nodes import HOST_FUNCTION, NodeWork

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


class NodeFunction(NodeWork):
    """A host function for a node of the kind "host" (cuGraphAddHostNode, cuGraphHostNodeSetParams).

        graph.add(cuda.graphs.NodeFunction(lambda: print("done")), after=node)

    `function` is called without arguments at each launch of the graph, and must not make CUDA calls. Its exceptions are
    raised as those of `Stream.launch_host_function`. Raises TypeError for an object that cannot be called.
    """

    __slots__ = ("_captured", "_function")

    _kind = "host"

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = arguments.function("NodeFunction", "function", function)
        self._captured: _Captured | None = None

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Accept any graph."""

    def _parameters(self, device: Device) -> Any:
        """Return the parameters of a node that calls the function, which is registered as long as a node needs it."""
        if self._captured is None:
            waiting = _Waiting(self._function, device)
            _repeated[waiting.key] = waiting
            self._captured = _Captured(waiting)
        return _host_parameters(self._captured._waiting.key)

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node that calls the function to a graph, and return it."""
        return api.cuGraphAddHostNode(graph, before, len(before), self._parameters(device))

    def _set_node(self, node: int, device: Device) -> None:
        """Make a node of a graph call the function."""
        api.cuGraphHostNodeSetParams(node, self._parameters(device))

    def _change_node(self, executable: int, node: int, device: Device) -> None:
        """Make a node of an executable graph call the function."""
        api.cuGraphExecHostNodeSetParams(executable, node, self._parameters(device))

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the object that keeps the function registered."""
        return RetainedObjects(HOST_FUNCTION, (self._captured,), node)

    def __repr__(self) -> str:
        return f"<NodeFunction of {self._function!r}>"


_keys = itertools.count(1)
# The driver is given a number, not an object's address: a number that is no longer registered is harmless.
_once: dict[int, _Waiting] = {}
at_reset(_once.clear)
at_reset(host_failures.clear)
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
            waiting.function()
        except BaseException as error:
            # C code has called this function, and could not pass the exception on.
            host_failures.keep(error, waiting.device.ordinal)
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
        hold_node(stream.handle, HOST_FUNCTION, (_Captured(waiting),))


def _host_parameters(key: int) -> Any:
    """Return the parameters of a node that calls the function that is registered under a number."""
    parameters = enums.CUDA_HOST_NODE_PARAMS()
    parameters.fn = enums.CUhostFn(_address)
    parameters.userData = key
    return parameters


def _add_node(stream: Stream, key: int) -> None:
    """Append a host node to the graph that the stream records into.

    Capturing cuLaunchHostFunc is not possible: the bindings pass the driver a memory block of their own and free it at
    the first call, but the second launch of a graph would use it again.
    """
    info = api.cuStreamGetCaptureInfo(stream.native)
    if info[0] != enums.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE:
        raise failure(enums.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamGetCaptureInfo")
    graph, before = info[2], list(info[3])
    node = api.cuGraphAddHostNode(graph, before, len(before), _host_parameters(key))
    flags = enums.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
    api.cuStreamUpdateCaptureDependencies(stream.native, [node], None, 1, int(flags))


@atexit.register
def _wait_at_exit() -> None:
    # A driver thread that enters Python while the interpreter shuts down would hang.
    for device in {waiting.device for waiting in (*_once.values(), *_repeated.values())}:
        with contextlib.suppress(errors.CudaError), activated(device):  # a lost context has nothing to wait for
            api.cuCtxSynchronize()
    host_failures.print_all()
