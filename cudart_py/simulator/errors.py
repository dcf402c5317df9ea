"""Statuses: how a function of the simulator answers, and the driver's texts for them.

The functions raise `StatusError` inside; `entry` turns what they return or raise into the result tuple that
`cuda.bindings.driver` gives: the status, then the values, each None when the status is not success.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from cuda.bindings.driver import CUresult

from .findings import deliver, pending

__all__ = ["StatusError", "cuGetErrorName", "cuGetErrorString", "entry", "lock", "number"]

Function = TypeVar("Function", bound=Callable[..., Any])

SUCCESS = CUresult.CUDA_SUCCESS

# One lock for the whole driver. It is re-entrant because the garbage collector may run finalizers, which
# call the driver, in the middle of any of its functions.
lock = threading.RLock()


class StatusError(Exception):
    """A status other than success on its way to the caller."""

    def __init__(self, status: CUresult) -> None:
        super().__init__(status.name)
        self.status = status


def _deliver() -> None:
    """Deliver what the checks found, unless a finalizer's call came in the middle of other work."""
    from .work import runner

    if not runner.running:
        deliver()


def number(value: Any) -> int:
    """Return a handle, address or integer argument as an int; None is a null pointer."""
    return 0 if value is None else int(value)


def entry(values: int = 0) -> Callable[[Function], Function]:
    """Make a driver function of one that returns its values plainly and raises StatusError.

    `values` is how many values follow the status in the result.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def without_value(*arguments: Any, **named: Any) -> tuple[Any, ...]:
            with lock:
                try:
                    function(*arguments, **named)
                except StatusError as error:
                    return (error.status,)
            if pending:
                _deliver()
            return (SUCCESS,)

        @functools.wraps(function)
        def with_value(*arguments: Any, **named: Any) -> tuple[Any, ...]:
            with lock:
                try:
                    result = SUCCESS, function(*arguments, **named)
                except StatusError as error:
                    return error.status, None
            if pending:
                _deliver()
            return result

        @functools.wraps(function)
        def with_values(*arguments: Any, **named: Any) -> tuple[Any, ...]:
            with lock:
                try:
                    return SUCCESS, *function(*arguments, **named)
                except StatusError as error:
                    return error.status, *[None] * values

        chosen: Any = (without_value, with_value, with_values)[min(values, 2)]
        return chosen  # type: ignore[no-any-return]  # because the wrapper replaces the function's result

    return decorate


def _known(error: Any) -> CUresult:
    try:
        return CUresult(int(error))
    except (TypeError, ValueError):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None


@entry(values=1)
def cuGetErrorName(error: Any) -> bytes:
    """Return the status's name, as cuGetErrorName."""
    name: str = _known(error).name
    return name.encode()


@entry(values=1)
def cuGetErrorString(error: Any) -> bytes:
    """Return a text for the status, made of its name, as cuGetErrorString."""
    name: str = _known(error).name
    if name == "CUDA_SUCCESS":
        return b"no error"
    return name.removeprefix("CUDA_ERROR_").replace("_", " ").lower().encode()
