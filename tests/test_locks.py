"""Locks stay free if a signal handler raises an exception, which it can do after any call of a C function."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from cudart_py.host.locks import take
from cudart_py.memory import staging
from cudart_py.simulator.calls.entry import alone
from cudart_py.simulator.state.contexts import call_if_idle, in_finalizer
from cudart_py.simulator.state.progress import progress


class Raised(BaseException):
    """An exception raised by a signal handler."""


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a stand-in for a driver's ring of pinned staging memory."""
    made = SimpleNamespace(busy=threading.Lock(), closed=False)
    answers = {"_ring_of": made, "current_device": None, "memory_kind": "pageable", "_capturing": False}
    for name, value in {**answers, "_processors": 1 << 10}.items():
        monkeypatch.setattr(staging, name, lambda *arguments, value=value: value)
    return made


# By name: the call to make, the function that takes the lock, and the lock, or None for the ring's lock.
PLACES: dict[str, tuple[Callable[[Any], object], Any, Any]] = {
    "finalizer": (lambda ring: in_finalizer(lambda: None), call_if_idle, progress.lock),
    "call": (lambda ring: alone(lambda: None, (), {}), alone, progress.lock),
    "copy": (lambda ring: staging._staged(lambda *arguments: None, 0, 0, 1, 0, 0), staging._staged, None),
}


def raises_after(step: int, function: Callable[[Any], object], ring: Any, within: Any) -> bool:
    """Call a function and raise after the `step`-th C call of `within` or `take`; return whether there was one."""
    left = step

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event == "c_return" and frame.f_code in (within.__code__, take.__code__):
            left -= 1
            if not left:
                sys.setprofile(None)
                raise Raised

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function(ring)
    except Raised:
        return True
    finally:
        sys.setprofile(before)
    return False


def is_free(lock: Any) -> bool:
    """Return whether another thread can take a lock."""
    with ThreadPoolExecutor(1) as threads:
        free = threads.submit(lock.acquire, blocking=False).result()
        if free:
            threads.submit(lock.release).result()
    return free


@pytest.mark.parametrize("place", PLACES)
def test_an_exception_after_any_call_of_c_leaves_the_lock_free(place: str, ring: Any) -> None:
    function, within, lock = PLACES[place]
    lock = lock or ring.busy
    step = 1
    while raises_after(step, function, ring, within):
        assert is_free(lock), f"call {step}"
        step += 1
    assert step > 2
    assert is_free(lock)


def test_what_cannot_be_taken_is_not_released() -> None:
    lock, taken = threading.Lock(), []
    take(lock, taken)
    assert taken == [True]
    others: list[bool] = []
    take(lock, others, blocking=False)
    assert others == []
