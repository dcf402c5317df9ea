"""Work that Ctrl-C or a signal's handler breaks off: what it raises is the caller's, and the work is never done."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
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


class Late(Exception):
    """What a handler raises that limits time: an ordinary exception."""


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    return cuda.compile(SOURCE)


@pytest.fixture(params=[Late, KeyboardInterrupt, TimeoutError, KeyError, SystemExit])
def alarm(request: Any) -> Iterator[type[BaseException]]:
    """Let a signal's handler raise an exception in a fraction of a second."""
    kind = request.param

    def handler(number: int, frame: Any) -> None:
        raise kind("too late")

    # What is raised in a finalizer of an earlier test's garbage, which may run the kernel too, reaches no caller.
    gc.collect()
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    yield kind
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def flags() -> cuda.DeviceArray:
    return cuda.zeros(2, np.int32)


def test_what_the_handler_raises_reaches_the_caller_as_itself(module, flags, alarm):
    module["endless"][1, 32](flags)
    with pytest.raises(alarm, match="too late"):
        cuda.Device(0).synchronize()
    with pytest.raises(cuda.CudaError):
        cuda.Device(0).synchronize()


@pytest.mark.parametrize("alarm", [KeyboardInterrupt, Late], indirect=True)
def test_the_next_synchronisation_says_which_launch_was_broken_off(module, flags, alarm):
    module["endless"][3, 64](flags)
    with pytest.raises(alarm):
        flags.to_host()
    text = rf"the launch of kernel endless, grid \(3, 1, 1\), block \(64, 1, 1\), was broken off by {alarm.__name__}"
    with pytest.raises(cuda.CudaError, match=text) as caught:
        flags.to_host()
    assert caught.value.status.name == "CUDA_ERROR_ILLEGAL_STATE"


@pytest.mark.parametrize("alarm", [KeyboardInterrupt], indirect=True)
def test_the_work_behind_it_does_not_run_and_the_context_can_be_used_again(module, flags, alarm):
    stream, behind, other = cuda.Stream(), cuda.zeros(1, np.int32), cuda.zeros(1, np.int32)
    cuda.Device(0).synchronize()
    module["endless"][1, 32, 0, stream](flags)
    module["add"][1, 1, 0, stream](behind)
    with pytest.raises(KeyboardInterrupt):
        stream.synchronize()
    module["add"][1, 1](other)
    with pytest.raises(cuda.CudaError, match="endless"):
        cuda.Device(0).synchronize()
    cuda.Device(0).synchronize()
    assert behind.to_host()[0] == 0
    assert other.to_host()[0] == 1
    module["add"][1, 1, 0, stream](behind)
    stream.synchronize()
    assert behind.to_host()[0] == 1


@pytest.mark.parametrize("alarm", [KeyboardInterrupt], indirect=True)
def test_an_event_behind_it_is_never_reached(module, flags, alarm):
    stream = cuda.Stream()
    start = stream.record(cuda.Event())
    module["endless"][1, 32, 0, stream](flags)
    event = stream.record(cuda.Event())
    with pytest.raises(KeyboardInterrupt):
        event.synchronize()
    for _ in range(2):
        with pytest.raises(cuda.CudaError, match="endless"):
            event.synchronize()
        with pytest.raises(cuda.CudaError, match="endless"):
            event.done  # noqa: B018  # because asking is what raises
    with pytest.raises(cuda.CudaError, match="endless"):
        event - start
    assert start.done


@pytest.mark.parametrize("alarm", [KeyboardInterrupt], indirect=True)
def test_memory_that_was_freed_behind_it_is_given_back(module, flags, alarm):
    stream = cuda.Stream()
    large = cuda.empty(1 << 20, np.int32, stream=stream)
    address = int(large.pointer)
    module["endless"][1, 32, 0, stream](flags)
    large.close()
    with pytest.raises(KeyboardInterrupt):
        stream.synchronize()
    with pytest.raises(cuda.CudaError):
        stream.synchronize()
    assert memory.live.find(address) is None
