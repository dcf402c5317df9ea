"""The lookup of streams by handle, and the submission of work to them.

Handle 0 and CU_STREAM_LEGACY are the context's legacy default stream, and CU_STREAM_PER_THREAD is the calling thread's
default stream.
"""

from __future__ import annotations

import threading
from typing import Any

from cuda.bindings.driver import CU_STREAM_PER_THREAD, CUresult

from .contexts import Context, current
from .errors import StatusError
from .handles import Handles
from .queue import captures
from .queue.operations import Operation
from .queue.scheduling import complete, enqueue
from .queue.stream import Stream
from .queue.work import Work

LEAST_PRIORITY = 0
GREATEST_PRIORITY = -5

streams: Handles[Stream] = Handles()


def valid_priority(priority: Any) -> int:
    """Return a priority clamped to the valid range."""
    return min(max(int(priority), GREATEST_PRIORITY), LEAST_PRIORITY)


def find_stream(handle: Any) -> Stream:
    """Return the stream that a handle refers to, or raise the status that the driver returns for an invalid handle.

    Only default streams need a current context.
    """
    value = 0 if handle is None else int(handle)
    if value > CU_STREAM_PER_THREAD:
        stream = streams.find(value)
        if stream.context.sticky is not None:
            raise StatusError(stream.context.sticky)
        if stream.green is not None and stream.green.destroyed:
            raise StatusError(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED)
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


def submit(stream: Stream, operation: Operation | None, *others: Work) -> Work | None:
    """Submit an operation to a stream and return its work; during a capture, add it to the graph and return None."""
    if captures.active:
        if stream.capture is not None:
            stream.capture.add(stream, operation)
            return None
        captures.refuse_implicit(stream)
    return enqueue(stream, operation, *others)


def refuse_in_capture(stream: Stream) -> None:
    """Invalidate the capture of a stream, if any, and raise CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED."""
    if stream.capture is not None:
        stream.capture.invalidate()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)


def refuse_captured(stream: Stream) -> None:
    """Raise the status that the driver returns if a capture forbids querying or synchronizing a stream."""
    if captures.active:
        refuse_in_capture(stream)
        captures.refuse_implicit(stream)
        captures.refuse_unsafe()


def complete_stream(stream: Stream) -> None:
    """Run all of a stream's work, or raise the driver's status if a capture forbids that."""
    refuse_captured(stream)
    tail = stream.tail
    if stream.is_legacy:
        # New work in the legacy stream would wait for the blocking streams, so its synchronisation waits for them too.
        tail = enqueue(stream, None)
    complete(tail)
    stream.context.raise_failure()


def run_now(stream: Stream, operation: Operation) -> None:
    """Run all of a stream's work and then an operation, and raise the first failure."""
    submitted = submit(stream, operation)
    if submitted is not None:
        try:
            complete(submitted)
        except BaseException:
            # Interrupted: drop the operation, because the host's memory may be gone when the rest of the queue runs.
            submitted.operation = None
            raise
        stream.context.raise_failure()


def end_context(context: Context) -> None:
    """Forget the streams of a context."""
    streams.remove_all(lambda stream: stream.context is context)
