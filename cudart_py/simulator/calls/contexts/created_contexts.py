"""Contexts that programs create in addition to the primary one: their lifetime, and the settings of any context.

The runtime and CUDA's libraries use the primary context. Older programs of the driver API create one of their own, with
its own streams, events and modules. It owns the memory that is allocated in it, except that of pools, which belongs to
the device. As on an H200, kernels may access the memory of other contexts of their device.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUcontext, CUctx_flags, CUfunc_cache, CUresult, CUsharedconfig

from ...state.arguments import number
from ...state.contexts import Context, create, current, find_context, forget, given_context, of_thread
from ...state.devices import find_device
from ...state.errors import StatusError
from ..entry import entry
from . import leaks
from .contexts import checked_flags, end

_API_VERSION = 3020
# Driver 580.159 drops the other flags: host memory can always be mapped, and coredumps have settings of their own.
_KEPT_FLAGS = (
    CUctx_flags.CU_CTX_SCHED_MASK.value
    | CUctx_flags.CU_CTX_LMEM_RESIZE_TO_MAX.value
    | CUctx_flags.CU_CTX_SYNC_MEMOPS.value
)


@entry(values=1)
def cuCtxCreate(ctxCreateParams: Any, flags: Any, dev: Any) -> Any:
    """Create a context and make it the thread's current one, above the previous one (cuCtxCreate).

    A share of the multiprocessors, which needs MPS, is refused, and so is sharing with a graphics interface.
    """
    device, value = find_device(dev), checked_flags(flags)
    if ctxCreateParams is not None:
        if ctxCreateParams.numExecAffinityParams:
            raise StatusError(CUresult.CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY)
        if ctxCreateParams.cigParams:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    context = create(device, value & _KEPT_FLAGS)
    leaks.watch()
    of_thread.stack.append(context)
    return CUcontext(context.handle)


@entry(frees=True)
def cuCtxDestroy(ctx: Any) -> None:
    """Destroy a context that cuCtxCreate created, with everything that it owns; pop it if it is current (cuCtxDestroy).

    Other threads, and places lower on the stack, keep it, and their calls return CUDA_ERROR_CONTEXT_IS_DESTROYED.
    """
    if not number(ctx):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    context = find_context(ctx)
    if context is context.device.primary:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    _destroy(context)


def _destroy(context: Context) -> None:
    end(context)
    forget(context)
    if of_thread.stack and of_thread.stack[-1] is context:
        of_thread.stack.pop()


@entry(values=1)
def cuCtxAttach(flags: Any) -> Any:
    """Return the current context with one more reference (cuCtxAttach)."""
    context = current()
    if number(flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    context.references += 1
    return CUcontext(context.handle)


@entry(frees=True)
def cuCtxDetach(ctx: Any) -> None:
    """Release a reference to the current context; the last one destroys it (cuCtxDetach)."""
    context = find_context(ctx)
    if not of_thread.stack or of_thread.stack[-1] is not context or not context.references:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    context.references -= 1
    if context.references:
        return
    if context is context.device.primary:
        end(context)
    else:
        _destroy(context)


@entry(values=1)
def cuCtxGetId(ctx: Any) -> int:
    """Return a number that identifies a context and is never reused, null for the current context (cuCtxGetId)."""
    return given_context(ctx).identity


@entry(values=1)
def cuCtxGetApiVersion(ctx: Any) -> int:
    """Return the version of a context's capabilities, which is 3020 for every context (cuCtxGetApiVersion)."""
    given_context(ctx)
    return _API_VERSION


@entry()
def cuCtxSetFlags(flags: Any) -> None:
    """Set the current context's flags (cuCtxSetFlags)."""
    context = current()
    context.flags = checked_flags(flags) & _KEPT_FLAGS


@entry(values=1)
def cuCtxGetCacheConfig() -> Any:
    """Return the current context's preference between L1 cache and shared memory (cuCtxGetCacheConfig)."""
    return current().cache_preference


@entry()
def cuCtxSetCacheConfig(config: Any) -> None:
    """Set the preference between L1 cache and shared memory, which has no effect (cuCtxSetCacheConfig)."""
    context = current()
    try:
        context.cache_preference = CUfunc_cache(number(config))
    except ValueError:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None


@entry(values=1)
def cuCtxGetSharedMemConfig() -> Any:
    """Return the size of the banks of shared memory, which is always four bytes (cuCtxGetSharedMemConfig)."""
    current()
    return CUsharedconfig.CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE


@entry()
def cuCtxSetSharedMemConfig(config: Any) -> None:
    """Accept a size of the banks of shared memory, without effect as on an H200 (cuCtxSetSharedMemConfig)."""
    current()
    if number(config) not in [one.value for one in CUsharedconfig]:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
