"""Work that Ctrl-C or a signal's handler breaks off: what it raises is the caller's, and the work is never done."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.state import memory

# A kernel on a GPU cannot be broken off: these kernels would never end there.
pytestmark = pytest.mark.needs("in_process")

SOURCE = r"""
extern "C" __global__ void endless(volatile int *p) { p[1] = 1; while (*p == 0) ; p[1] = 2; }
extern "C" __global__ void add(int *p) { p[0] += 1; }
"""
Interrupt = Callable[[type[BaseException], Callable[[], Any]], None]


class Late(Exception):
    """What a handler raises that limits time: an ordinary exception."""


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    return cuda.compile(SOURCE)


@pytest.fixture
def interrupted() -> Iterator[Interrupt]:
    """Call something that a signal's handler breaks off soon, and see what the handler raises arrive."""

    def interrupt(kind: type[BaseException], call: Callable[[], Any]) -> None:
        def handler(number: int, frame: Any) -> None:
            raise kind("too late")

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(kind, match="too late"):
            call()

    # What is raised in a finalizer of an earlier test's garbage, which may run the kernel too, reaches no caller.
    gc.collect()
    before = signal.getsignal(signal.SIGALRM)
    yield interrupt
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_what_the_handler_raises_is_the_callers_and_the_next_call_says_what_was_broken_off(
    module: cuda.Module, interrupted: Interrupt
) -> None:
    for kind in (Late, KeyboardInterrupt, TimeoutError, KeyError, SystemExit):
        flags = cuda.zeros(2, np.int32)
        module["endless"][3, 64](flags)
        interrupted(kind, flags.to_host)
        text = rf"kernel endless, grid \(3, 1, 1\), block \(64, 1, 1\), was broken off by {kind.__name__}"
        with pytest.raises(cuda.CudaError, match=text) as caught:
            flags.to_host()
        assert caught.value.status.name == "CUDA_ERROR_ILLEGAL_STATE"


def test_nothing_behind_it_happens_and_the_context_can_be_used_again(
    module: cuda.Module, interrupted: Interrupt
) -> None:
    stream, behind, other = cuda.Stream(), cuda.zeros(1, np.int32), cuda.zeros(1, np.int32)
    flags, large = cuda.zeros(2, np.int32), cuda.empty(1 << 20, np.int32, stream=stream)
    address = int(large.pointer)
    cuda.Device(0).synchronize()
    start = stream.record(cuda.Event())
    module["endless"][1, 32, 0, stream](flags)
    event = stream.record(cuda.Event())
    module["add"][1, 1, 0, stream](behind)
    large.close()
    interrupted(KeyboardInterrupt, event.synchronize)
    module["add"][1, 1](other)
    with pytest.raises(cuda.CudaError, match="endless"):
        cuda.Device(0).synchronize()
    cuda.Device(0).synchronize()
    assert memory.live.find(address) is None
    assert behind.to_host()[0] == 0
    assert other.to_host()[0] == 1
    for ask in (event.synchronize, lambda: event.done, lambda: event - start) * 2:
        with pytest.raises(cuda.CudaError, match="endless"):
            ask()
    assert start.done
    module["add"][1, 1, 0, stream](behind)
    stream.synchronize()
    assert behind.to_host()[0] == 1
