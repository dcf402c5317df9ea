"""Large copies of pageable memory, staged through a ring of pinned buffers."""

import ctypes
import functools
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import errors
from cudart_py.driver import calls
from cudart_py.memory import staging


@pytest.fixture
def small(monkeypatch):
    """Stage copies of 8 KiB and more, in pieces of 1000 bytes, on any machine."""
    cuda.release_staging()
    sizes = {"THRESHOLD": 8 << 10, "_SLOT_BYTES": 1000, "_SLOTS": 4, "_FILLING": 3, "_EMPTYING": 2, "_THREADS": 2}
    for name, value in {**sizes, "_processors": lambda: 3, "_LEAST_PROCESSORS": 1}.items():
        monkeypatch.setattr(staging, name, value)
    yield
    cuda.release_staging()


@pytest.fixture
def pieces(monkeypatch):
    """Return a list that collects the sizes of the driver's copies in bytes."""
    sizes = []

    def noting(function, *arguments):
        sizes.append(arguments[2])
        return function(*arguments)

    for name in ("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"):
        call = functools.partial(noting, getattr(calls.raw, name))
        monkeypatch.setitem(vars(calls.raw), name, call)
        monkeypatch.setitem(vars(calls.api), name, calls._unwrapped(call, name))
    return sizes


@pytest.mark.parametrize("nbytes", [8192, 8999, 9000, 9001, 100_003])
@pytest.mark.parametrize("named", [None, "new", cuda.legacy_default, cuda.per_thread_default], ids=str)
def test_bytes_arrive_both_ways(device, rng, small, pieces, nbytes, named):
    stream = cuda.Stream(non_blocking=True) if named == "new" else named
    host = rng.integers(0, 256, nbytes, np.uint8)
    array = cuda.to_device(host, stream=stream)
    np.testing.assert_array_equal(array.to_host(stream=stream), host)
    assert pieces == 2 * ([1000] * (nbytes // 1000) + [nbytes % 1000] * (nbytes % 1000 > 0))


@pytest.mark.parametrize("count", [500, 20_000])
def test_the_host_has_its_memory_back_when_the_copy_returns(device, small, stream, count):
    host, out = np.arange(count), np.zeros(count, np.int64)
    array = cuda.empty(count, host.dtype, stream=stream)
    cuda.memcpy(array, host, stream=stream)
    host[:] = -1
    cuda.memcpy(out, array, stream=stream)
    np.testing.assert_array_equal(out, np.arange(count))


def test_copies_stay_in_the_order_of_their_stream(module, small, stream):
    x = cuda.full(10_000, np.float32(1), stream=stream)
    y = cuda.to_device(np.full(10_000, 5, np.float32), stream=stream)
    module["saxpy"][40, 256, 0, stream](2.0, x, y, 10_000)
    cuda.memcpy(x, np.full(10_000, 9, np.float32), stream=stream)
    module["saxpy"][40, 256, 0, stream](1.0, x, y, 10_000)
    np.testing.assert_array_equal(y.to_host(stream=stream), np.full(10_000, 16, np.float32))


def test_page_locked_memory_and_small_copies_are_not_staged(device, small, pieces):
    pinned, managed = cuda.pinned_empty(20_000, np.uint8), cuda.managed_empty(20_000, np.uint8)
    plain = np.zeros(20_000, np.uint8)
    with cuda.register_host(plain):
        for host in (pinned, managed, plain):
            cuda.to_device(host).to_host(host)
    cuda.to_device(plain[:8191])
    assert pieces == [20_000] * 6 + [8191]


def test_a_copy_that_finds_the_ring_busy_goes_to_the_driver(device, small, pieces):
    host = np.arange(10_000, dtype=np.uint8)
    cuda.to_device(host)
    pieces.clear()
    ring = staging._rings[device]
    with ring.busy:
        np.testing.assert_array_equal(cuda.to_device(host).to_host(), host)
    assert pieces == [10_000, 10_000]


def test_many_threads_copy_at_once(device, small):
    def work(seed):
        with cuda.Device(0), cuda.Stream(non_blocking=True) as stream:
            host = np.random.default_rng(seed).integers(0, 256, 30_011, np.uint8)
            for _ in range(10):
                with cuda.to_device(host, stream=stream) as array:
                    np.testing.assert_array_equal(array.to_host(stream=stream), host)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))


@pytest.fixture
def slow(monkeypatch):
    """Slow down the threads' copies enough to expose code that does not wait; return a list of those running."""
    running = []

    def move(*arguments):
        running.append(arguments)
        time.sleep(0.002)
        ctypes.memmove(*arguments)
        running.remove(arguments)

    monkeypatch.setattr(staging, "ctypes", SimpleNamespace(memmove=move))
    return running


@pytest.mark.parametrize("call", ["cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuEventRecord"])
@pytest.mark.parametrize("at", [0, 1, 5, 8])
def test_after_an_error_no_thread_touches_the_callers_memory_and_the_next_copy_works(
    device, small, slow, driver_calls, call, at
):
    host, out, array = np.arange(9000, dtype=np.uint8), np.zeros(9000, np.uint8), cuda.zeros(9000, np.uint8)
    up, down = (array, host), (out, array)
    for copy in {"cuMemcpyHtoDAsync": [up], "cuMemcpyDtoHAsync": [down], "cuEventRecord": [up, down]}[call]:
        count = itertools.count()
        driver_calls.fails = lambda name, count=count: name == call and next(count) == at
        with pytest.raises(errors.CudaError, match=call):
            cuda.memcpy(*copy)
        assert not slow
    np.testing.assert_array_equal(cuda.to_device(host).to_host(), host)


# Fewer and more pieces than there are threads (2), pieces being processed (3 filled, 2 emptied), and slots (4).
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 30])
def test_slots_are_used_again_only_when_they_are_done_with(device, rng, small, slow, monkeypatch, count):
    monkeypatch.setattr(staging, "THRESHOLD", 1)
    host = rng.integers(0, 256, 1000 * count, np.uint8)
    np.testing.assert_array_equal(cuda.to_device(host).to_host(), host)


def test_some_slots_are_the_devices():
    assert min(staging._FILLING, staging._EMPTYING) >= staging._THREADS
    assert max(staging._FILLING, staging._EMPTYING) < staging._SLOTS


def test_without_page_locked_memory_the_driver_copies(device, small, monkeypatch, pieces):
    def none(*arguments, **named):
        raise cuda.OutOfMemoryError("planted")

    monkeypatch.setattr(staging, "PinnedMemory", none)
    host = np.arange(10_000, dtype=np.uint8)
    np.testing.assert_array_equal(cuda.to_device(host).to_host(), host)
    assert pieces == [10_000, 10_000]


def test_during_a_capture_of_others_the_driver_decides(device, small, monkeypatch, pieces):
    monkeypatch.setattr(staging, "_capturing", lambda stream: True)
    cuda.to_device(np.zeros(10_000))
    assert pieces == [80_000]


def test_during_any_capture_of_ours_the_driver_copies(device, small, pieces):
    stream, other = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    array = cuda.empty(10_000, stream=other)
    with stream.capture():
        cuda.memcpy(array, np.zeros(10_000), stream=other)
    assert pieces == [80_000]
    assert not staging._rings


def test_the_ring_is_given_back_and_made_again(device, small):
    host = np.arange(10_000)
    cuda.to_device(host)
    before = threading.active_count()
    memory = staging._rings[device]._memory
    cuda.release_staging()
    assert memory.closed
    assert threading.active_count() < before
    np.testing.assert_array_equal(cuda.to_device(host).to_host(), host)
