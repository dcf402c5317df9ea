"""Handles of the libraries: one of each for a thread and device, bound to the stream of the call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

import cudart_py as cuda
from cudart_py._lifetime import Handle  # handles are given back at the right time and never in a forked child
from cudart_py.capture import captures, find, hold
from cudart_py.device import activated

from .bindings import binding, failure

__all__ = ["LibraryHandle", "Scratch", "keep", "library_handle", "release", "scratch", "thread_cache"]

# What cuBLAS asks for on a device of compute capability 9.0 and above, and on older ones, in bytes.
WORKSPACE, SMALL_WORKSPACE = 32 << 20, 4 << 20


class LibraryHandle(Handle):
    """A library's handle on a device; `functions` are the library's bindings.

    `bind(stream)` must come before a call. cuBLAS gets a workspace from the stream's pool, which is given up in
    the order of that stream when the handle is bound to another; unless a recorded call needs it.
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
        # By stream, those that graphs work in: one for each stream, however often the handle turns.
        self._recorded: WeakValueDictionary[int, cuda.DeviceArray] = WeakValueDictionary()
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
                workspace = self._recorded.get(handle)
                if workspace is None:
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

    def record(self, stream: cuda.Stream, call: Callable[[], object]) -> cuda.ExecutableGraph:
        """Return a graph of what a call of the library queues, to be launched in the stream that it is bound to.

        It works in the same workspace as all calls in that stream, with which it stays in order.
        """
        workspace = self.workspace
        if workspace is not None:
            self._recorded[stream.handle] = workspace
        with cuda.Stream(non_blocking=True) as recorder:
            self._turn_to(recorder.handle, workspace)
            try:
                with recorder.capture() as graph:
                    hold(recorder.handle, self._name, (workspace,))
                    call()
            finally:
                self._turn_to(stream.handle, workspace)
        with graph:
            return graph.instantiate()

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

    The device is the stream's, and must be current where the handle is used.
    """
    handle = _thread.handles.get((name, device.ordinal))
    if handle is None:
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
