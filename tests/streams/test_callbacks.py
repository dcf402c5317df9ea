"""Host functions in streams, and streams and events in asyncio: the work that `await` waits for, and its cleanup."""

import asyncio
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
from cudart_py.context import capture as captures_module
from cudart_py.context import lifetimes
from cudart_py.driver import backend
from cudart_py.streams import awaiting


def test_callbacks_run_in_order_after_the_work_before_them(module, stream):
    out = cuda.pinned_empty(10, np.float32)
    y = cuda.zeros(10, np.float32, stream=stream)
    module["saxpy"][1, 32, 0, stream](2.0, cuda.full(10, 1, np.float32, stream=stream), y, 10)
    y.to_host(out, stream=stream)
    seen = []
    for i in range(100):
        stream.launch_host_function(lambda i=i: seen.append((i, out.sum())))
    stream.synchronize()
    assert seen == [(i, 20) for i in range(100)]
    y.close()
    for default in (cuda.legacy_default, cuda.per_thread_default):
        default.launch_host_function(lambda: seen.append("default"))
        default.synchronize()
    assert seen[100:] == ["default"] * 2


def test_a_callback_is_kept_until_it_has_run_and_let_go_after(device):
    class Callback:
        def __call__(self):
            seen.append(1)

    seen = []
    with cuda.Stream() as stream:
        callback = Callback()
        kept = weakref.ref(callback)
        stream.launch_host_function(callback)
        del callback
        gc.collect()
        stream.synchronize()
        assert seen == [1]
        stream.launch_host_function(lambda: None)
        stream.synchronize()
        gc.collect()
        assert kept() is None


def test_a_signal_in_a_callback_interrupts_the_program(device, request):
    stream = cuda.Stream()
    handler = signal.default_int_handler
    # A shell starts its background jobs with SIGINT ignored.
    request.addfinalizer(functools.partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, handler)))

    def interrupted() -> None:
        stream.launch_host_function(
            lambda: os.kill(os.getpid(), signal.SIGINT)
        )  # a GPU may run it before this call returns
        stream.synchronize()

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert signal.getsignal(signal.SIGINT) is handler
    with contextlib.suppress(cuda.CudaError):  # the simulator reports the work that it abandoned
        device.synchronize()
    seen = []
    stream.launch_host_function(lambda: seen.append(1))
    stream.synchronize()
    assert seen == [1]


async def awaited(waiting):
    await waiting


@pytest.mark.parametrize(
    "wait",
    [
        lambda stream, array: stream.synchronize(),
        lambda stream, array: cuda.current_device().synchronize(),
        lambda stream, array: stream.record().synchronize(),
        lambda stream, array: array.to_host(),
        lambda stream, array: asyncio.run(awaited(stream)),
        lambda stream, array: asyncio.run(awaited(stream.record())),
    ],
    ids=["stream", "device", "event", "to_host", "await stream", "await event"],
)
def test_the_next_call_that_waits_raises_what_a_callback_has_raised(stream, wait):
    after, array = [], cuda.zeros(4, np.int32, stream=stream)
    stream.launch_host_function(lambda: 1 / 0)
    stream.launch_host_function(lambda: after.append(1))
    with pytest.raises(ZeroDivisionError) as caught:
        wait(stream, array)
    assert "host function" in caught.value.__notes__[0]
    stream.synchronize()
    assert after == [1]


def test_what_several_callbacks_raise_is_one_group(stream):
    with stream.capture() as graph:
        stream.launch_host_function(lambda: 1 / 0)
    graph.instantiate().launch(stream)
    stream.launch_host_function(lambda data: None)
    with pytest.raises(ExceptionGroup) as caught:
        stream.synchronize()
    assert list(map(type, caught.value.exceptions)) == [ZeroDivisionError, TypeError]


def test_what_a_callback_raises_is_printed_at_the_exit_if_nothing_waits(python):
    program = "import cudart_py as cuda\ncuda.Stream().launch_host_function(lambda: 1 / 0)\n"
    result = python(program, CUDART_PY_DRIVER=backend._selected)
    assert "ZeroDivisionError: division by zero" in result.stderr


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
        stream.launch_host_function(lambda: drop(box))
        stream.synchronize()
        stream.synchronize()
    assert closed == [False]


def test_a_callback_is_a_callable_for_an_open_stream(device):
    stream = cuda.Stream()
    with pytest.raises(TypeError, match="'function' must be a function without arguments, not the int"):
        stream.launch_host_function(5)
    stream.close()
    with pytest.raises(ValueError, match="this Stream is closed"):
        stream.launch_host_function(lambda: None)


def test_a_callback_that_nobody_waited_for_runs_before_the_exit(python):
    program = "import cudart_py as cuda\ncuda.Stream().launch_host_function(lambda: print('ran', flush=True))\n"
    result = python(program, CUDART_PY_DRIVER=backend._selected)
    assert (result.stdout, result.stderr) == ("ran\n", "")


@pytest.mark.parametrize("of", ["stream", "device"])
def test_a_synchronization_gives_back_all_arrays_that_a_callback_dropped(device, of):
    with cuda.Stream() as stream:
        # So many that releases within releases would end in a RecursionError.
        arrays = [cuda.empty(16, np.uint8, stream=stream) for _ in range(sys.getrecursionlimit())]
        stream.launch_host_function(arrays.clear)
        waited_for = {"stream": stream, "device": device}[of]
        waited_for.synchronize()
        waited_for.synchronize()
        assert not lifetimes.postponed


SECONDS = 60  # a longer wait counts as a hang


def in_a_loop(test):
    """Return a test that runs the coroutine `test` in a new event loop, with a time limit."""

    @functools.wraps(test)
    def run(**fixtures):
        asyncio.run(asyncio.wait_for(test(**fixtures), SECONDS))

    return run


