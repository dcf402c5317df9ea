"""Handles of the libraries: one of each for a thread and device, bound to the stream of the call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..context.capture import captures, find, hold
from ..context.current import activated
from ..context.device import Device
from ..context.lifetimes import Handle  # handles are given back at the right time and never in a forked child
from ..context.resetting import at_reset
from ..driver.calls import library
from ..errors import CaptureError
from ..memory.array import DeviceArray
from ..memory.creation import empty
from ..streams.stream import Stream
from .failures import failure

# The workspace that cuBLAS asks for on a device of compute capability 9.0 and above, and on older ones, in bytes.
WORKSPACE, SMALL_WORKSPACE = 32 << 20, 4 << 20


class LibraryHandle(Handle):
    """A library's handle on a device; `functions` are the library's bindings.

    `bind(stream)` must come before a call. cuBLAS gets a workspace from the stream's pool, which is given up in
    the order of that stream when the handle is bound to another.
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
        """Queue later calls in a stream (cublasSetStream and others); CaptureError where that is too late."""
        handle = stream.handle
        if handle == self.bound:
            return
        if self._name == "cublasLt":  # takes its stream with each call
            return
        workspace = None
        with activated(self.device):
            if self._name == "cublas":
                _refuse_first_use(handle, "cuBLAS")
                workspace = empty(workspace_size(self.device), np.uint8, stream=stream)
            self._turn_to(handle, workspace)
        # Dropped, not closed: a graph may hold it.
        self.workspace = workspace

    def _turn_to(self, stream: int, workspace: DeviceArray | None) -> None:
        self.bound = 0
        try:
            self.functions.set_stream(self.native, stream)
            if workspace is not None:
                # Setting the stream has taken the old one away.
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
    """Return the bytes of workspace with which cuBLAS chooses freely among its algorithms."""
    return WORKSPACE if device.compute_capability >= (9, 0) else SMALL_WORKSPACE


def _refuse_first_use(stream: int, what: str) -> None:
    if captures and find(stream) is not None:
        raise CaptureError(
            f"{what} allocates memory at its first call in a stream, which is not allowed during a capture: call it "
            "once in this stream before the capture begins"
        )


class Scratch:
    """Memory that a library works in, one piece for a thread and device: it grows and moves to the stream in use."""

    __slots__ = ("_memory", "_stream")

    def __init__(self) -> None:
        self._memory: DeviceArray | None = None
        self._stream = 0

    def get(self, nbytes: int, stream: Stream) -> DeviceArray:
        """Return at least so many bytes that later work in the stream may overwrite."""
        memory = self._memory
        if memory is None or memory.nbytes < nbytes or self._stream != stream.handle:
            _refuse_first_use(stream.handle, "the library")
            # The old piece goes first, in the order of its stream, so that the pool can give it out again.
            self._memory = memory = None
            self._memory = memory = empty(max(nbytes, 1), np.uint8, stream=stream)
            self._stream = stream.handle
        return memory


class _Thread(threading.local):
    def __init__(self) -> None:
        self.handles: dict[tuple[str, int], LibraryHandle] = {}
        self.scratch: dict[int, Scratch] = {}
        self.caches: dict[str, dict[Any, Any]] = {}


_thread = _Thread()


def _forget_all() -> None:
    """Forget what all threads have, when a reset has closed it; each makes again what it needs."""
    global _thread
    _thread = _Thread()


at_reset(_forget_all)


def thread_cache(name: str) -> dict[Any, Any]:
    """Return a cache of the calling thread, for what a stream or a pointer is set in and threads must not share."""
    found = _thread.caches.get(name)
    if found is None:
        found = _thread.caches[name] = {}
    return found


def library_handle(name: str, stream: Stream, device: Device) -> LibraryHandle:
    """Return the calling thread's handle ("cublas", "cublasLt", "cusparse", "cusolverDn"), bound to a stream.

    The device is the stream's, and must be current where the handle is used. Raises CaptureError where the thread has
    none yet and the stream is captured: making one would invalidate the capture.
    """
    handle = _thread.handles.get((name, device.ordinal))
    if handle is None:
        _refuse_first_use(stream.handle, name)
        handle = _thread.handles[name, device.ordinal] = LibraryHandle(name, device)
    if handle.bound != stream.handle:
        handle.bind(stream)
    return handle


def scratch(device: Device) -> Scratch:
    """Return the calling thread's scratch memory on a device."""
    found = _thread.scratch.get(device.ordinal)
    if found is None:
        found = _thread.scratch[device.ordinal] = Scratch()
    return found


def keep(stream: Stream, what: str, *objects: Any) -> None:
    """Keep what a call uses alive with the graph that its stream records into, if there is one."""
    if captures:
        hold(stream.handle, what, objects)


def release() -> None:
    """Release the calling thread's handles, plans, generators and memory; the next call creates new ones."""
    for cache in _thread.caches.values():
        cache.clear()
    _thread.scratch.clear()
    for handle in _thread.handles.values():
        handle.close()
    _thread.handles.clear()
