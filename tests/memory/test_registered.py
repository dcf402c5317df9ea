"""Existing NumPy arrays page-locked for a while."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.memory.host_memory import is_pinned


def test_an_array_is_pinned_inside_the_block_and_not_after(device):
    array = np.zeros(1000)
    with cuda.register_host(array) as memory:
        assert is_pinned(array)
        assert is_pinned(array[10:20])
        assert memory.array is array
    assert memory.closed
    assert not is_pinned(array)


def test_only_what_lies_wholly_inside_is_pinned(device):
    array = np.zeros(1000)
    with cuda.register_host(array[100:200]):
        assert is_pinned(array[100:200:7])
        assert is_pinned(array[150:100:-1])
        assert not is_pinned(array)
        assert not is_pinned(array[199:201])
        assert not is_pinned(array[:50])


def test_the_array_stays_alive_while_it_is_locked(device):
    array = np.zeros(1000).view(type("Kept", (np.ndarray,), {}))
    gone = weakref.ref(array)
    memory = cuda.register_host(array)
    del array
    gc.collect()
    assert gone() is not None
    memory.close()


def test_dropping_the_result_unlocks(device):
    array = np.zeros(1000)
    cuda.register_host(array)
    gc.collect()
    assert not is_pinned(array)
    with cuda.register_host(array):
        pass


def test_copies_with_a_stream_run_beside_the_host(device):
    array = np.full(1000, 5.0)
    with cuda.register_host(array), cuda.Stream() as stream:
        there = cuda.empty(1000, stream=stream)
        there.copy_from(array, stream=stream)
        out = np.zeros(1000)
        with cuda.register_host(out):
            there.to_host(out, stream=stream)
            stream.synchronize()
            np.testing.assert_array_equal(out, array)
        there.close()


def test_a_kernel_takes_it(device, module):
    x, y = np.full(100, 2, np.float32), np.ones(100, np.float32)
    with cuda.register_host(x), cuda.register_host(y):
        module["saxpy"][1, 128](3.0, x, y, 100)
        device.synchronize()
    np.testing.assert_array_equal(y, np.full(100, 7, np.float32))


def test_it_has_a_device_pointer(device):
    array = np.zeros(1000)
    with cuda.register_host(array):
        start = int(cuda.device_pointer(array))
        assert int(cuda.device_pointer(array[10:])) == start + 80
    with pytest.raises(ValueError, match="pageable"):
        cuda.device_pointer(array)


def test_twice_is_refused_and_changes_nothing(device):
    array = np.zeros(1000)
    with cuda.register_host(array):
        with pytest.raises(cuda.InvalidValueError):
            cuda.register_host(array)
        assert is_pinned(array)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: [1.0], TypeError, "list"),
        (lambda: np.zeros(0), ValueError, "no elements"),
        (lambda: np.zeros((4, 4))[:, :2], ValueError, "not in one piece"),
        (lambda: np.broadcast_to(np.zeros(1), 1), ValueError, "read-only"),
    ],
)
def test_wrong_arrays_are_named(device, make, error, words):
    with pytest.raises(error, match=words):
        cuda.register_host(make())


def test_many_come_and_go(device):
    arrays = [np.zeros(10_000) for _ in range(50)]
    for _ in range(4):
        held = [cuda.register_host(array) for array in arrays]
        assert all(is_pinned(array) for array in arrays)
        for memory in held[::-1]:
            memory.close()
        assert not any(is_pinned(array) for array in arrays)


def test_it_is_an_array_of_bytes_to_numpy(device):
    array = np.arange(10, dtype=np.int16)
    with cuda.register_host(array) as memory:
        assert np.asarray(memory).view(np.int16).tolist() == list(range(10))
