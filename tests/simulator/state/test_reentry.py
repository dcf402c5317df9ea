"""Calls of the driver in the middle of another one: by signal handlers, finalizers, and what kernels print to."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator import driver
from cudart_py.simulator.state.contexts import in_finalizer
from cudart_py.simulator.state.memory import pools
from cudart_py.simulator.state.progress import progress
from tests.simulator.state.test_lifetimes import live

SOURCE = r"""
extern "C" __global__ void step(unsigned *x, int rounds) {
    unsigned value = x[threadIdx.x];
    for (int i = 0; i < rounds; i++) value = value * 1664525u + 1013904223u;
    x[threadIdx.x] = value;
}
extern "C" __global__ void add(int *p, int value) { atomicAdd(p, value); }
extern "C" __global__ void speak(int value) { printf("spoken %d\n", value); }
"""
ENGINES = ["numpy", "native"]
LANES = 64


def stepped(x: Any, rounds: int) -> Any:
    """Return what `step` makes of an array."""
    multiplier, increment = 1, 0
    for bit in f"{rounds:b}":
        increment, multiplier = increment * (multiplier + 1), multiplier * multiplier
        if bit == "1":
            increment, multiplier = increment * 1664525 + 1013904223, multiplier * 1664525
        increment, multiplier = increment % (1 << 32), multiplier % (1 << 32)
    return np.array(x, np.uint32) * np.uint32(multiplier) + np.uint32(increment)


@pytest.fixture(params=ENGINES)
def engine(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    return cuda.compile(SOURCE)


@pytest.fixture
def handled() -> Iterator[Callable[[int, Callable[[], object]], None]]:
    """Let a function be called at a signal, until the end of the test."""
    before = {}

    def handle(which: int, function: Callable[[], object]) -> None:
        before[which] = signal.signal(which, lambda number, frame: function())

    yield handle
    signal.setitimer(signal.ITIMER_REAL, 0)
    for which, handler in before.items():
        signal.signal(which, handler)


def rounds_of(engine: str) -> int:
    """Return how many rounds of `step` take some tenths of a second."""
    return 10_000 if engine == "numpy" else 30_000_000


def test_a_handler_saves_arrays_while_a_kernel_runs(module, engine, handled):
    idle, busy, rounds = cuda.full(LANES, 7, np.int32), cuda.zeros(LANES, np.uint32), rounds_of(engine)
    module["step"][1, LANES](busy, 1)
    cuda.Device(0).synchronize()
    saved = []
    handled(signal.SIGTERM, lambda: saved.append((idle.to_host(), busy.to_host())))
    handler = signal.getsignal(signal.SIGTERM)
    module["step"][1, LANES](busy, rounds)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    cuda.Device(0).synchronize()
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
        signal.setitimer(signal.ITIMER_REAL, 0.002)  # from here on, since a handler may be interrupted too

    handled(signal.SIGALRM, handler)
    x.to_host()  # here the handler is noticed
    launches = 0
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    while alarms < 100:
        module["step"][1, LANES](x, 10)
        launches += 1
        other = cuda.zeros(100, np.int32)
        assert not other.to_host().any()
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert counted.to_host()[0] == 32 * alarms
    np.testing.assert_array_equal(x.to_host(), stepped(np.zeros(LANES), 10 * launches))


def test_a_handler_reaches_a_thread_that_launches(module, engine, handled):
    idle, x, rounds, saved = cuda.full(4, 7, np.int32), cuda.zeros(LANES, np.uint32), rounds_of(engine), []
    handled(signal.SIGTERM, lambda: saved.append(idle.to_host().tolist()))

    def work() -> None:
        with cuda.Device(0):
            module["step"][1, LANES](x, rounds)
            os.kill(os.getpid(), signal.SIGTERM)
            x.to_host()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert saved == [[7] * 4]
    np.testing.assert_array_equal(x.to_host(), stepped(np.zeros(LANES), rounds))


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
        with pytest.raises(cuda.CudaError, match="broken off by TimeoutError"):
            idle.to_host()
        saved.extend(idle.to_host().tolist() for _ in range(2))

    def work() -> None:
        for signal_of_handler, called in ((signal.SIGUSR1, raising), (signal.SIGUSR2, saving)):
            # Again if need be: a signal that arrives just before its thread begins to wait does not wake it.
            for _ in range(60):
                os.kill(os.getpid(), signal_of_handler)
                if called.wait(1):
                    break

    handled(signal.SIGUSR1, stop)
    handled(signal.SIGUSR2, save)
    stream.add_callback(work)
    with pytest.raises(TimeoutError):
        stream.synchronize()
    assert saved == [[7] * 4] * 2


@pytest.fixture
def at_allocation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Let signals arrive in the middle of the next allocation from a pool, where its tables change."""
    addresses = []

    def plant(*signals: int) -> None:
        allocate, left = pools.Pool.allocate, [*signals]

        def interrupted(*arguments: Any) -> Any:
            result = allocate(*arguments)
            if left:
                addresses.append(result[0].address)
            while left:
                signal.raise_signal(left.pop(0))
            return result

        monkeypatch.setattr(pools.Pool, "allocate", interrupted)

    yield plant
    # Their callers have never seen them.
    for address in addresses:
        cuda.check(cuda.raw.cuMemFree(address))


@pytest.mark.needs("in_process")
def test_each_signal_is_handled_although_the_handler_of_another_one_raises(handled, at_allocation):
    seen = []

    def stop(which: int) -> None:
        seen.append(which)
        raise TimeoutError(which)

    signals = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM]
    for which in signals:
        handled(which, partial(stop, which))
    pool = cuda.MemoryPool()
    cuda.Device(0).synchronize()
    at_allocation(*signals)
    with pytest.raises(TimeoutError) as caught:
        cuda.empty(1000, np.uint8, pool=pool)
    assert seen == signals
    # The last one is raised while the others are being handled.
    assert caught.value.args[0] == signal.SIGTERM
    assert caught.value.__context__.args[0] == signal.SIGUSR2


@pytest.mark.needs("in_process")
@pytest.mark.parametrize("which", ["SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_a_handler_waits_for_the_first_call_after_it_was_set(handled, at_allocation, which):
    pool, stream = cuda.MemoryPool(), cuda.Stream()
    cuda.empty(1, stream=stream).to_host()  # no handler is seen while work runs

    def stop() -> None:
        raise TimeoutError

    handled(signal.Signals[which], stop)
    at_allocation(signal.Signals[which])
    names = []
    with pytest.raises(TimeoutError) as caught:
        cuda.empty(1000, np.uint8, pool=pool)
    trace = caught.value.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "deliver" in names
    assert "interrupted" not in names


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
    """A handler runs at each line of `enter`; when that returns, all handlers wait."""
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


@pytest.fixture
def in_the_middle() -> Iterator[Callable[[Callable[[], object]], list[Any]]]:
    """Let a function be called by the garbage collector in the middle of the next launch; its results are listed."""
    threshold, hooks = gc.get_threshold(), []

    def plant(function: Callable[[], object]) -> list[Any]:
        results: list[Any] = []

        def hook(phase: str, information: Any) -> None:
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_qualname != "KernelLaunch.run":
                frame = frame.f_back
            if frame is not None and not results:
                results.append(None)
                try:
                    results[0] = function()
                except cuda.CudaError as error:
                    results[0] = error

        hooks.append(hook)
        gc.callbacks.append(hook)
        gc.set_threshold(1)
        return results

    yield plant
    gc.set_threshold(*threshold)
    for hook in hooks:
        gc.callbacks.remove(hook)


@pytest.mark.needs("in_process")
def test_each_thread_of_a_launch_is_in_the_middle_of_its_call(module, monkeypatch):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native.launching.launch import NativeLaunch

    for name, value in {"ENGINE": "native", "THREADS": "3"}.items():
        monkeypatch.setenv(f"CUDART_PY_SIMULATOR_{name}", value)
    idle, x = cuda.full(4, 7, np.int32), cuda.zeros(LANES, np.uint32)
    cuda.Device(0).synchronize()
    go_on, all_there, answers = NativeLaunch.go_on, threading.Barrier(3), {}

    def ask(launch: Any) -> Any:
        thread = threading.get_ident()
        if thread not in answers:
            answers[thread] = None
            all_there.wait(60)
            if progress.here:  # else it would wait for the launch, which waits for it
                try:
                    idle.to_host()
                except cuda.CudaError as error:
                    answers[thread] = error
        return go_on(launch)

    monkeypatch.setattr(NativeLaunch, "go_on", ask)
    with cuda.checks("off"):
        module["step"][300, LANES](x, 1)
        cuda.Device(0).synchronize()
    assert len(answers) == 3
    for error in answers.values():
        assert "in the middle of the launch of kernel step" in str(error)
    assert not progress.workers


REENTRANT: dict[str, Callable[[Any], object]] = {
    "to_host": lambda t: t.idle.to_host().tolist(),
    "copy": lambda t: cuda.memcpy(t.x[:4].view(np.int32), t.idle),
    "fill": lambda t: cuda.memset(t.x, 1),
    "allocate": lambda t: cuda.empty(3),
    "launch": lambda t: t.launch(),
    "synchronize": lambda t: cuda.Device(0).synchronize(),
    "query": lambda t: t.stream.done,
    "stream": lambda t: cuda.Stream(),
    "record": lambda t: t.stream.record(cuda.Event()),
    "module": lambda t: cuda.compile(SOURCE)["step"],
    "graph": lambda t: t.graph.launch(t.stream),
    "page-locked": lambda t: cuda.pinned_empty(4),
    "reset": lambda t: cuda.reset(),
    "memory_info": lambda t: cuda.Device(0).memory_info,
    "raw": lambda t: cuda.check(cuda.raw.cuMemsetD8(int(t.x.pointer), 1, 4)),
}


class Things:
    """The objects that the calls below use."""

    def __init__(self, module: cuda.Module) -> None:
        self.idle = cuda.full(4, 7, np.int32)
        self.x = cuda.zeros(LANES, np.uint32)
        self.stream = cuda.Stream()
        self.launch = module["step"][1, LANES].bind(self.x, 1)
        with self.stream.capture() as graph:
            module["step"][1, LANES, 0, self.stream](self.x, 5)
        self.graph = graph.instantiate()


@pytest.mark.needs("in_process")
@pytest.mark.parametrize("name", REENTRANT)
def test_a_call_in_the_middle_of_a_launch_is_refused_and_changes_nothing(module, engine, in_the_middle, name):
    things = Things(module)
    used = cuda.Device(0).memory_info.free
    results = in_the_middle(lambda: REENTRANT[name](things))
    module["step"][1, LANES](things.x, 500)
    cuda.Device(0).synchronize()
    assert isinstance(results[0], cuda.CudaError)
    for part in ("in the middle of the launch of kernel step", "__del__|finalizer", "set a flag"):
        assert any(each in str(results[0]) for each in part.split("|"))
    np.testing.assert_array_equal(things.x.to_host(), stepped(np.zeros(LANES), 500))
    assert things.idle.to_host().tolist() == [7] * 4
    assert cuda.Device(0).memory_info.free == used


FREES: dict[str, Callable[[], Any]] = {
    "array": lambda: cuda.zeros(1000),
    "page-locked": lambda: cuda.pinned_empty(1000),
    "stream": cuda.Stream,
    "event": cuda.Event,
    "pool": cuda.MemoryPool,
    "module": lambda: cuda.compile(SOURCE),
    "texture": lambda: cuda.Texture(cuda.zeros(8, np.float32)),
}


def drop(things: list[Any], way: str) -> None:
    """Drop the reference to the only one of some things, or close it."""
    if way == "del":
        things.clear()
    else:
        things[0].close()


@pytest.mark.needs("in_process")
@pytest.mark.parametrize("kind", FREES)
@pytest.mark.parametrize("way", ["del", "close"])
def test_what_is_dropped_in_the_middle_of_a_launch_is_given_back_after_it(module, engine, in_the_middle, kind, way):
    if way == "close" and kind == "page-locked":
        pytest.skip("it has no close()")
    x, device = cuda.zeros(LANES, np.uint32), cuda.Device(0)
    for _ in range(2):  # the first time leaves memory in the pool
        gc.collect()  # what other tests have left must not go in between
        device.synchronize()
        before = live()
        dropped = [FREES[kind]()]
        results = in_the_middle(partial(drop, dropped, way))
        module["step"][1, LANES](x, 500)
        device.synchronize()
        dropped.clear()
        device.synchronize()
        assert results == [None]
    assert live() == before
    np.testing.assert_array_equal(x.to_host(), stepped(np.zeros(LANES), 1000))


@pytest.mark.needs("in_process")
def test_any_number_of_arrays_may_be_dropped_in_the_middle_of_a_launch(module, engine, in_the_middle):
    x, pool = cuda.zeros(LANES, np.uint32), cuda.MemoryPool()
    arrays = [cuda.empty(1000, np.uint8, pool=pool) for _ in range(400)]
    results = in_the_middle(arrays.clear)
    module["step"][1, LANES](x, 500)
    cuda.Device(0).synchronize()
    assert results == [None]
    assert pool.used == 0


class Dropping:
    """A handle, as which an array is dropped whenever its number is asked for."""

    def __init__(self, handle: int, arrays: list[Any]) -> None:
        self._handle = handle
        self._arrays = arrays

    def __int__(self) -> int:
        self._arrays[-1:] = []
        return self._handle


@pytest.mark.needs("in_process")
def test_things_may_be_dropped_while_others_are_freed_in_the_middle_of_a_launch(module, in_the_middle):
    arrays = [cuda.zeros(1) for _ in range(30)]
    x = cuda.zeros(LANES, np.uint32)
    handles = [cuda.check(cuda.raw.cuEventCreate(0)) for _ in range(5)]

    def free() -> list[Any]:
        once = [cuda.raw.cuEventDestroy(Dropping(int(handle), arrays))[0] for handle in handles]
        return [*once, cuda.raw.cuEventDestroy(int(handles[0]))[0]]

    results = in_the_middle(free)
    module["step"][1, LANES](x, 500)
    cuda.Device(0).synchronize()
    assert [status.name for status in results[0]] == ["CUDA_SUCCESS"] * 5 + ["CUDA_ERROR_INVALID_VALUE"]
    assert cuda.raw.cuEventDestroy(handles[0])[0].name != "CUDA_SUCCESS"


class Calling(io.StringIO):
    """A standard output whose writing calls the driver."""

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__()
        self._function = function

    def write(self, text: str) -> int:
        self._function()
        return super().write(text)


@pytest.mark.needs("in_process")
def test_standard_output_may_call_the_driver(module, engine, monkeypatch):
    idle, x, seen = cuda.full(4, 7, np.int32), cuda.zeros(LANES, np.uint32), []

    def work() -> None:
        module["step"][1, LANES](x, 3)
        seen.append((idle.to_host().tolist(), x.to_host()))

    output = Calling(work)
    monkeypatch.setattr(sys, "stdout", output)
    for value in range(3):
        module["speak"][1, 1](value)
    cuda.Device(0).synchronize()
    assert output.getvalue() == "spoken 0\nspoken 1\nspoken 2\n"
    assert [first for first, _ in seen] == [[7] * 4] * 3
    for count, (_, second) in enumerate(seen, 1):
        np.testing.assert_array_equal(second, stepped(np.zeros(LANES), 3 * count))


@pytest.mark.needs("in_process")
def test_standard_output_may_wait_for_a_thread_that_calls_the_driver(module, engine, monkeypatch):
    idle, seen = cuda.full(4, 7, np.int32), []

    def work() -> None:
        thread = threading.Thread(target=lambda: seen.append(idle.to_host().tolist()))
        thread.start()
        thread.join(5)

    monkeypatch.setattr(sys, "stdout", Calling(work))
    module["speak"][1, 1](0)
    cuda.Device(0).synchronize()
    assert seen == [[7] * 4]
