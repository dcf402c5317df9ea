"""Contexts: the primary context of each device, and which one each thread has current.

A fault in a context's work is sticky: every later call in that context answers its status, until the primary
context is reset.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import CUcontext, CUctx_flags, CUdevice, CUlimit, CUresult, CUstreamCaptureMode

from . import kernel_memory, memory, ptx, work
from .devices import Device, attribute, find_device, require_initialised
from .errors import StatusError, entry, number
from .handles import next_handle

if TYPE_CHECKING:
    from .modules import Module
    from .pools import Pool

__all__ = [
    "Context",
    "all_active",
    "cuCtxDisablePeerAccess",
    "cuCtxEnablePeerAccess",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetFlags",
    "cuCtxGetLimit",
    "cuCtxGetStreamPriorityRange",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuCtxResetPersistingL2Cache",
    "cuCtxSetCurrent",
    "cuCtxSetLimit",
    "cuCtxSynchronize",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxSetFlags",
    "current",
    "current_for_unsafe",
    "default_limits",
    "find_context",
]

LEAST_PRIORITY = 0
GREATEST_PRIORITY = -5
_LARGEST_STACK = 512 << 10
# What an H200 gives to those who ask for less.
_SMALLEST_PRINTF_FIFO = 512 << 10


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
    """The primary context of a device: its streams, modules, limits, and the fault that ended it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.handle = next_handle()
        self.flags = 0
        self.references = 0
        self.sticky: CUresult | None = CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED
        self.begin()

    def begin(self) -> None:
        """Start with nothing but the default stream, for the first retain and after a reset."""
        self.limits = default_limits()
        self.failure: CUresult | None = None
        # What was broken off and not told to anybody who waits for it yet.
        self.untold = ""
        self.pending = 0
        self.busy: dict[work.Stream, None] = {}
        self.legacy = work.Stream(self, is_legacy=True)
        self.per_thread: dict[int, work.Stream] = {}
        self.streams: dict[int, work.Stream] = {}
        self.events: set[int] = set()
        self.modules: dict[int, Module] = {}
        self.pools: dict[int, Pool] = {}
        self.textures: dict[int, Any] = {}
        self.peers: set[Device] = set()
        self.memory = kernel_memory.ContextMemory(self)
        self.clock = ptx.Clock(attribute("CLOCK_RATE"))

    @property
    def active(self) -> bool:
        """Tell whether somebody has retained the context."""
        return self.references > 0

    def reaches(self, allocation: memory.Allocation) -> bool:
        """Tell whether this context's kernels may touch an allocation."""
        owner = allocation.device
        if allocation.kind == memory.HEAP:
            return allocation.context is self
        if allocation.kind != memory.DEVICE or owner is self.device:
            return True
        # Access to a pool's memory is the pool's own matter.
        return owner in self.peers if allocation.pool is None else self.device in allocation.pool.access

    def after_work(self) -> None:
        """Let the pools give back what they keep above their thresholds, as at every synchronisation."""
        for pool in list(self.pools.values()):
            pool.release_excess()

    def tell(self) -> None:
        """Raise CUDA_ERROR_ILLEGAL_STATE, once, before anything runs after work that was broken off."""
        if self.untold:
            text, self.untold = self.untold, ""
            raise work.broken_off(text)

    def raise_failure(self) -> None:
        """Raise the sticky status, or once the status of work that failed without ending the context."""
        if self.sticky is not None:
            raise StatusError(self.sticky)
        if self.failure is not None:
            status, self.failure = self.failure, None
            raise StatusError(status)

    def end(self) -> None:
        """Drop everything that the context has, its work undone."""
        from . import events, modules, pools, streams

        self.sticky = CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED
        work.abandon(self)
        for capture in list(work.captures):
            if capture.origin.context is self:
                capture.end()
                capture.graph.discard()
        for allocation in list(memory.live.by_start.values()):
            if allocation.context is self and allocation.pool is None:
                if allocation.kind == memory.REGISTERED:
                    memory.forget(allocation)
                else:
                    memory.free(allocation, counted=allocation.kind == memory.DEVICE)
        pools.end_context(self)
        streams.end_context(self)
        events.end_context(self)
        modules.end_context(self)
        self.references = 0
        self.begin()


class _Local(threading.local):
    """What each thread has for itself."""

    def __init__(self) -> None:
        self.stack: list[Context] = []
        self.capture_mode: int = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL.value


local = _Local()
_contexts: dict[int, Context] = {}


def current() -> Context:
    """Return the calling thread's context, or raise what a call without a usable one answers."""
    stack = local.stack
    if not stack:
        require_initialised()
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    context = stack[-1]
    if context.sticky is not None:
        require_initialised()
        raise StatusError(context.sticky)
    return context


def current_for_unsafe() -> Context:
    """Return the current context for a call that stream capture forbids."""
    context = current()
    if work.captures:
        work.refuse_while_capturing()
    return context


def all_active() -> list[Context]:
    """Return the contexts of the process that somebody has retained and no fault has ended."""
    return [context for context in _contexts.values() if context.active and context.sticky is None]


def find_context(ctx: Any) -> Context:
    """Return the context of a handle, or raise CUDA_ERROR_INVALID_CONTEXT."""
    require_initialised()
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


@entry(values=1)
def cuDevicePrimaryCtxRetain(dev: Any) -> Any:
    """Return the device's primary context, one reference more, as cuDevicePrimaryCtxRetain."""
    from . import leaks

    context = primary(find_device(dev))
    if not context.references:
        context.sticky = None
        leaks.watch()
    context.references += 1
    return CUcontext(context.handle)


