"""Limits of the current context."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUlimit, CUresult

from ...state.arguments import number
from ...state.attributes import attribute
from ...state.contexts import current
from ...state.errors import StatusError
from ..entry import entry

_LARGEST_STACK = 512 << 10
# The smallest size that an H200 uses, even if less is requested.
_SMALLEST_PRINTF_FIFO = 512 << 10
_FEWEST_PENDING_LAUNCHES = 32
# An H200 sets its L2 cache aside in tenths of the largest size.
_PARTS_OF_L2 = 10


@entry(values=1)
def cuCtxGetLimit(limit: Any) -> int:
    """Return one of the current context's limits (cuCtxGetLimit)."""
    limits = current().limits
    value = number(limit)
    if not 0 <= value < CUlimit.CU_LIMIT_MAX.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    try:
        return limits[value]
    except KeyError:
        raise StatusError(CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT) from None


@entry(unsafe=True)
def cuCtxSetLimit(limit: Any, value: Any) -> None:
    """Set one of the current context's limits, rounded as the driver does (cuCtxSetLimit)."""
    context = current()
    limits = context.limits
    key, wanted = number(limit), number(value)
    if not 0 <= key < CUlimit.CU_LIMIT_MAX.value or wanted < 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if key not in limits:
        raise StatusError(CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT)
    if key in context.fixed_limits:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if key == CUlimit.CU_LIMIT_STACK_SIZE.value:
        if wanted > _LARGEST_STACK:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        wanted = _rounded(wanted, 16)
    elif key == CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY.value:
        if wanted > 128:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    elif key == CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE.value:
        most = attribute("MAX_PERSISTING_L2_CACHE_SIZE")
        if wanted > most:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        wanted = _rounded(wanted, most // _PARTS_OF_L2)
    elif key == CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value:
        wanted = max(_rounded(wanted, 256), _SMALLEST_PRINTF_FIFO)
    elif key == CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value:
        wanted = max(_rounded(wanted, 64 << 10), 4 << 20)
    elif key == CUlimit.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT.value:
        wanted = max(wanted, _FEWEST_PENDING_LAUNCHES)
    limits[key] = wanted


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit
