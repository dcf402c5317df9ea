"""Work that a signal handler interrupts, and driver calls that handlers make in the middle of another call.

The handler's exception reaches the caller, and the interrupted work is never completed.
"""

import _thread
import concurrent.futures
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator import driver
from cudart_py.simulator.state import memory
from cudart_py.simulator.state.contexts import in_finalizer
from cudart_py.simulator.state.memory import pools
from cudart_py.simulator.state.progress import progress

from .reentry import LANES, stepped

Interrupt = Callable[[type[BaseException], Callable[[], Any]], None]


class Late(Exception):
    """An ordinary exception, as raised by a handler that enforces a time limit."""


@pytest.fixture
def handled() -> Iterator[Callable[[int, Callable[[], object]], None]]:
    """Return a function that installs a signal handler until the end of the test."""
    before: dict[int, Any] = {}

    def handle(which: int, function: Callable[[], object]) -> None:
        before.setdefault(which, signal.signal(which, lambda number, frame: function()))

    yield handle
    signal.setitimer(signal.ITIMER_REAL, 0)
    for which, handler in before.items():
        signal.signal(which, handler)


@pytest.fixture
def interrupted(handled: Callable[[int, Callable[[], object]], None]) -> Interrupt:
    """Return a function that makes a call, and asserts that a signal handler's exception ends it."""

    def interrupt(kind: type[BaseException], call: Callable[[], Any]) -> None:
        def stop() -> None:
            raise kind("too late")

        handled(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(kind, match="too late"):
            call()

    # Collect the garbage of earlier tests first: a finalizer may also run the kernel, and an exception that is raised
    # in a finalizer does not reach the caller.
    gc.collect()
    return interrupt


@pytest.mark.needs("in_process")  # a GPU's kernel cannot be interrupted, and these never end
def test_what_the_handler_raises_is_the_callers_and_the_next_call_says_what_was_broken_off(module, interrupted):
    for kind in (Late, KeyboardInterrupt, TimeoutError, KeyError, SystemExit):
        flags = cuda.zeros(2, np.int32)
        module["endless"][3, 64](flags)
        interrupted(kind, flags.to_host)
        text = rf"kernel endless, grid \(3, 1, 1\), block \(64, 1, 1\), was interrupted by {kind.__name__}"
        with pytest.raises(cuda.CudaError, match=text) as caught:
            flags.to_host()
        assert caught.value.status.name == "CUDA_ERROR_ILLEGAL_STATE"


@pytest.mark.needs("in_process")  # a GPU's kernel cannot be interrupted, and these never end
def test_nothing_behind_it_happens_and_the_context_can_be_used_again(module, interrupted):
    stream, behind, other = cuda.Stream(), cuda.zeros(1, np.int32), cuda.zeros(1, np.int32)
    flags, large = cuda.zeros(2, np.int32), cuda.empty(1 << 20, np.int32, stream=stream)
    address = int(large.pointer)
    cuda.Device(0).synchronize()
    start = stream.record(cuda.Event())
    module["endless"][1, 32, 0, stream](flags)
    event = stream.record(cuda.Event())
    module["add"][1, 1, 0, stream](behind, 1)
    large.close()
    interrupted(KeyboardInterrupt, event.synchronize)
    module["add"][1, 1](other, 1)
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
    module["add"][1, 1, 0, stream](behind, 1)
    stream.synchronize()
    assert behind.to_host()[0] == 1


@pytest.mark.needs("in_process")
def test_an_array_that_a_handler_drops_does_not_wait_for_the_work_that_the_handler_interrupts(
    module, handled, monkeypatch
):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_SECONDS", "10")  # which ends the launch if the handler waits for it
    flags, dropped = cuda.zeros(2, np.int32), [cuda.zeros(1)]
    address = int(dropped[0].pointer)

    def stop() -> None:
        dropped.clear()
        raise Late

    handled(signal.SIGALRM, stop)
    module["endless"][1, 32](flags)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(Late):
        flags.to_host()
    assert memory.live.find(address) is not None  # the free comes after the work that did not run
    with pytest.raises(cuda.CudaError, match="was interrupted by Late"):
        cuda.Device(0).synchronize()
    cuda.Device(0).synchronize()
    assert memory.live.find(address) is None


@pytest.mark.needs("in_process")
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_signal_that_does_not_end_the_wait_of_its_thread_is_handled_during_the_wait(handled, in_thread):
    """`interrupt_main` has the effect of a signal that arrives immediately before the thread begins to wait."""
    stream, idle, waited = cuda.Stream(non_blocking=True), cuda.zeros(1), []
    begun, handler_ran = threading.Event(), threading.Event()

    def stop() -> None:
        handler_ran.set()
        raise Late

    def hold() -> None:
        begun.set()
        waited.append(handler_ran.wait(10))

    def work() -> None:
        with cuda.Device(0):
            stream.launch_host_function(hold)
            stream.synchronize()

    def interrupt() -> None:
        begun.wait(10)
        time.sleep(0.2)  # until the main thread waits
        _thread.interrupt_main(signal.SIGALRM)

    handled(signal.SIGALRM, stop)
    idle.to_host()
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        threads.submit(interrupt)
        other = threads.submit(work) if in_thread else None
        assert other is None or begun.wait(10)
        with pytest.raises(Late):
            work() if other is None else idle.to_host()
    assert waited == [True]
    if other is None:
        with pytest.raises(cuda.CudaError, match="a host function was interrupted by Late"):
            cuda.Device(0).synchronize()


@pytest.mark.needs("in_process")
def test_a_finalizer_does_not_keep_a_thread_waiting_for_a_call_of_another_one():
    called = []
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        with progress.lock:
            other.submit(in_finalizer, lambda: called.append(1)).result()
            other.submit(progress.catch_up).result(timeout=10)
        assert not called
        other.submit(progress.catch_up).result(timeout=10)
    assert called == [1]


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_handler_saves_arrays_while_a_kernel_runs(module, engine, handled, in_thread):
    idle, busy = cuda.full(LANES, 7, np.int32), cuda.zeros(LANES, np.uint32)
    rounds = 4_000 if engine == "numpy" else 12_000_000  # a tenth of a second
    module["step"][1, LANES](busy, 1)
    cuda.Device(0).synchronize()
    saved = []
    handled(signal.SIGTERM, lambda: saved.append((idle.to_host(), busy.to_host())))
    handler = signal.getsignal(signal.SIGTERM)
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGTERM))

    def work() -> None:
        with cuda.Device(0):
            module["step"][1, LANES](busy, rounds)
            timer.start()
            cuda.Device(0).synchronize()

    if in_thread:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            pool.submit(work).result()
    else:
        work()
    timer.join()
    expected = stepped(np.zeros(LANES), rounds + 1)
    np.testing.assert_array_equal(saved[0][0], np.full(LANES, 7))
    np.testing.assert_array_equal(saved[0][1], expected)
    np.testing.assert_array_equal(busy.to_host(), expected)
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_handler_works_on_arrays_in_the_middle_of_anything(module, engine, handled):
    idle, counted, x = cuda.full(1000, 7, np.int32), cuda.zeros(1, np.int32), cuda.zeros(LANES, np.uint32)
    alarms = 0

    def handler() -> None:
        nonlocal alarms
        alarms += 1
        module["add"][1, 32](counted, 1)
        copy = cuda.empty_like(idle)
        cuda.memcpy(copy, idle)
        assert (copy.to_host() == 7).all()
        signal.setitimer(signal.ITIMER_REAL, 0.002)  # only now, because a handler may be interrupted too

    handled(signal.SIGALRM, handler)
    x.to_host()  # the driver notices the handler here
    launches = 0
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    while alarms < 30:
        module["step"][1, LANES](x, 10)
        launches += 1
        other = cuda.zeros(100, np.int32)
        assert not other.to_host().any()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert counted.to_host()[0] == 32 * alarms
    np.testing.assert_array_equal(x.to_host(), stepped(np.zeros(LANES), 10 * launches))


