"""Host callbacks in streams: when they run, what keeps them, and where their errors go."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import sys
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context import lifetimes
from cudart_py.driver import seam


def test_callbacks_run_in_order_after_the_work_before_them(module, stream):
    out = cuda.pinned_empty(10, np.float32)
    y = cuda.zeros(10, np.float32, stream=stream)
    module["saxpy"][1, 32, 0, stream](2.0, cuda.full(10, 1, np.float32, stream=stream), y, 10)
    y.to_host(out, stream=stream)
    seen = []
    for i in range(100):
        stream.add_callback(lambda i=i: seen.append((i, out.sum())))
    stream.synchronize()
    assert seen == [(i, 20) for i in range(100)]
    y.close()


def test_the_default_streams_take_callbacks(device):
    seen = []
    cuda.legacy_default.add_callback(lambda: seen.append("legacy"))
    cuda.per_thread_default.add_callback(lambda: seen.append("thread"))
    device.synchronize()
    assert sorted(seen) == ["legacy", "thread"]


def test_a_callback_is_kept_until_it_has_run_and_let_go_after(device):
    class Callback:
        def __call__(self):
            seen.append(1)

    seen = []
    with cuda.Stream() as stream:
        callback = Callback()
        kept = weakref.ref(callback)
        stream.add_callback(callback)
        del callback
        gc.collect()
        stream.synchronize()
        assert seen == [1]
        stream.add_callback(lambda: None)
        stream.synchronize()
        gc.collect()
        assert kept() is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # because the callback is interrupted
def test_a_signal_in_a_callback_interrupts_the_program(device, request):
    stream = cuda.Stream()
    handler = signal.default_int_handler
    # A shell starts its background jobs with the signal ignored.
    request.addfinalizer(functools.partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, handler)))

    def interrupted() -> None:
        stream.add_callback(lambda: os.kill(os.getpid(), signal.SIGINT))  # which a GPU may run before this returns
        stream.synchronize()

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert signal.getsignal(signal.SIGINT) is handler
    with contextlib.suppress(cuda.CudaError):  # because the simulator tells what it has broken off
        device.synchronize()
    seen = []
    stream.add_callback(lambda: seen.append(1))
    stream.synchronize()
    assert seen == [1]


def test_what_a_callback_raises_goes_to_the_unraisable_hook(stream, monkeypatch):
    caught, after = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: caught.append(event.exc_type))
    stream.add_callback(lambda: 1 / 0)
    stream.add_callback(lambda: after.append(1))
    stream.synchronize()
    assert caught == [ZeroDivisionError]
    assert after == [1]


def test_an_array_that_a_callback_drops_is_closed_later_by_another_call(device):
    closed = []

    class Watched(cuda.Event):
        __slots__ = ()

        def _release(self, value):
            closed.append(in_callback)
            super()._release(value)

    in_callback = False

    def drop(box):
        nonlocal in_callback
        in_callback = True
        box.clear()
        gc.collect()
        in_callback = False

    with cuda.Stream() as stream:
        box = [Watched()]
        stream.add_callback(lambda: drop(box))
        stream.synchronize()
        stream.synchronize()
    assert closed == [False]


def test_a_callback_is_a_callable_for_an_open_stream(device):
    stream = cuda.Stream()
    with pytest.raises(TypeError, match="'function' must be a function without arguments, not the int"):
        stream.add_callback(5)
    stream.close()
    with pytest.raises(ValueError, match="this Stream is closed"):
        stream.add_callback(lambda: None)


def test_a_callback_that_nobody_waited_for_runs_before_the_exit(python):
    program = "import cudart_py as cuda\ncuda.Stream().add_callback(lambda: print('ran', flush=True))\n"
    result = python(program, CUDART_PY_DRIVER=seam._selected)
    assert (result.stdout, result.stderr) == ("ran\n", "")


@pytest.mark.parametrize("of", ["stream", "device"])
def test_a_synchronization_gives_back_the_thousands_of_arrays_that_a_callback_dropped(device, of):
    with cuda.Stream() as stream:
        arrays = [cuda.empty(16, np.uint8, stream=stream) for _ in range(3000)]
        stream.add_callback(arrays.clear)
        waited_for = {"stream": stream, "device": device}[of]
        waited_for.synchronize()
        waited_for.synchronize()
        assert not lifetimes.postponed
