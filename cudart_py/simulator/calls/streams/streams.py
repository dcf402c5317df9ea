"""Streams: creating, querying and destroying them, and waiting for their work."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CU_STREAM_PER_THREAD, CUcontext, CUdevice, CUresult, CUstream, CUstream_flags

from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.queue.scheduling import settle, step
from ...state.queue.stream import Stream
from ...state.queue.work import hear
from ...state.streams import (
    LEAST_PRIORITY,
    complete_stream,
    find_stream,
    refuse_captured,
    refuse_in_capture,
    streams,
    valid_priority,
)
from ..entry import entry


@entry(values=1)
def cuStreamCreate(Flags: Any) -> Any:
    """Create a stream (cuStreamCreate)."""
    return _create(number(Flags), LEAST_PRIORITY)


@entry(values=1)
def cuStreamCreateWithPriority(flags: Any, priority: Any) -> Any:
    """Create a stream with a priority, clamped to the valid range (cuStreamCreateWithPriority)."""
    return _create(number(flags), valid_priority(priority))


def _create(flags: int, priority: int) -> Any:
    if flags & ~CUstream_flags.CU_STREAM_NON_BLOCKING.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    stream = Stream(current(), flags=flags, priority=priority)
    stream.handle = streams.add(stream)
    return CUstream(stream.handle)


@entry(frees=True)
def cuStreamDestroy(hStream: Any) -> None:
    """Destroy a stream; its work stays queued, and a capture that began on it is discarded (cuStreamDestroy)."""
    value = number(hStream)
    if value <= CU_STREAM_PER_THREAD:
        current()
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    stream = streams.find(value)
    streams.remove(value)
    if stream.capture is not None:
        stream.capture.leave(stream)
    stream.context.destroyed[stream] = None
    settle(stream.context)
    if stream.context.sticky is not None:
        raise StatusError(stream.context.sticky)
    if stream.green is not None and stream.green.destroyed:
        raise StatusError(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED)


@entry()
def cuStreamSynchronize(hStream: Any) -> None:
    """Run all of a stream's work and the work for which it waits (cuStreamSynchronize)."""
    complete_stream(find_stream(hStream))


@entry()
def cuStreamQuery(hStream: Any) -> None:
    """Run one piece of a stream's work; return CUDA_ERROR_NOT_READY if there was one to run (cuStreamQuery)."""
    stream = find_stream(hStream)
    refuse_captured(stream)
    tail = stream.tail
    if stream.is_legacy:
        waiting = [other.tail for other in list(stream.context.busy) if other.blocking and other.tail is not None]
        undone = [piece for piece in waiting if not piece.done]
        tail = min(undone, key=lambda piece: piece.sequence) if undone else None
        if not undone:
            hear(*waiting)
    if not step(tail):
        raise StatusError(CUresult.CUDA_ERROR_NOT_READY)
    stream.context.raise_failure()


@entry(values=1)
def cuStreamGetPriority(hStream: Any) -> int:
    """Return a stream's priority (cuStreamGetPriority)."""
    return find_stream(hStream).priority


@entry(values=1)
def cuStreamGetFlags(hStream: Any) -> int:
    """Return the flags with which a stream was created, unless it is being captured (cuStreamGetFlags)."""
    stream = find_stream(hStream)
    refuse_in_capture(stream)
    return stream.flags


@entry(values=1)
def cuStreamGetCtx(hStream: Any) -> Any:
    """Return a stream's context (cuStreamGetCtx)."""
    return CUcontext(find_stream(hStream).context.handle)


@entry(values=1)
def cuStreamGetDevice(hStream: Any) -> Any:
    """Return a stream's device, unless it is being captured (cuStreamGetDevice)."""
    stream = find_stream(hStream)
    refuse_in_capture(stream)
    return CUdevice(stream.context.device.ordinal)


@entry(values=1)
def cuStreamGetId(hStream: Any) -> int:
    """Return a stream's number, which is never reused, unless the stream is being captured (cuStreamGetId)."""
    stream = find_stream(hStream)
    refuse_in_capture(stream)
    return stream.identity
