"""Streams as the queue sees them: the last piece of work of each, and the capture that replaces work."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from cuda.bindings.driver import CU_STREAM_PER_THREAD

if TYPE_CHECKING:
    from ..contexts import Context
    from ..partitions import GreenContext
    from .captures import Capture
    from .work import Work

# The remedy in reports for work of two streams that nothing orders.
UNORDERED_STREAMS = "use the same stream for both (stream=s), or make one stream wait for the other"

_identities = itertools.count()
# Keyed by their identities.
_streams: WeakValueDictionary[int, Stream] = WeakValueDictionary()


def name_of(identity: int) -> str:
    """Return the name of the stream with an identity, for reports."""
    stream = _streams.get(identity)
    return "a destroyed stream" if stream is None else str(stream)


class Stream:
    """A stream of a context; `tail` is its last piece of work, and `capture` the capture that it is part of."""

    __slots__ = (
        "__weakref__",
        "attributes",
        "blocking",
        "capture",
        "context",
        "flags",
        "green",
        "handle",
        "identity",
        "is_legacy",
        "priority",
        "tail",
    )

    def __init__(
        self,
        context: Context,
        *,
        handle: int = 0,
        flags: int = 0,
        priority: int = 0,
        is_legacy: bool = False,
        green: GreenContext | None = None,
    ) -> None:
        self.context = context
        self.handle = handle
        self.flags = flags
        self.priority = priority
        self.blocking = not flags & 1
        self.is_legacy = is_legacy
        # The green context in which it was created. Its kernels run on that context's multiprocessors only.
        self.green = green
        self.identity = next(_identities)
        _streams[self.identity] = self
        self.tail: Work | None = None
        self.capture: Capture | None = None
        self.attributes: dict[int, object] = {}

    def __str__(self) -> str:
        if self.is_legacy:
            return "the legacy default stream"
        return "the per-thread default stream" if self.handle == CU_STREAM_PER_THREAD else f"stream {self.handle:#x}"