@entry()
def cuDevicePrimaryCtxRelease(dev: Any) -> None:
    """Give a reference back; the last one ends the context, as cuDevicePrimaryCtxRelease."""
    context = primary(find_device(dev))
    if not context.references:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    context.references -= 1
    if not context.references:
        context.end()


@entry()
def cuDevicePrimaryCtxReset(dev: Any) -> None:
    """End the primary context whoever has it, as cuDevicePrimaryCtxReset."""
    primary(find_device(dev)).end()


@entry(values=2)
def cuDevicePrimaryCtxGetState(dev: Any) -> tuple[int, int]:
    """Return the primary context's flags and whether it is active, as cuDevicePrimaryCtxGetState."""
    context = primary(find_device(dev))
    return context.flags, int(context.active)


@entry()
def cuDevicePrimaryCtxSetFlags(dev: Any, flags: Any) -> None:
    """Set the primary context's flags, as cuDevicePrimaryCtxSetFlags."""
    device = find_device(dev)
    value = number(flags)
    if value & ~CUctx_flags.CU_CTX_FLAGS_MASK.value or value & CUctx_flags.CU_CTX_SCHED_MASK.value not in (0, 1, 2, 4):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    primary(device).flags = value


@entry()
def cuCtxSetCurrent(ctx: Any) -> None:
    """Make a context the thread's current one, null for none, as cuCtxSetCurrent."""
    require_initialised()
    stack = local.stack
    if not number(ctx):
        if stack:
            stack.pop()
        return
    context = find_context(ctx)
    if stack:
        stack[-1] = context
    else:
        stack.append(context)


@entry(values=1)
def cuCtxGetCurrent() -> Any:
    """Return the thread's current context, null when there is none, as cuCtxGetCurrent."""
    require_initialised()
    stack = local.stack
    return CUcontext(stack[-1].handle if stack else 0)


@entry()
def cuCtxPushCurrent(ctx: Any) -> None:
    """Make a context current on top of the one before, as cuCtxPushCurrent."""
    local.stack.append(find_context(ctx))


@entry(values=1)
def cuCtxPopCurrent() -> Any:
    """Make the context before current again and return the other, as cuCtxPopCurrent."""
    require_initialised()
    if not local.stack:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    return CUcontext(local.stack.pop().handle)


@entry(values=1)
def cuCtxGetDevice() -> Any:
    """Return the device of the current context, as cuCtxGetDevice."""
    require_initialised()
    if not local.stack:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    return CUdevice(local.stack[-1].device.ordinal)


@entry(values=1)
def cuCtxGetFlags() -> int:
    """Return the current context's flags, as cuCtxGetFlags."""
    return current().flags


@entry()
def cuCtxSynchronize() -> None:
    """Run all work of the current context, as cuCtxSynchronize."""
    context = current_for_unsafe()
    work.complete_context(context)


@entry(values=2)
def cuCtxGetStreamPriorityRange() -> tuple[int, int]:
    """Return the least and the greatest stream priority, as cuCtxGetStreamPriorityRange."""
    current()
    return LEAST_PRIORITY, GREATEST_PRIORITY


@entry(values=1)
def cuCtxGetLimit(limit: Any) -> int:
    """Return one of the current context's limits, as cuCtxGetLimit."""
    limits = current().limits
    value = number(limit)
    if not 0 <= value < CUlimit.CU_LIMIT_MAX.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    try:
        return limits[value]
    except KeyError:
        raise StatusError(CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT) from None


@entry()
def cuCtxSetLimit(limit: Any, value: Any) -> None:
    """Set one of the current context's limits, rounded as the driver does, as cuCtxSetLimit."""
    limits = current().limits
    key, wanted = number(limit), number(value)
    if not 0 <= key < CUlimit.CU_LIMIT_MAX.value or wanted < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if key not in limits:
        raise StatusError(CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT)
    if key == CUlimit.CU_LIMIT_STACK_SIZE.value:
        if wanted > _LARGEST_STACK:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        wanted = -(-wanted // 16) * 16
    elif key == CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY.value:
        if wanted > 128:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        wanted = next(size for size in (32, 64, 128) if wanted <= size)
    elif key == CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE.value:
        wanted = min(wanted, attribute("MAX_PERSISTING_L2_CACHE_SIZE"))
    elif key == CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value:
        wanted = max(wanted, _SMALLEST_PRINTF_FIFO)
    elif key == CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value:
        wanted = max(wanted, 4 << 20)
    limits[key] = wanted


@entry()
def cuCtxResetPersistingL2Cache() -> None:
    """Make all lines of the L2 cache ordinary; there is no cache here, as cuCtxResetPersistingL2Cache."""
    current()


@entry()
def cuCtxEnablePeerAccess(peerContext: Any, Flags: Any) -> None:
    """Let the current context's kernels touch another device's memory, as cuCtxEnablePeerAccess."""
    context = current()
    peer = find_context(peerContext)
    if number(Flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if peer is context or not peer.active:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    if peer.device in context.peers:
        raise StatusError(CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    context.peers.add(peer.device)
    memory.state.generation += 1


@entry()
def cuCtxDisablePeerAccess(peerContext: Any) -> None:
    """Take back what cuCtxEnablePeerAccess gave, as cuCtxDisablePeerAccess."""
    context = current()
    peer = find_context(peerContext)
    if peer.device not in context.peers:
        raise StatusError(CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
    # Work that was given while the access stood runs with it.
    work.complete_context(context)
    context.peers.discard(peer.device)
    memory.state.generation += 1