@pytest.fixture
def never_done(monkeypatch):
    """Make all events that `await` creates report pending work; return a list of them."""
    opened = []

    class Unreached(cuda.Event):
        done = False

        def __init__(self, **options):
            super().__init__(**options)
            opened.append(self)

    monkeypatch.setattr("cudart_py.streams.awaiting.Event", Unreached)
    return opened


def fills(stream, count=20):
    """Queue `count` fills of an array and a copy of it; return the pinned array that gets the last value."""
    out = cuda.pinned_empty(4, np.int32)
    out[:] = -1
    x = cuda.empty(4, np.int32, stream=stream)
    for value in range(count):
        cuda.memset(x, value, stream=stream)
    x.to_host(out, stream=stream)
    x.close(stream=stream)
    return out


@pytest.mark.parametrize("kind", ["stream", "legacy", "per thread"])
@pytest.mark.parametrize("by_event", [False, True])
@in_a_loop
async def test_awaiting_a_stream_or_an_event_waits_for_the_work_before(stream, kind, by_event):
    chosen = {"stream": stream, "legacy": cuda.legacy_default, "per thread": cuda.per_thread_default}[kind]
    out = fills(chosen)
    awaited = chosen.record() if by_event else chosen
    await awaited
    assert out.tolist() == [19] * 4
    assert awaited.done


@in_a_loop
async def test_several_streams_and_events_are_awaited_together(device):
    streams = [cuda.Stream() for _ in range(3)]
    outs = [fills(each) for each in streams]
    never_recorded = cuda.Event()
    await asyncio.gather(streams[0], streams[1], streams[2].record(), never_recorded)
    assert [out.tolist() for out in outs] == [[19] * 4] * 3


@in_a_loop
async def test_the_event_loop_goes_on_meanwhile_and_a_cancelled_wait_leaves_the_stream_as_it_was(stream, never_done):
    out = fills(stream)
    waiting = asyncio.ensure_future(stream)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [event.closed for event in never_done] == [True]
    stream.synchronize()
    assert out.tolist() == [19] * 4


@in_a_loop
async def test_work_given_to_a_stream_meanwhile_is_not_waited_for(stream, monkeypatch):
    """Otherwise waiting for a stream that is always busy would never end."""

    def more(event):
        cuda.memset(x, 1, stream=stream)
        return asked(event)

    x = cuda.zeros(4, np.int32, stream=stream)
    asked = cuda.Event.done.fget
    monkeypatch.setattr(cuda.Event, "done", property(more))
    await stream
    x.close(stream=stream)


@pytest.mark.parametrize("kind", [cuda.Stream, cuda.Event])
@in_a_loop
async def test_what_is_closed_cannot_be_awaited(device, kind):
    with kind() as closed:
        pass
    with pytest.raises(ValueError, match="is closed"):
        await closed


@in_a_loop
async def test_in_a_capture_another_stream_is_awaited_and_its_own_refused(stream):
    x = cuda.zeros(4, np.int32, stream=stream)
    stream.synchronize()
    with cuda.Stream(non_blocking=True) as other:
        out = fills(other)
        with stream.capture("global") as graph:
            with pytest.raises(cuda.errors.CaptureError, match="waiting for a stream cannot be captured"):
                await stream
            cuda.memset(x, 1, stream=stream)
            await other
        assert graph.node_count == 1
        assert out.tolist() == [19] * 4
    assert not captures_module.captures


FAULT = """
import asyncio, cudart_py as cuda

async def main():
    with cuda.Device(0):
        kernel = cuda.compile('extern "C" __global__ void broken(int *p) { *p = 1; }')["broken"]
        stream = cuda.Stream(non_blocking=True)
        kernel[1, 32, 0, stream](None)
        await AWAITED

asyncio.run(asyncio.wait_for(main(), 60))
"""


@pytest.mark.unsanitized("a kernel stores to address 0 on purpose")
@pytest.mark.parametrize("awaited", ["stream", "stream.record()"])
def test_awaiting_raises_what_the_work_failed_with(python, awaited):
    result = python(FAULT.replace("AWAITED", awaited), check=False, CUDART_PY_DRIVER=backend._selected)
    message = result.stderr.partition("IllegalAddressError: cuEventQuery")[2]
    assert "broken" in message  # the kernel's name


@pytest.mark.parametrize("is_closed", [False, True])
@in_a_loop
async def test_a_future_that_a_callback_sets_is_set_though_nothing_else_waits(device, is_closed):
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    with cuda.Stream(non_blocking=True) as stream:
        out = fills(stream)
        stream.launch_host_function(lambda: loop.call_soon_threadsafe(future.set_result, out.tolist()))
        if not is_closed:
            await future
    assert await future == [19] * 4


def test_what_asks_for_a_callback_is_let_go_with_its_loop(stream, never_done, monkeypatch):
    monkeypatch.setattr(awaiting, "capabilities", frozenset)
    seen = []

    async def main():
        stream.launch_host_function(lambda: seen.append(1))
        await asyncio.sleep(0)

    asyncio.run(main())
    gc.collect()
    assert len(never_done) == 1
    stream.synchronize()
    assert seen == [1]


def test_a_loop_that_ends_before_its_callbacks_have_run_says_nothing(python):
    program = """
import asyncio, cudart_py as cuda

async def main(stream):
    for _ in range(50):
        stream.launch_host_function(lambda: None)

with cuda.Device(0), cuda.Stream() as stream:
    asyncio.run(main(stream))
    stream.synchronize()
"""
    result = python(program, CUDART_PY_DRIVER=backend._selected)
    assert (result.stdout, result.stderr) == ("", "")
