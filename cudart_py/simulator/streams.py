"""Streams: making them, waiting for them, and what the default ones are.

Handle 0 and CU_STREAM_LEGACY are the context's legacy default stream, CU_STREAM_PER_THREAD the calling thread's own.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CU_STREAM_PER_THREAD,
    CUcontext,
    CUdevice,
    CUresult,
    CUstream,
    CUstream_flags,
)

from . import work
from .contexts import GREATEST_PRIORITY, LEAST_PRIORITY, current
from .errors import StatusError, entry, number
from .handles import Handles
from .work import Stream, Work, enqueue

if TYPE_CHECKING:
    from .contexts import Context

__all__ = [
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy",
    "cuStreamGetCtx",
    "cuStreamGetDevice",
    "cuStreamGetFlags",
    "cuStreamGetId",
    "cuStreamGetPriority",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "find_stream",
    "submit",
]

streams: Handles[Stream] = Handles()


def find_stream(handle: Any) -> Stream:
    """Return the stream of a handle, or raise what the driver answers for a wrong one."""
    value = 0 if handle is None else int(handle)
    if value > CU_STREAM_PER_THREAD:
        stream = streams.find(value)
        if stream.context.sticky is not None:
            raise StatusError(stream.context.sticky)
        current()
        return stream
    if value < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    context = current()
    if value < CU_STREAM_PER_THREAD:
        return context.legacy
    thread = threading.get_ident()
    stream_of_thread = context.per_thread.get(thread)
    if stream_of_thread is None:
        stream_of_thread = context.per_thread[thread] = Stream(context, handle=CU_STREAM_PER_THREAD)
    return stream_of_thread


def submit(stream: Stream, operation: work.Operation | None, *others: Work) -> Work | None:
    """Put an operation into a stream, or into the graph that the stream is being captured to."""
    if work.captures:
        if stream.capture is not None:
            stream.capture.add(stream, operation)
            return None
        work.refuse_implicit(stream)
    return enqueue(stream, operation, *others)


def complete_stream(stream: Stream) -> None:
    """Run all of a stream's work; refuse while the stream is being captured."""
    if work.captures:
        if stream.capture is not None:
            stream.capture.invalidate()
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        work.refuse_implicit(stream)
        work.refuse_while_capturing()
    tail = stream.tail
    if stream.is_legacy:
        # What the legacy stream is given now would wait for the blocking streams, and so does who waits for it.
        tail = enqueue(stream, None)
    work.complete(tail)
    stream.context.raise_failure()


@entry(values=1)
def cuStreamCreate(Flags: Any) -> Any:
    """Make a stream, as cuStreamCreate."""
    return _create(number(Flags), LEAST_PRIORITY)


@entry(values=1)
def cuStreamCreateWithPriority(flags: Any, priority: Any) -> Any:
    """Make a stream with a priority, clamped to the range there is, as cuStreamCreateWithPriority."""
    return _create(number(flags), min(max(number(priority), GREATEST_PRIORITY), LEAST_PRIORITY))


def _create(flags: int, priority: int) -> Any:
    context = current()
    if flags & ~CUstream_flags.CU_STREAM_NON_BLOCKING.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    stream = Stream(context, flags=flags, priority=priority)
    stream.handle = streams.add(stream)
    context.streams[stream.handle] = stream
    return CUstream(stream.handle)


@entry()
def cuStreamDestroy(hStream: Any) -> None:
    """End a stream; its work goes on, and a capture that began on it is discarded, as cuStreamDestroy."""
    value = number(hStream)
    if value <= CU_STREAM_PER_THREAD:
        current()
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    stream = streams.find(value)
    streams.remove(value)
    stream.context.streams.pop(value, None)
    if stream.capture is not None:
        stream.capture.leave(stream)
    if stream.context.sticky is not None:
        raise StatusError(stream.context.sticky)


@entry()
def cuStreamSynchronize(hStream: Any) -> None:
    """Run all of a stream's work and what that waits for, as cuStreamSynchronize."""
    complete_stream(find_stream(hStream))


@entry()
def cuStreamQuery(hStream: Any) -> None:
    """Run one piece of a stream's work; CUDA_ERROR_NOT_READY until there was none, as cuStreamQuery."""
    stream = find_stream(hStream)
    if work.captures:
        if stream.capture is not None:
            stream.capture.invalidate()
            raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        work.refuse_implicit(stream)
    tail = stream.tail
    if stream.is_legacy:
        waiting = [other.tail for other in list(stream.context.busy) if other.blocking and other.tail is not None]
        undone = [piece for piece in waiting if not piece.done]
        tail = min(undone, key=lambda piece: piece.sequence) if undone else None
    if not work.step(tail):
        raise StatusError(CUresult.CUDA_ERROR_NOT_READY)
    stream.context.raise_failure()


@entry(values=1)
def cuStreamGetPriority(hStream: Any) -> int:
    """Return a stream's priority, as cuStreamGetPriority."""
    return find_stream(hStream).priority


@entry(values=1)
def cuStreamGetFlags(hStream: Any) -> int:
    """Return the flags that a stream was made with, as cuStreamGetFlags."""
    return find_stream(hStream).flags


@entry(values=1)
def cuStreamGetCtx(hStream: Any) -> Any:
    """Return a stream's context, as cuStreamGetCtx."""
    return CUcontext(find_stream(hStream).context.handle)


@entry(values=1)
def cuStreamGetDevice(hStream: Any) -> Any:
    """Return a stream's device, as cuStreamGetDevice."""
    return CUdevice(find_stream(hStream).context.device.ordinal)


@entry(values=1)
def cuStreamGetId(hStream: Any) -> int:
    """Return a number that only this stream has had, as cuStreamGetId."""
    return find_stream(hStream).identity


def end_context(context: Context) -> None:
    """Forget the streams of a context."""
    for handle in list(context.streams):
        streams.remove(handle)
    context.streams.clear()
