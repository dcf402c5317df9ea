"""Entries: the functions of the driver made of functions that return their values plainly.

The body of a driver function raises `StatusError`; `entry` turns what it returns or raises into the result tuple that
`cuda.bindings.driver` gives: the status, then the values, each None when the status is not success.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec

from cuda.bindings.driver import CUresult

from ..checks.findings import deliver, pending
from ..state.contexts import of_thread
from ..state.devices import state
from ..state.errors import StatusError
from ..state.queue.work import runner

__all__ = ["entry", "lock"]

Arguments = ParamSpec("Arguments")

_SUCCESS = CUresult.CUDA_SUCCESS
_NOT_INITIALIZED = CUresult.CUDA_ERROR_NOT_INITIALIZED
_NOT_PERMITTED = CUresult.CUDA_ERROR_NOT_PERMITTED

# One lock for the whole driver. It is re-entrant because the garbage collector may run finalizers, which
# call the driver, in the middle of any of its functions.
lock = threading.RLock()


def entry(
    values: int = 0, *, in_callbacks: bool = False, before_init: bool = False
) -> Callable[[Callable[Arguments, Any]], Callable[Arguments, tuple[Any, ...]]]:
    """Make a driver function of one that returns its values plainly and raises StatusError.

    `values` is how many values follow the status in the result. Host functions of streams may call it only if
    `in_callbacks`. Before cuInit, and in a forked child, it answers CUDA_ERROR_NOT_INITIALIZED unless `before_init`.
    """

    def refusal() -> CUresult | None:
        if not (state.initialised or before_init):
            return _NOT_INITIALIZED
        # A host function runs with the lock, so that only its own thread comes here meanwhile.
        if runner.in_callback and not in_callbacks:
            return _NOT_PERMITTED
        return None

    def decorate(function: Callable[Arguments, Any]) -> Callable[Arguments, tuple[Any, ...]]:
        @functools.wraps(function)
        def without_value(*arguments: Arguments.args, **named: Arguments.kwargs) -> tuple[Any, ...]:
            with lock:
                if refused := refusal():
                    return (refused,)
                try:
                    function(*arguments, **named)
                except StatusError as error:
                    return (error.status,)
            _deliver_findings()
            return (_SUCCESS,)

        @functools.wraps(function)
        def with_value(*arguments: Arguments.args, **named: Arguments.kwargs) -> tuple[Any, ...]:
            with lock:
                if refused := refusal():
                    return refused, None
                try:
                    result = _SUCCESS, function(*arguments, **named)
                except StatusError as error:
                    return error.status, None
            _deliver_findings()
            return result

        @functools.wraps(function)
        def with_values(*arguments: Arguments.args, **named: Arguments.kwargs) -> tuple[Any, ...]:
            with lock:
                if refused := refusal():
                    return refused, *[None] * values
                try:
                    return _SUCCESS, *function(*arguments, **named)
                except StatusError as error:
                    return error.status, *[None] * values

        return (without_value, with_value, with_values)[min(values, 2)]

    return decorate


def _deliver_findings() -> None:
    """Deliver what the checks found, unless a finalizer has made the call, perhaps in the middle of other work."""
    if pending and not runner.running and not of_thread.finalizing:
        deliver()
