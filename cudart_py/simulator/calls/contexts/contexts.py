"""Calls that concern contexts: the primary context of each device, and the current context of each thread.

A fault in a context's work is sticky: every later call in that context returns its status, until the primary context is
reset. Contexts that programs create are in `created_contexts`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cuda.bindings.driver import CUcontext, CUctx_flags, CUdevice, CUresult

from ...state import memory, streams
from ...state.arguments import number
from ...state.contexts import Context, current, find_context, of_thread, primary
from ...state.devices import find_device
from ...state.errors import StatusError
from ...state.memory import pools, sharing
from ...state.queue import captures
from ...state.queue.scheduling import abandon, complete_context
from ..entry import entry
from ..memory import cuda_arrays
from ..modules import modules
from ..streams import events
from ..textures import mipmaps
from . import leaks


def end(context: Context, in_use: Collection[int] = ()) -> None:
    """Drop everything that a context owns, without running its work.

    The host may continue to use host memory at the addresses in `in_use`, until `memory.drop_bytes`.
    """
    context.sticky = CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED
    abandon(context)
    captures.end_captures(context)
    for allocation in list(memory.live.by_start.values()):
        if allocation.context is context and allocation.pool is None and allocation.access is None:
            if allocation.kind == memory.REGISTERED:
                memory.forget(allocation)
            elif allocation.on_host and allocation.address in in_use:
                memory.keep_bytes(allocation)
            else:
                memory.free(allocation, counted=allocation.kind in memory.ON_DEVICE)
    sharing.end_context(context)
    if context is context.device.primary:
        pools.end_context(context, in_use)
    else:
        pools.leave_context(context)
    streams.end_context(context)
    events.end_context(context)
    modules.end_context(context)
    cuda_arrays.end_context(context)
    mipmaps.end_context(context)
    context.references = 0
    context.begin()


@entry(values=1)
def cuDevicePrimaryCtxRetain(dev: Any) -> Any:
    """Return the device's primary context with one more reference (cuDevicePrimaryCtxRetain)."""
    context = primary(find_device(dev))
    retain(context)
    return CUcontext(context.handle)


def retain(context: Context) -> None:
    """Add a reference to a primary context; the first one begins it."""
    if not context.references:
        context.sticky = None
        leaks.watch()
    context.references += 1


@entry(frees=True)
def cuDevicePrimaryCtxRelease(dev: Any) -> None:
    """Release a reference; the last one ends the context (cuDevicePrimaryCtxRelease)."""
    context = primary(find_device(dev))
    if not context.references:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    release(context)


def release(context: Context) -> None:
    """Release a reference to a primary context; the last one ends it."""
    context.references -= 1
    if not context.references:
        end(context)


@entry()
def cuDevicePrimaryCtxReset(dev: Any) -> None:
    """End the primary context, even if it is retained (cuDevicePrimaryCtxReset)."""
    end(primary(find_device(dev)))


@entry(values=2)
def cuDevicePrimaryCtxGetState(dev: Any) -> tuple[int, int]:
    """Return the primary context's flags and whether it is active (cuDevicePrimaryCtxGetState)."""
    context = primary(find_device(dev))
    return context.flags, int(context.active)


@entry()
def cuDevicePrimaryCtxSetFlags(dev: Any, flags: Any) -> None:
    """Set the primary context's flags (cuDevicePrimaryCtxSetFlags)."""
    device = find_device(dev)
    primary(device).flags = checked_flags(flags)


def checked_flags(flags: Any) -> int:
    """Return the flags of a context as an int, or raise CUDA_ERROR_INVALID_VALUE."""
    value = number(flags)
    if value & ~CUctx_flags.CU_CTX_FLAGS_MASK.value or value & CUctx_flags.CU_CTX_SCHED_MASK.value not in (0, 1, 2, 4):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return value


@entry(of_thread_only=True)
def cuCtxSetCurrent(ctx: Any) -> None:
    """Make a context the thread's current one, null for none (cuCtxSetCurrent)."""
    stack = of_thread.stack
    if not number(ctx):
        if stack:
            stack.pop()
        return
    context = find_context(ctx)
    if stack:
        stack[-1] = context
    else:
        stack.append(context)


@entry(values=1, of_thread_only=True)
def cuCtxGetCurrent() -> Any:
    """Return the thread's current context, null when there is none (cuCtxGetCurrent)."""
    stack = of_thread.stack
    return CUcontext(stack[-1].handle if stack else 0)


@entry(of_thread_only=True)
def cuCtxPushCurrent(ctx: Any) -> None:
    """Push a context, which becomes the current one (cuCtxPushCurrent)."""
    if not number(ctx):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    of_thread.stack.append(find_context(ctx))


@entry(values=1, of_thread_only=True)
def cuCtxPopCurrent() -> Any:
    """Pop the current context and return it; the one below becomes current again (cuCtxPopCurrent)."""
    if not of_thread.stack:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    return CUcontext(of_thread.stack.pop().handle)


@entry(values=1, of_thread_only=True)
def cuCtxGetDevice() -> Any:
    """Return the device of the current context (cuCtxGetDevice)."""
    if not of_thread.stack:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    return CUdevice(of_thread.stack[-1].device.ordinal)


@entry(values=1)
def cuCtxGetFlags() -> int:
    """Return the current context's flags; host memory is mapped in any case (cuCtxGetFlags)."""
    return int(current().flags | CUctx_flags.CU_CTX_MAP_HOST.value)


@entry()
def cuCtxSynchronize() -> None:
    """Run all work of the current context; a capture in any mode forbids that (cuCtxSynchronize)."""
    context = current()
    captures.refuse_all(context)
    complete_context(context)


@entry(values=2)
def cuCtxGetStreamPriorityRange() -> tuple[int, int]:
    """Return the least and the greatest stream priority (cuCtxGetStreamPriorityRange)."""
    current()
    return streams.LEAST_PRIORITY, streams.GREATEST_PRIORITY


@entry()
def cuCtxResetPersistingL2Cache() -> None:
    """Do nothing, because no L2 cache is simulated (cuCtxResetPersistingL2Cache)."""
    current()


@entry()
def cuCtxEnablePeerAccess(peerContext: Any, Flags: Any) -> None:
    """Let the current context's kernels access another device's memory (cuCtxEnablePeerAccess)."""
    context = current()
    peer = find_context(peerContext)
    if number(Flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if not peer.active:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    if peer.device is context.device:
        raise StatusError(CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)
    if peer.device in context.peers:
        raise StatusError(CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    context.peers.add(peer.device)
    memory.note_change()


@entry()
def cuCtxDisablePeerAccess(peerContext: Any) -> None:
    """Revoke the access that cuCtxEnablePeerAccess granted (cuCtxDisablePeerAccess)."""
    context = current()
    peer = find_context(peerContext)
    if peer.device not in context.peers:
        raise StatusError(CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
    # Work that was enqueued while access was enabled still runs with it.
    complete_context(context)
    context.peers.discard(peer.device)
    memory.note_change()