@pytest.mark.needs("in_process")
def test_what_one_handler_raises_is_not_raised_in_anothers_calls(handled):
    idle, stream, saved = cuda.full(4, 7, np.int32), cuda.Stream(), []
    cuda.Device(0).synchronize()
    raising, saving = threading.Event(), threading.Event()

    def stop() -> None:
        raising.set()
        raise TimeoutError

    def save() -> None:
        if saving.is_set():
            return
        saving.set()
        with pytest.raises(cuda.CudaError, match="interrupted by TimeoutError"):
            idle.to_host()
        saved.extend(idle.to_host().tolist() for _ in range(2))

    def work() -> None:
        for signal_of_handler, called in ((signal.SIGUSR1, raising), (signal.SIGUSR2, saving)):
            # Repeat if necessary: a signal that arrives immediately before its thread begins to wait does not wake it.
            for _ in range(60):
                os.kill(os.getpid(), signal_of_handler)
                if called.wait(1):
                    break

    handled(signal.SIGUSR1, stop)
    handled(signal.SIGUSR2, save)
    stream.launch_host_function(work)
    with pytest.raises(TimeoutError):
        stream.synchronize()
    assert saved == [[7] * 4] * 2


@pytest.fixture
def at_allocation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that makes signals arrive in the next allocation from a pool, while its tables change."""
    addresses = []

    def plant(*signals: int) -> None:
        allocate, left = pools.Pool.allocate, [*signals]

        def interrupted(*arguments: Any, **options: Any) -> Any:
            result = allocate(*arguments, **options)
            if left:
                addresses.append(result[0].address)
            while left:
                signal.raise_signal(left.pop(0))
            return result

        monkeypatch.setattr(pools.Pool, "allocate", interrupted)

    yield plant
    # The callers never received these allocations.
    for address in addresses:
        cuda.check(cuda.raw.cuMemFree(address))


@pytest.mark.needs("in_process")
@pytest.mark.parametrize("names", ["SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGUSR1 SIGUSR2 SIGTERM"])
def test_handlers_wait_for_the_first_call_after_they_were_set_and_all_run_although_one_raises(
    handled, at_allocation, names
):
    pool, stream, seen = cuda.MemoryPool(), cuda.Stream(), []
    cuda.zeros(1, stream=stream).to_host()  # the driver does not look for handlers while work runs
    signals = [signal.Signals[name] for name in names.split()]

    def stop(which: int) -> None:
        seen.append(which)
        raise TimeoutError(which)

    for which in signals:
        handled(which, partial(stop, which))
    at_allocation(*signals)
    with pytest.raises(TimeoutError) as caught:
        cuda.empty(1000, np.uint8, pool=pool)
    assert seen == signals
    # The exception of the last handler is raised while the others are being handled.
    assert caught.value.args[0] == signals[-1]
    if len(signals) > 1:
        assert caught.value.__context__.args[0] == signals[-2]
    frames = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert "deliver" in frames
    assert "interrupted" not in frames


@pytest.mark.needs("in_process")
def test_what_a_handler_raises_is_not_lost_in_a_finalizer(handled, at_allocation):
    pool, dropped = cuda.MemoryPool(), [cuda.zeros(1)]

    def stop() -> None:
        raise TimeoutError

    handled(signal.SIGUSR1, stop)
    at_allocation(signal.SIGUSR1)
    progress.postponed.append(lambda: in_finalizer(dropped.clear))
    with pytest.raises(TimeoutError):
        cuda.empty(1000, np.uint8, pool=pool)
    assert not dropped


@pytest.mark.needs("in_process")
def test_handlers_wait_although_one_of_them_calls_the_driver_on_the_way_into_a_call(handled):
    """The handlers run at a line of `enter`, a different line each time; once `enter` returns, all are deferred."""
    signals = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM]
    for which in signals:
        handled(which, lambda: driver.cuCtxSynchronize())
    handlers = [signal.getsignal(which) for which in signals]
    left = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code not in (type(progress).enter.__code__, type(progress).conceal.__code__):
            return None
        left -= 1
        if left == 0:
            sys.settrace(None)
            for which in signals:
                signal.raise_signal(which)
        return trace

    for step in range(1, 300):
        left = step
        sys.settrace(trace)
        try:
            progress.enter()
        finally:
            sys.settrace(None)
        try:
            assert all(signal.getsignal(which) == progress._recorder for which in signals)
            assert progress._held.issuperset(signals)
        finally:
            progress.leave()
            progress.expose()
        assert [signal.getsignal(which) for which in signals] == handlers
        if left > 0:
            break
    assert step > 10
