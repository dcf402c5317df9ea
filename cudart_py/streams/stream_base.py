"""The base class of all streams: a handle and its device.

Events, graphs and host functions need only this part of a stream. `Stream` adds the methods that create them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import arguments
from ..context.capture import LEGACY, PER_THREAD
from ..context.current import activated, this_thread
from ..context.device import Device, current_device
from ..context.lifetimes import ComparedHandle
from ..driver import enums
from ..driver.unwrap import failure


class StreamBase(ComparedHandle):
    """A stream's handle and device. `_device` is None for the default streams, which belong to the current device."""

    __slots__ = ("_device", "_queue", "_used")

    _device: Device | None
    # The CUstream. None before it is created, for a closed stream, and for a borrowed default stream of a given device.
    _queue: Any
    # Whether the handle has been read, so the stream may have received work.
    _used: bool

    @property
    def handle(self) -> int:
        """The driver's handle as an int, for raw `cuda.bindings` calls; raises ValueError when closed."""
        # Callers that queue no work use `_open_handle` instead.
        self._used = True
        return self._open_handle()

    @property
    def native(self) -> Any:
        """The CUstream object, which the bindings accept faster than an int; raises ValueError when closed."""
        if self._queue is None:
            queue = enums.CUstream(self.handle)
            # A borrowed default stream is its device's default stream only while that device is current, and the fast
            # paths, which use `_queue`, do not check that.
            if self._device is not None and self._value in (LEGACY, PER_THREAD):
                return queue
            self._queue = queue
        return self._queue

    @property
    def device(self) -> Device:
        """The stream's device; for the default streams, the calling thread's current device."""
        return self._device if self._device is not None else current_device()

    def _lose(self) -> None:
        # The default streams remain valid after a reset.
        if self._value not in (LEGACY, PER_THREAD):
            self._queue = None
            super()._lose()

    def _ask(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
        """Call a driver function with this stream while its device is current, and return the status."""
        native = self.native
        here = this_thread.device
        if here is not None and (here is self._device or self._device is None):
            return function(native, *arguments)[0]
        with activated(self.device):
            return function(native, *arguments)[0]


class _LegacyDefault(StreamBase):
    """The legacy default stream, on the current device."""

    __slots__ = ()

    def __init__(self) -> None:
        self._value = LEGACY
        self._owned = False
        self._queue = None
        self._device = None


_legacy_default = _LegacyDefault()


def resolved(call: str, stream: StreamBase | None) -> StreamBase:
    """Return the argument `stream` of a call, or the legacy default stream for None.

    Raises TypeError for an object that is not a Stream and ValueError for a closed one.
    """
    if stream is None:
        return _legacy_default
    return arguments.opened(call, "stream", stream, StreamBase, "a cudart_py Stream or None")


def finished(status: Any, call: str) -> bool:
    """Return whether the status of a query says that the work is done; raise on any failure."""
    if not status:
        return True
    if status.name == "CUDA_ERROR_NOT_READY":
        return False
    raise failure(status, call)
