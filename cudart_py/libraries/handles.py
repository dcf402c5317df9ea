"""Library handles: one per library, thread and device, bound to the stream of the call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..context.capture import captures, find, hold
from ..context.current import activated
from ..context.device import Device
from ..context.lifetimes import Handle  # releases handles at the right time and never in a forked child
from ..context.resetting import at_reset
from ..driver.calls import library
from ..errors import CaptureError, OutOfMemoryError
from ..memory.array import DeviceArray
from ..memory.creation import empty
from ..streams.stream import Stream
from .failures import failure

# The size in bytes of the workspace that cuBLAS needs for compute capability 9.0 and later, and for earlier devices.
WORKSPACE, SMALL_WORKSPACE = 32 << 20, 4 << 20


class LibraryHandle(Handle):
    """A library's handle on a device; `functions` are the library's bindings.

    `bind(stream)` must be called before a library call. cuBLAS gets a workspace from the pool of the stream. When the
    handle is bound to another stream, the workspace is freed in stream order.
    """

    __slots__ = ("_name", "bound", "device", "functions", "native", "workspace")

    def __init__(self, name: str, device: Device) -> None:
        self._value = None
        self._owned = True
        self._name = name
        self.device = device
        self.functions = library(name)
        self.bound = 0
        self.workspace: DeviceArray | None = None
        with activated(device):
            try:
                self.native: int = self.functions.create()
            except Exception as error:
                raise failure(f"{name}Create", error) from error
        self._value = self.native

    def bind(self, stream: Stream) -> None:
        """Queue later calls in a stream (cublasSetStream and others).

        Raises CaptureError if cuBLAS would have to allocate a workspace while the stream is being captured.
        """
        handle = stream.handle
        if handle == self.bound:
            return
        if self._name == "cublasLt":  # its stream is an argument of each call
            return
        workspace = None
        with activated(self.device):
            if self._name == "cublas":
                refuse_first_use(handle, "cuBLAS")
                workspace = allocate_workspace(workspace_size(self.device), stream)
            self._turn_to(handle, workspace)
        # The old workspace is dropped, not closed, because a graph may hold it.
        self.workspace = workspace

    def _turn_to(self, stream: int, workspace: DeviceArray | None) -> None:
        self.bound = 0
        try:
            self.functions.set_stream(self.native, stream)
            if workspace is not None:
                # Setting the stream has removed the previous workspace from the handle.
                self.functions.set_workspace(self.native, workspace.pointer, workspace.nbytes)
        except Exception as error:
            raise failure(f"{self._name}SetStream", error) from error
        self.bound = stream

    @contextmanager
    def lent_to(self, stream: Stream) -> Iterator[None]:
        """Queue the block's calls in another stream, with the workspace of the stream that the handle is bound to."""
        bound = self.bound
        if stream.handle == bound:
            yield
            return
        self._turn_to(stream.handle, self.workspace)
        try:
            yield
        finally:
            self._turn_to(bound, self.workspace)

    def _release(self, value: Any) -> None:
        with activated(self.device):
            self.functions.destroy(value)


def workspace_size(device: Device) -> int:
    """Return the workspace size in bytes that leaves cuBLAS all of its algorithms to choose from."""
    return WORKSPACE if device.compute_capability >= (9, 0) else SMALL_WORKSPACE


def allocate_workspace(nbytes: int, stream: Stream) -> DeviceArray:
    """Return memory in which a library works, of at least one byte; an OutOfMemoryError says what it was for."""
    try:
        return empty(max(nbytes, 1), np.uint8, stream=stream)
    except OutOfMemoryError as error:
        remedy = "libraries.release() frees this thread's other workspaces"
        error.args = (f"{error.args[0]}. This is the workspace of a library function; {remedy}",)
        raise


def refuse_capture(call: str, stream: Stream, reason: str, remedy: str = "call it before the capture begins") -> None:
    """Raise CaptureError if the stream is being captured."""
    if captures and find(stream.handle) is not None:
        raise CaptureError(f"{call}: {reason}, which is not allowed during a capture: {remedy}")


def refuse_first_use(stream: int, what: str) -> None:
    """Raise CaptureError if the stream is being captured, because `what` allocates memory at its first call."""
    if captures and find(stream) is not None:
        raise CaptureError(
            f"{what} allocates memory at its first call in a stream, which is not allowed during a capture: call it "
            "once in this stream before the capture begins"
        )


class Scratch:
    """The workspace of one thread on one device. It grows as needed, and is allocated again for another stream."""

    __slots__ = ("_memory", "_stream")

    def __init__(self) -> None:
        self._memory: DeviceArray | None = None
        self._stream = 0

    def get(self, nbytes: int, stream: Stream) -> DeviceArray:
        """Return at least `nbytes` bytes of memory, which later work in the stream may overwrite."""
        memory = self._memory
        if memory is None or memory.nbytes < nbytes or self._stream != stream.handle:
            refuse_first_use(stream.handle, "the library")
            # The old memory is freed first, in stream order, which allows the pool to reuse it.
            self._memory = memory = None
            self._memory = memory = allocate_workspace(nbytes, stream)
            self._stream = stream.handle
        return memory


class _Thread(threading.local):
    def __init__(self) -> None:
        self.handles: dict[tuple[str, int], LibraryHandle] = {}
        self.scratch: dict[int, Scratch] = {}
        self.caches: dict[str, dict[Any, Any]] = {}


_thread = _Thread()


def _forget_all() -> None:
    """Forget the objects of all threads after a reset has closed them; each thread creates new ones as needed."""
    global _thread
    _thread = _Thread()


at_reset(_forget_all)


def thread_cache(name: str) -> dict[Any, Any]:
    """Return a cache of the calling thread, for objects that hold a stream or a pointer and must not be shared."""
    cache = _thread.caches.get(name)
    if cache is None:
        cache = _thread.caches[name] = {}
    return cache


def library_handle(name: str, stream: Stream, device: Device) -> LibraryHandle:
    """Return the calling thread's handle ("cublas", "cublasLt", "cusparse", "cusolverDn"), bound to a stream.

    `device` is the stream's device and must be current when the handle is used. Raises CaptureError if the thread has
    no handle yet and the stream is being captured, because creating a handle would invalidate the capture.
    """
    handle = _thread.handles.get((name, device.ordinal))
    if handle is None:
        refuse_first_use(stream.handle, name)
        handle = _thread.handles[name, device.ordinal] = LibraryHandle(name, device)
    if handle.bound != stream.handle:
        handle.bind(stream)
    return handle


def scratch(device: Device) -> Scratch:
    """Return the calling thread's workspace on a device."""
    memory = _thread.scratch.get(device.ordinal)
    if memory is None:
        memory = _thread.scratch[device.ordinal] = Scratch()
    return memory


def keep(stream: Stream, what: str, *objects: Any) -> None:
    """If the stream is being captured, keep the objects that a call uses alive with the graph."""
    if captures:
        hold(stream.handle, what, objects)


def release() -> None:
    """Release the calling thread's handles, plans, generators and workspaces; the next call creates new ones."""
    for cache in _thread.caches.values():
        cache.clear()
    _thread.scratch.clear()
    for handle in _thread.handles.values():
        handle.close()
    _thread.handles.clear()
