"""Compare a result with its reference, and make sure beforehand that an unwritten result is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import DTypeLike, NDArray

import cudart_py as cuda

from .stop import Check


def poison(array: cuda.DeviceArray | NDArray[Any]) -> None:
    """Set every bit of an output, which yields NaN or -1, so that elements that are never written are wrong."""
    if isinstance(array, np.ndarray):
        array.view(np.uint8).fill(0xFF)
    else:
        cuda.memset(array.view(np.uint8), 0xFF)


def poisoned(shape: int | tuple[int, ...], dtype: DTypeLike) -> cuda.DeviceArray:
    """Return a new device array that is poisoned, so that it is wrong until it is written."""
    array = cuda.empty(shape, dtype)
    poison(array)
    return array


def on_host(array: cuda.DeviceArray | NDArray[Any]) -> NDArray[Any]:
    """Return an array's elements as a NumPy array; a NumPy array is returned as it is."""
    return array if isinstance(array, np.ndarray) else array.to_host()


def compare(fact: str, got: NDArray[Any], expected: NDArray[Any], tolerance: float = 0.0) -> Check:
    """Check that every element is within `tolerance` of the expected one; zero requires equality."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return Check(fact, False, f"{got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}")
    # Negated so that a NaN counts as wrong.
    wrong = ~(np.abs(got - expected) <= tolerance) if tolerance else got != expected
    count = int(np.count_nonzero(wrong))
    if not count:
        return Check(fact, True)
    first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    index = ", ".join(map(str, first))
    values = f"is {got[first]}, not {expected[first]}"
    if got.size == 1:
        detail = f"The only element differs: it {values}"
    elif count == 1:
        detail = f"1 of {got.size} elements differs: [{index}] {values}"
    else:
        detail = f"{count} of {got.size} elements differ; the first, [{index}], {values}"
    return Check(fact, False, detail)


def refusal(fact: str, kind: type[Exception], action: Callable[[], object]) -> Check:
    """Check that `action` raises `kind`; the check's detail is the error message."""
    try:
        action()
    except kind as error:
        return Check(fact, True, str(error))
    return Check(fact, False, f"It was not refused with {kind.__name__}")


@contextmanager
def copies_to_host() -> Iterator[list[int]]:
    """Yield a list that collects the number of elements of each array that the block copies to the host.

    Copies of a single element, such as a status, are left out. So are copies that a library makes for itself.
    """
    sizes: list[int] = []

    def noting(copy: Callable[..., Any], is_to_host: Callable[..., bool]) -> Callable[..., Any]:
        def noted(first: Any, *arguments: Any, **named: Any) -> Any:
            caller = sys._getframe(1).f_globals["__name__"]
            own = caller.partition(".")[0] == cuda.__name__
            if getattr(first, "size", 0) > 1 and is_to_host(first) and not own:
                sizes.append(first.size)
            return copy(first, *arguments, **named)

        return noted

    with ExitStack() as stack:
        to_host = noting(cuda.DeviceArray.to_host, lambda _: True)
        stack.enter_context(patch.object(cuda.DeviceArray, "to_host", to_host))
        for name in ("memcpy", "memcpy2d", "memcpy3d"):
            copy = noting(getattr(cuda, name), lambda target: isinstance(target, np.ndarray))
            stack.enter_context(patch.object(cuda, name, copy))
        yield sizes


def on_return(call: Callable[[], object]) -> str:
    """Return "done" if the default stream's work has ended when `call` returns, else "queued"; then wait for it."""
    cuda.legacy_default.synchronize()
    call()
    done = cuda.legacy_default.done
    cuda.legacy_default.synchronize()
    return "done" if done else "queued"
