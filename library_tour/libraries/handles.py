"""Handles of the libraries: one of each for a thread and device, bound to the stream of the call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import cudart_py as cuda
from cudart_py._lifetime import Handle  # handles are given back at the right time and never in a forked child
from cudart_py.capture import captures, find, hold
from cudart_py.device import activated

from .bindings import binding, failure

__all__ = ["LibraryHandle", "RecordedCall", "Scratch", "keep", "library_handle", "release", "scratch", "thread_cache"]

# The stream's handle and the rest of what makes a call the same one.
RecordedCall = tuple[int, ...]

# What cuBLAS asks for on a device of compute capability 9.0 and above, and on older ones, in bytes.
WORKSPACE, SMALL_WORKSPACE = 32 << 20, 4 << 20
# Each stream whose calls are recorded has a workspace of its own as long as it lives.
MOST_RECORDED_STREAMS = 8


class Recordings:
    """The graphs of a stream's calls, and the workspace that these share, since they stay in order."""

    __slots__ = ("_graphs", "_stream", "workspace")

    def __init__(self, stream: int, graphs: dict[RecordedCall, cuda.ExecutableGraph], nbytes: int) -> None:
        self._stream, self._graphs = stream, graphs
        # Memory of the stream itself would keep that alive. This is freed when all work is done, its stream being gone.
        with cuda.Stream(non_blocking=True) as briefly:
            self.workspace = cuda.empty(nbytes, np.uint8, stream=briefly)
            briefly.synchronize()

    def __del__(self) -> None:
        # Another stream may come by this one's number, and the workspace is free for others.
        for call in list(self._graphs):
            if call[0] == self._stream:
                self._graphs.pop(call, None)


class LibraryHandle(Handle):
    """A library's handle on a device; `functions` are the library's bindings.

    `bind(stream)` must come before a call. cuBLAS gets a workspace from the stream's pool, which is given up in
    the order of that stream when the handle is bound to another; or the one of the stream's recorded calls.
    """

    __slots__ = ("_name", "_recorded", "bound", "device", "functions", "native", "workspace")

    def __init__(self, name: str, device: cuda.Device) -> None:
        self._value = None
        self._owned = True
        self._name = name
        self.device = device
        self.functions = binding(name)
        self.bound = 0
        self.workspace: cuda.DeviceArray | None = None
        self._recorded: WeakKeyDictionary[cuda.Stream, Recordings] = WeakKeyDictionary()
        with activated(device):
            try:
                self.native: int = self.functions.create()
            except Exception as error:
                raise failure(f"{name}Create", error) from error
        self._value = self.native

    def bind(self, stream: cuda.Stream) -> None:
        """Queue later calls in a stream (cublasSetStream and its kin); CaptureError where that is too late."""
        handle = stream.handle
        if handle == self.bound:
            return
        if self._name == "cublasLt":  # takes its stream with each call
            return
        workspace = None
        with activated(self.device):
            if self._name == "cublas":
                self._forget_closed_streams()
                recordings = self._recorded.get(stream)
                if recordings is not None:
                    workspace = recordings.workspace
                else:
                    _refuse_first_use(handle, "cuBLAS")
                    workspace = cuda.empty(workspace_size(self.device), np.uint8, stream=stream)
            self._turn_to(handle, workspace)
        # Dropped, not closed: a graph may hold it.
        self.workspace = workspace

    def _turn_to(self, stream: int, workspace: cuda.DeviceArray | None) -> None:
        self.bound = 0
        try:
            self.functions.set_stream(self.native, stream)
            if workspace is not None:
                # Setting the stream has taken the old one away.
                self.functions.set_workspace(self.native, workspace.pointer, workspace.nbytes)
        except Exception as error:
            raise failure(f"{self._name}SetStream", error) from error
        self.bound = stream

    def _forget_closed_streams(self) -> None:
        for stream in [stream for stream in self._recorded if stream.closed]:
            del self._recorded[stream]

    def record(
        self,
        stream: cuda.Stream,
        graphs: dict[RecordedCall, cuda.ExecutableGraph],
        key: RecordedCall,
        call: Callable[[], object],
    ) -> bool:
        """Put a graph of what a call of cuBLAS queues into `graphs`, to be launched in the stream that it is bound to.

        It goes when the stream is closed or dropped. Returns False, with nothing done, for a borrowed stream, of which
        nobody says when it ends, and while `MOST_RECORDED_STREAMS` others live. Raises CudaError where the driver
        refuses; later calls are unharmed.
        """
        if not (stream._owned or stream in (cuda.legacy_default, cuda.per_thread_default)):
            return False
        recordings = self._recorded.get(stream)
        if recordings is None:
            self._forget_closed_streams()
            if len(self._recorded) >= MOST_RECORDED_STREAMS:
                return False
            recordings = Recordings(stream.handle, graphs, workspace_size(self.device))
        workspace = recordings.workspace
        with cuda.Stream(non_blocking=True) as recorder:
            self._turn_to(recorder.handle, workspace)
            try:
                with recorder.capture() as graph:
                    call()
            finally:
                self._turn_to(stream.handle, workspace)
                self.workspace = workspace
        with graph:
            graphs[key] = graph.instantiate()
        self._recorded[stream] = recordings
        return True

    def _release(self, value: Any) -> None:
        with activated(self.device):
            self.functions.destroy(value)


