"""Contexts: the primary context of each device, and which one each thread has current.

A fault in a context's work is sticky: every later call in that context answers its status, until the primary
context is reset.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from cuda.bindings.driver import CUlimit, CUresult

from ...host.locks import take
from .. import ptx
from . import fault_reports, memory
from .arguments import number
from .attributes import attribute
from .devices import Device
from .errors import StatusError
from .handles import next_handle
from .memory.context_memory import ContextMemory
from .progress import progress
from .queue.runner import runner
from .queue.scheduling import broken_off, settle
from .queue.stream import Stream

if TYPE_CHECKING:
    from ..ptx.operations.surfaces import Surface
    from ..ptx.operations.textures import Texture
    from .queue.conditionals import Condition


def default_limits() -> dict[int, int]:
    """Return the limits that a new context has, by the number of the limit."""
    return {
        CUlimit.CU_LIMIT_STACK_SIZE.value: 1024,
        CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value: 7 << 20,
        CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value: 8 << 20,
        CUlimit.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT.value: 2048,
        CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY.value: 64,
        CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE.value: 0,
    }


class Context:
    """The primary context of a device: its default streams, limits, memory, and the fault that ended it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.handle = next_handle()
        self.flags = 0
        self.references = 0
        self.sticky: CUresult | None = CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED
        self.begin()

    def begin(self) -> None:
        """Begin with nothing but the default stream: when the context is made, and after its end."""
        self.limits = default_limits()
        # Limits that may no longer be set, since code that depends on them was loaded.
        self.fixed_limits: set[int] = set()
        # The report of the fault that has ended the context, "" before.
        self.ended_by = ""
        self.failure: CUresult | None = None
        # A text that says what was broken off, until a call that waits for the work has reported it.
        self.untold = ""
        self.pending = 0
        self.busy: dict[Stream, None] = {}
        # The busy streams that were destroyed.
        self.destroyed: dict[Stream, None] = {}
        self.legacy = Stream(self, is_legacy=True)
        self.per_thread: dict[int, Stream] = {}
        self.textures: dict[int, Texture] = {}  # by handle, and so are surfaces
        self.surfaces: dict[int, Surface] = {}
        # By handle; the graphs that have them keep them alive.
        self.conditions: WeakValueDictionary[int, Condition] = WeakValueDictionary()
        self.peers: set[Device] = set()
        self.memory = ContextMemory(self)
        self.clock = ptx.Clock(attribute("CLOCK_RATE"))

    @property
    def active(self) -> bool:
        """Return whether somebody has retained the context."""
        return self.references > 0

    def reaches(self, allocation: memory.Allocation) -> bool:
        """Return whether this context's kernels may touch an allocation."""
        owner = allocation.device
        if allocation.kind == memory.HEAP:
            return allocation.context is self
        if allocation.kind != memory.DEVICE or owner is self.device:
            return True
        # Each pool has a list of its own of the devices that may touch its memory.
        return owner in self.peers if allocation.pool is None else self.device in allocation.pool.access

    def after_work(self) -> None:
        """Let frees in destroyed streams happen, and let the pools release memory, as at every synchronization."""
        if self.destroyed:
            settle(self)
        for pool in list(self.device.pools.values()):
            pool.release_excess()

    def tell(self) -> None:
        """Raise CUDA_ERROR_ILLEGAL_STATE, once, before anything runs after work that was broken off."""
        if self.untold:
            text = self.untold
            if not of_thread.finalizing:
                self.untold = ""
            raise broken_off(text)

    def raise_failure(self) -> None:
        """Raise the sticky status, or once the status of work that failed without ending the context.

        A finalizer is not told of the latter, since it would be lost there.
        """
        if self.sticky is not None:
            raise StatusError(self.sticky)
        if self.failure is not None and not of_thread.finalizing:
            status, self.failure = self.failure, None
            raise StatusError(status)


class _ContextStacks(threading.local):
    """The stack of contexts of each thread, the current one last, and whether it is in a finalizer."""

    def __init__(self) -> None:
        self.stack: list[Context] = []
        self.finalizing = False


of_thread = _ContextStacks()


def in_a_call() -> bool:
    """Return whether the thread is in the middle of a call, where others are refused; not in a host function."""
    return progress.here and not runner.in_callback


def in_finalizer(function: Callable[[], None]) -> None:
    """Call a function, and keep errors that end no context, and findings, for a later call.

    Nobody sees what a finalizer's calls return. While any call of the driver is in progress, it is called when that
    returns.
    """
    # It may be in the middle of a call, perhaps of one that changes what the function would. Nor may it wait for a call
    # of another thread, which may wait for a lock that this thread has.
    taken: list[bool] = []
    before = of_thread.finalizing
    try:
        if not progress.here:
            take(progress.lock, taken, blocking=False)
        if taken:
            of_thread.finalizing = True
            function()
        else:
            progress.postponed.append(partial(in_finalizer, function))
    finally:
        of_thread.finalizing = before
        if taken:
            progress.lock.release()


def take_report() -> str | None:
    """Return the report of a refusal or of the last fault, once.

    In a finalizer, whose errors nobody sees, it stays for a later one.
    """
    if of_thread.finalizing:
        return None
    refusal, progress.refusal = progress.refusal, None
    return refusal or fault_reports.take_report()


def lost_by() -> str | None:
    """Return what ended the current context, or another one if that is sound; None where no fault has ended any."""
    contexts = (*of_thread.stack[-1:], *_contexts.values())
    return next((context.ended_by for context in contexts if context.ended_by), None)


_contexts: dict[int, Context] = {}


def current() -> Context:
    """Return the calling thread's context, or raise what a call without a usable one answers."""
    stack = of_thread.stack
    if not stack:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    context = stack[-1]
    if context.sticky is not None:
        raise StatusError(context.sticky)
    return context


def all_active() -> list[Context]:
    """Return the contexts that somebody has retained and no fault has ended."""
    return [context for context in _contexts.values() if context.active and context.sticky is None]


def find_context(ctx: Any) -> Context:
    """Return the context of a handle, or raise CUDA_ERROR_INVALID_CONTEXT."""
    context = _contexts.get(number(ctx))
    if context is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    return context


def primary(device: Device) -> Context:
    """Return a device's primary context, made at the first call, active or not."""
    if device.primary is None:
        device.primary = Context(device)
        _contexts[device.primary.handle] = device.primary
    return device.primary
