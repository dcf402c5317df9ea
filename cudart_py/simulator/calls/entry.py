"""Entry points: the functions of the driver, created from functions that return plain values.

The body of a driver function returns its values or raises `StatusError`. `entry` turns either into the result tuple of
`cuda.bindings.driver`: the status, followed by the values, which are all None if the status is not success.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from cuda.bindings.driver import CUresult

from ...host.locks import take
from ..checks.findings import deliver, deliver_with_fault, pending
from ..state.contexts import Context, of_thread
from ..state.devices import state
from ..state.driver_log import log
from ..state.errors import StatusError
from ..state.fault_reports import has_unlogged, readable, take_unlogged
from ..state.progress import progress
from ..state.queue import captures
from ..state.queue.runner import runner

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

_SUCCESS = CUresult.CUDA_SUCCESS
_NOT_INITIALIZED = CUresult.CUDA_ERROR_NOT_INITIALIZED
_NOT_READY = CUresult.CUDA_ERROR_NOT_READY
_INVALID_VALUE = CUresult.CUDA_ERROR_INVALID_VALUE
_UNKNOWN_ENUMERATOR = re.compile(r"-?\d+ is not a valid CU\w+")


def entry(
    values: int = 0,
    *,
    in_callbacks: bool = False,
    before_init: bool = False,
    of_thread_only: bool = False,
    frees: bool = False,
    unsafe: bool = False,
) -> Callable[[Callable[Arguments, Any]], Callable[Arguments, tuple[Any, ...]]]:
    """Return a decorator that turns a function that returns plain values or raises StatusError into a driver function.

    `values` is the number of values that follow the status in the result. Host functions in streams may call the driver
    function only if `in_callbacks` is true. Before cuInit, and in a forked child, it returns CUDA_ERROR_NOT_INITIALIZED
    unless `before_init` is true.

    Python may call it in the middle of another call of the same thread, for example from a finalizer. Such a call is
    refused, unless it concerns only the thread itself (`of_thread_only`). A call that `frees` something is carried out
    when the other call returns. `unsafe` calls are those that a stream capture may forbid, depending on its mode.
    """

    def decorate(body: Callable[Arguments, Any]) -> Callable[Arguments, tuple[Any, ...]]:
        function = _refused_in_captures(body) if unsafe else body

        def fail(status: CUresult) -> tuple[Any, ...]:
            if status != _NOT_READY:  # not an error
                if pending and has_unlogged() and not (progress.here or of_thread.finalizing):
                    deliver_with_fault()
                _log(status, body.__name__)
            return (status, *[None] * values)

        def succeed(result: Any) -> tuple[Any, ...]:
            if values == 1:
                return _SUCCESS, result
            return (_SUCCESS, *result) if values else (_SUCCESS,)

        @functools.wraps(function)
        def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> tuple[Any, ...]:
            if not (state.initialised or before_init):
                return fail(_NOT_INITIALIZED)
            try:
                if of_thread_only or progress.here:
                    result = call_within(arguments, named)
                else:
                    result = alone(function, arguments, named)
            except StatusError as error:
                return fail(error.status)
            except ValueError as error:
                # The bindings raise it when a field of a structure is read whose number is not an enumerator.
                if not _UNKNOWN_ENUMERATOR.fullmatch(str(error)):
                    raise
                return fail(_INVALID_VALUE)
            # Not for the calls that describe the failure of an earlier call.
            if pending and values < 2 and not (before_init or progress.here or of_thread.finalizing):
                deliver()
            return succeed(result)

        def call_within(arguments: Any, named: Any) -> Any:
            """Handle a call in the middle of another call."""
            if in_callbacks or (of_thread_only and not (runner.in_callback and progress.here)):
                return function(*arguments, **named)
            if not frees or runner.in_callback:
                raise refusal(function.__name__)
            passed = (*arguments, *named.values())
            # The argument is a handle, an address, or a host object.
            thing = int(passed[0]) if hasattr(passed[0], "__int__") else id(passed[0])
            free = functools.partial(_call_later, call, passed, of_thread.stack.copy())
            if not progress.postpone_free((call, thing), free):
                raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
            return None

        return call

    return decorate


def _log(status: CUresult, name: str) -> None:
    """Add a failed call to the driver's log, after the reason why it was refused or the report of its fault."""
    # A finalizer's errors are lost, so the report is left to a later call.
    explanation = progress.refusal or (None if of_thread.finalizing else take_unlogged())
    if explanation:
        log.write(explanation)
    log.write(f"Returning {status.value} ({status.name}) from {name}")


def _refused_in_captures(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    @functools.wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Value:
        captures.refuse_unsafe()
        return function(*arguments, **named)

    return call


def alone(function: Callable[..., Value], arguments: tuple[Any, ...], named: dict[str, Any]) -> Value:
    """Call a function while no other thread is in the driver, then do everything that had to wait until the call ended.

    This must not be called in the middle of another call of the same thread.
    """
    printed: list[str] = []
    taken: list[bool] = []
    try:
        try:
            take(progress.lock, taken)
            if runner.running:
                # A signal handler makes this call, in the thread that waits for that work.
                runner.wait()
            try:
                progress.begin()
                return function(*arguments, **named)
            finally:
                progress.leave()
                if progress.printed:
                    printed, progress.printed = progress.printed, printed
        finally:
            if taken:
                progress.lock.release()
    finally:
        try:
            # Only after the lock is free, because an exception of a handler must not leave it taken.
            progress.reveal()
        finally:
            if printed or progress.waiting:
                _catch_up(printed)


def _catch_up(printed: list[str]) -> None:
    """Print what kernels have printed, call the postponed finalizers, and handle the signals that have arrived."""
    try:
        for text in printed:
            _print(text)
    finally:
        progress.catch_up()


def _print(text: str) -> None:
    """Write to standard output, with escapes for characters that it can't encode; printing never makes a call fail."""
    # Looked up at each call, because a program may replace it with another stream, or with None.
    stream = sys.stdout
    if stream is None:
        return
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        _print(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
    except (ValueError, OSError):  # it is closed, or the pipe has no reader
        return


def refusal(name: str) -> StatusError:
    """Return CUDA_ERROR_NOT_PERMITTED, with a report that says why and what to do instead."""
    if runner.in_callback:
        where = "in a host function of a stream, which may not call the driver"
    else:
        work = "another call of the driver" if runner.operation is None else readable(str(runner.operation)).rstrip(",")
        where = f"in the middle of {work}, by a finalizer or other code that Python ran there: nothing can wait for it"
    progress.refusal = f"{name} was called {where}: set a flag there, and make the call after the one that waits"
    return StatusError(CUresult.CUDA_ERROR_NOT_PERMITTED)


def _call_later(function: Callable[..., object], arguments: tuple[Any, ...], stack: list[Context]) -> None:
    """Make a call with the contexts that were current when it was requested."""
    before, of_thread.stack = of_thread.stack, stack
    try:
        function(*arguments)
    finally:
        of_thread.stack = before
