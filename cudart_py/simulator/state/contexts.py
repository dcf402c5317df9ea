"""Contexts: the primary context of each device, contexts that programs create, and each thread's current context.

A fault in a context's work is sticky: every later call in that context returns its status, until the primary context is
reset, or the program destroys the context that it created.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from cuda.bindings.driver import CUfunc_cache, CUlimit, CUresult

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
    from .queue.work import Work

_identities = itertools.count(1)


def default_limits() -> dict[int, int]:
    """Return the limits of a new context, keyed by the number of the CUlimit."""
    return {
        CUlimit.CU_LIMIT_STACK_SIZE.value: 1024,
        CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value: 7 << 20,
        CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value: 8 << 20,
        CUlimit.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT.value: 2048,
        CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY.value: 64,
        CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE.value: 0,
    }


class Context:
    """A context of a device: its default streams, limits, memory, and the fault that ended it.

    `references` counts who uses it, and it is active while that is not 0. A context that is not active returns
    CUDA_ERROR_CONTEXT_IS_DESTROYED.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.handle = next_handle()
        self.identity = next(_identities)
        self.flags = 0
        self.references = 0
        self.sticky: CUresult | None = CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED
        self.begin()

    def begin(self) -> None:
        """Set up the context with only the default stream, when it is created and again after it has ended."""
        self.limits = default_limits()
        # Limits that may no longer be set, because code that depends on them has been loaded.
        self.fixed_limits: set[int] = set()
        self.cache_preference = CUfunc_cache.CU_FUNC_CACHE_PREFER_NONE
        # The report of the fault that has ended the context, "" if none has.
        self.ended_by = ""
        self.failure: CUresult | None = None
        # A sentence that says which work was interrupted, until a call that waits for work has reported it; else "".
        self.untold = ""
        self.pending = 0
        # The work of events for which all later work of the context waits.
        self.gates: list[Work] = []
        self.busy: dict[Stream, None] = {}
        # The busy streams that were destroyed.
        self.destroyed: dict[Stream, None] = {}
        self.legacy = Stream(self, is_legacy=True)
        self.per_thread: dict[int, Stream] = {}
        self.textures: dict[int, Texture] = {}  # keyed by handle, like surfaces
        self.surfaces: dict[int, Surface] = {}
        # Keyed by handle. The graphs that own the conditions keep them alive.
        self.conditions: WeakValueDictionary[int, Condition] = WeakValueDictionary()
        self.peers: set[Device] = set()
        self.memory = ContextMemory(self)
        self.clock = ptx.Clock(attribute("CLOCK_RATE"))

    @property
    def active(self) -> bool:
        """Return whether the context is retained."""
        return self.references > 0

    def reaches(self, allocation: memory.Allocation) -> bool:
        """Return whether this context's kernels may access an allocation."""
        owner = allocation.device
        if allocation.kind == memory.HEAP:
            return allocation.context is self
        if allocation.kind == memory.PINNED and allocation.pool is not None:
            return self.device in allocation.pool.access
        if allocation.kind != memory.DEVICE:
            return True
        if allocation.access is not None:
            return self.device in allocation.access
        # Each pool has its own set of devices that may access its memory. No context owns that memory.
        if allocation.pool is not None:
            return owner is self.device or self.device in allocation.pool.access
        return owner is self.device or owner in self.peers

    def after_work(self) -> None:
        """Run the frees in destroyed streams, and make the pools release memory, as at every synchronization."""
        if self.destroyed:
            settle(self)
        for pool in list(self.device.pools.values()):
            pool.release_excess()

    def tell(self) -> None:
        """Raise CUDA_ERROR_ILLEGAL_STATE, once, if work was interrupted, before any other work runs."""
        if self.untold:
            text = self.untold
            if not of_thread.finalizing:
                self.untold = ""
            raise broken_off(text)

    def raise_failure(self) -> None:
        """Raise the sticky status, or, once, the status of work that failed without ending the context.

        The latter is not raised in a finalizer, where it would be lost.
        """
        if self.sticky is not None:
            raise StatusError(self.sticky)
        if self.failure is not None and not of_thread.finalizing:
            status, self.failure = self.failure, None
            raise StatusError(status)