def workspace_size(device: cuda.Device) -> int:
    """Return the bytes of workspace with which cuBLAS chooses freely among its algorithms."""
    return WORKSPACE if device.compute_capability >= (9, 0) else SMALL_WORKSPACE


def _refuse_first_use(stream: int, what: str) -> None:
    if captures and find(stream) is not None:
        raise cuda.CaptureError(
            f"{what} needs memory at its first call in a stream, and none can be allocated in a capture: call it once "
            "in this stream before the capture begins"
        )


class Scratch:
    """Memory that a library works in, one piece for a thread and device: it grows and moves to the stream in use."""

    __slots__ = ("_memory", "_stream")

    def __init__(self) -> None:
        self._memory: cuda.DeviceArray | None = None
        self._stream = 0

    def get(self, nbytes: int, stream: cuda.Stream) -> cuda.DeviceArray:
        """Return at least so many bytes that later work in the stream may overwrite."""
        memory = self._memory
        if memory is None or memory.nbytes < nbytes or self._stream != stream.handle:
            _refuse_first_use(stream.handle, "the library")
            # The old piece goes first, in the order of its stream, so that the pool can give it out again.
            self._memory = memory = None
            self._memory = memory = cuda.empty(max(nbytes, 1), np.uint8, stream=stream)
            self._stream = stream.handle
        return memory


class _Thread(threading.local):
    def __init__(self) -> None:
        self.handles: dict[tuple[str, int], LibraryHandle] = {}
        self.scratch: dict[int, Scratch] = {}
        self.caches: dict[str, dict[Any, Any]] = {}


_thread = _Thread()


def thread_cache(name: str) -> dict[Any, Any]:
    """Return a cache of the calling thread, for what a stream or a pointer is set in and threads must not share."""
    found = _thread.caches.get(name)
    if found is None:
        found = _thread.caches[name] = {}
    return found


def library_handle(name: str, stream: cuda.Stream, device: cuda.Device) -> LibraryHandle:
    """Return the calling thread's handle ("cublas", "cublasLt", "cusparse", "cusolverDn"), bound to a stream.

    The device is the stream's, and must be current where the handle is used. Raises CaptureError where the thread has
    none yet and the stream is captured: to make one would spoil the capture.
    """
    handle = _thread.handles.get((name, device.ordinal))
    if handle is None:
        _refuse_first_use(stream.handle, name)
        handle = _thread.handles[name, device.ordinal] = LibraryHandle(name, device)
    if handle.bound != stream._value:
        handle.bind(stream)
    return handle


def scratch(device: cuda.Device) -> Scratch:
    """Return the calling thread's scratch memory on a device."""
    found = _thread.scratch.get(device.ordinal)
    if found is None:
        found = _thread.scratch[device.ordinal] = Scratch()
    return found


def keep(stream: cuda.Stream, what: str, *objects: Any) -> None:
    """Keep what a call uses alive with the graph that its stream records into, if there is one."""
    if captures:
        hold(stream.handle, what, objects)


def release() -> None:
    """Give back the calling thread's handles, plans, generators and memory; the next call makes new ones."""
    for cache in _thread.caches.values():
        cache.clear()
    _thread.scratch.clear()
    for handle in _thread.handles.values():
        handle.close()
    _thread.handles.clear()