class _ContextStacks(threading.local):
    """The stack of contexts of each thread, the current one last, and whether the thread is in a finalizer."""

    def __init__(self) -> None:
        self.stack: list[Context] = []
        self.finalizing = False


of_thread = _ContextStacks()


def in_a_call() -> bool:
    """Return whether the thread is in the middle of a driver call, but not in a host function that the call runs."""
    return progress.here and not runner.in_callback


def in_finalizer(function: Callable[[], None]) -> None:
    """Call a function from a finalizer; keep findings, and errors that end no context, for a later call.

    They are kept because the results of a finalizer's calls are lost. If any call of the driver is in progress, the
    function is called when that call returns.
    """
    if not call_if_idle(function):
        progress.postponed.append(partial(call_if_idle, function))


def call_if_idle(function: Callable[[], None]) -> bool:
    """Call a finalizer's function, or return False if a call of the driver is in progress."""
    # The finalizer may run in the middle of a call, perhaps of one that changes the same tables as the function. Nor
    # may it wait for a call of another thread, which may itself wait for a lock that this thread holds. Nor may a
    # finalizer in a signal handler wait for the running work, which the handler may be about to interrupt.
    taken: list[bool] = []
    before = of_thread.finalizing
    try:
        if not progress.here:
            take(progress.lock, taken, blocking=False)
        is_idle = bool(taken) and not runner.running
        if is_idle:
            of_thread.finalizing = True
            function()
        return is_idle
    finally:
        of_thread.finalizing = before
        if taken:
            progress.lock.release()


def take_report() -> str | None:
    """Return the report of a refusal or of the last fault, and clear it.

    In a finalizer, whose errors are lost, return None and keep the report for a later call.
    """
    if of_thread.finalizing:
        return None
    refusal, progress.refusal = progress.refusal, None
    return refusal or fault_reports.take_report()


def lost_by() -> str | None:
    """Return the report of the fault that ended the current context, or else another context; None if none ended."""
    contexts = (*of_thread.stack[-1:], *_contexts.values())
    return next((context.ended_by for context in contexts if context.ended_by), None)


_contexts: dict[int, Context] = {}
# The handles of the contexts that programs have destroyed.
_destroyed: set[int] = set()


def current() -> Context:
    """Return the calling thread's context, or raise the status that the driver returns without a usable context."""
    stack = of_thread.stack
    if not stack:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    context = stack[-1]
    if context.sticky is not None:
        raise StatusError(context.sticky)
    return context


def check_current() -> None:
    """Raise the status of the calling thread's context if a fault has ended it; the thread may have no context."""
    if of_thread.stack:
        current()


def current_or(owner: Context) -> Context:
    """Return the calling thread's context, or `owner` if it has none."""
    return current() if of_thread.stack else owner


def all_active() -> list[Context]:
    """Return the contexts that are retained and that no fault has ended."""
    return [context for context in _contexts.values() if context.active and context.sticky is None]


def find_context(ctx: Any) -> Context:
    """Return the context that a handle refers to.

    Raises CUDA_ERROR_CONTEXT_IS_DESTROYED for one that was destroyed, or else CUDA_ERROR_INVALID_CONTEXT.
    """
    handle = number(ctx)
    context = _contexts.get(handle)
    if context is None:
        known = handle in _destroyed
        raise StatusError(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED if known else CUresult.CUDA_ERROR_INVALID_CONTEXT)
    return context


def given_context(ctx: Any) -> Context:
    """Return the context that a handle refers to, by default the current one."""
    return find_context(ctx) if number(ctx) else current()


def create(device: Device, flags: int) -> Context:
    """Return a new context of a device with one reference, in addition to the primary context."""
    context = Context(device)
    context.flags, context.references, context.sticky = flags, 1, None
    _contexts[context.handle] = context
    return context


def forget(context: Context) -> None:
    """Forget a context that a program created and has destroyed; threads may still have it as their current one."""
    del _contexts[context.handle]
    _destroyed.add(context.handle)


def all_contexts() -> list[Context]:
    """Return all contexts that exist, active or not."""
    return list(_contexts.values())


def primary(device: Device) -> Context:
    """Return a device's primary context, active or not; the first call creates it."""
    if device.primary is None:
        device.primary = Context(device)
        _contexts[device.primary.handle] = device.primary
    return device.primary
