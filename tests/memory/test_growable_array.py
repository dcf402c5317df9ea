"""Arrays that grow in place: their address stays, their values stay, and their memory comes and goes."""

import gc
import sys
import threading

import numpy as np
import pytest

import cudart_py as cuda

PIECE = 2 << 20
KERNELS = """
extern "C" __global__ void increment(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
"""


def growable(capacity=4 * PIECE, dtype=np.int32, **options):
    return cuda.virtual.GrowableArray(capacity, dtype, **options)


def test_values_and_address_survive_growth(device, kernels, rng):
    with growable() as x:
        address = x.pointer
        values = rng.integers(-1000, 1000, PIECE, np.int32)
        for part in (values[:3], values[3:1000], values[1000:]):
            x.append(part)
            assert (x.pointer, x.array.pointer) == (address, address)
        kernels["increment"][PIECE // 256, 256](x.array, len(x))
        assert np.array_equal(x.array.to_host(), values + 1)


def test_older_views_stay_valid_and_see_the_same_elements(device, rng):
    with growable() as x:
        values = rng.integers(-1000, 1000, 100, np.int32)
        view = x.append(values).array[10:20]
        x.resize(3 * PIECE)
        x.array[:100].fill(7)
        assert view.to_host().tolist() == [7] * 10


def test_memory_is_committed_in_pieces_and_given_back(device):
    with growable(dtype=np.uint8) as x:
        assert (len(x), x.committed_bytes) == (0, 0)
        x.resize(1)
        assert x.committed_bytes == PIECE
        x.resize(PIECE)
        assert x.committed_bytes == PIECE
        x.resize(PIECE + 1)
        assert x.committed_bytes == 2 * PIECE
        x.resize(3)
        assert (len(x), x.committed_bytes) == (3, PIECE)
        x.resize(0)
        assert x.committed_bytes == 0
        x.resize(4 * PIECE)
        assert x.committed_bytes == 4 * PIECE


def test_shrinking_waits_for_work_that_uses_the_elements(device, kernels, stream):
    with growable() as x:
        x.resize(PIECE)
        x.array.fill(1, stream=stream)
        x.resize(2 * PIECE)
        kernels["increment"][2 * PIECE // 256, 256, 0, stream](x.array, 2 * PIECE)
        x.resize(5)
        stream.synchronize()
        assert x.array.to_host().tolist() == [2] * 5


def test_rows_have_a_shape(device, rng):
    with growable(100, np.float32, row_shape=(2, 3)) as x:
        values = rng.random((5, 2, 3)).astype(np.float32)
        x.append(values).append(cuda.to_device(values[:1]))
        assert x.array.shape == (6, 2, 3)
        assert np.array_equal(x.array.to_host(), np.concatenate([values, values[:1]]))


def test_an_array_keeps_the_memory_alive(device):
    array = growable().append(np.arange(5, dtype=np.int32)).array
    gc.collect()
    assert array.to_host().tolist() == [0, 1, 2, 3, 4]


def test_a_closed_array_cannot_be_used(device):
    x = growable()
    x.append(np.ones(3, np.int32))
    x.close()
    x.close()
    assert x.closed
    assert "closed" in repr(x)
    for use in (lambda: x.array, lambda: x.pointer, lambda: x.resize(3), lambda: x.append(np.ones(1, np.int32))):
        with pytest.raises(ValueError, match="closed"):
            use()


@pytest.mark.xdist_group("free memory")
def test_closing_gives_all_memory_back(device):
    device.synchronize()  # which destroys the pools that earlier tests have closed
    with growable(64 * PIECE, np.uint8):  # so that the driver has set up what virtual memory needs
        before = device.memory_info.free
    with growable(64 * PIECE, np.uint8) as x:
        assert device.memory_info.free == before
        x.resize(64 * PIECE)
        assert device.memory_info.free <= before - 64 * PIECE
    assert device.memory_info.free == before


def test_too_much_memory_leaves_the_length_as_it_was(device):
    total = device.memory_info.total
    with growable(4 * total, np.uint8) as x:
        x.resize(3)
        with pytest.raises(cuda.OutOfMemoryError, match="bytes of device memory were requested"):
            x.resize(4 * total)
        assert len(x) == 3
        assert x.append(np.arange(2, dtype=np.uint8)).array[3:].to_host().tolist() == [0, 1]


def test_what_does_not_fit_is_refused(device):
    with growable(10) as x:
        x.append(np.zeros(8, np.int32))
        with pytest.raises(ValueError, match=r"resize: argument 'length' must not exceed the capacity of 10"):
            x.resize(11)
        with pytest.raises(ValueError, match="append: argument 'values' must have at most 2 rows"):
            x.append(np.zeros(3, np.int32))
        with pytest.raises(TypeError, match="append: argument 'values' must have dtype int32, not float64"):
            x.append(np.zeros(1))
        with pytest.raises(ValueError, match=r"append: argument 'values' must have rows of shape \(\)"):
            x.append(np.zeros((1, 2), np.int32))
        with pytest.raises(ValueError, match=r"append: argument 'values' must have rows of shape \(\)"):
            x.append(np.int32(3))
        assert len(x) == 8


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"capacity": 0}, ValueError, "'capacity' must be an int from 1"),
        ({"capacity": 2.5}, TypeError, "'capacity' must be an int"),
        ({"dtype": object}, TypeError, "'dtype'"),
        ({"row_shape": (2, 0)}, ValueError, "'row_shape' must have at least one element"),
        ({"accessible_to": 5}, TypeError, "'accessible_to' must be a list of Devices"),
        ({"accessible_to": [5]}, TypeError, "'accessible_to' must be a list of Devices"),
    ],
)
def test_bad_arguments_are_named(device, arguments, error, text):
    with pytest.raises(error, match=f"^GrowableArray: .*{text}"):
        cuda.virtual.GrowableArray(**{"capacity": 3} | arguments)


@pytest.mark.needs("peer")
def test_another_device_uses_the_array(kernels):
    first, second = next(
        (one, other) for one in cuda.devices() for other in cuda.devices() if one.can_access_peer(other)
    )
    with second, growable(accessible_to=[first]) as x:
        x.append(np.arange(5, dtype=np.int32))
        second.synchronize()
        with first:
            alias = cuda.DeviceArray.borrow(x.pointer, 5, np.int32, owner=x)
            kernels["increment"][1, 32](alias, 5)
            first.synchronize()
        assert x.array.to_host().tolist() == [1, 2, 3, 4, 5]


@pytest.mark.needs("reset")
def test_a_reset_closes_it_and_frees_its_memory(python):
    program = """
import numpy as np
import cudart_py as cuda

x = cuda.virtual.GrowableArray(1 << 30, np.uint8)
free = cuda.current_device().memory_info.free
x.resize(4 << 20)
cuda.reset()
print(x.closed, cuda.current_device().memory_info.free - free)
x.close()
with cuda.virtual.GrowableArray(100, np.int32) as y:
    print(y.append(np.arange(3, dtype=np.int32)).array.to_host())
"""
    assert python(program).stdout.splitlines() == ["True 0", "[0 1 2]"]


def test_a_copy_that_fails_leaves_the_length_as_it_was(device):
    with growable(dtype=np.float32) as x, cuda.Stream() as stream:
        x.append(np.arange(3, dtype=np.float32))
        with stream.capture() as graph:
            with pytest.raises(cuda.errors.CaptureError, match="pageable"):
                x.append(np.ones(3, np.float32), stream=stream)
            cuda.memset(x.array, 5.0, stream=stream)
        assert (len(x), graph.node_count) == (3, 1)
        x.append(np.ones(1, np.float32))
        assert x.array.to_host().tolist() == [0, 1, 2, 1]


def test_memory_is_not_released_during_a_capture(device):
    with growable(dtype=np.uint8) as x, cuda.Stream() as stream:
        x.resize(3 * PIECE)
        with stream.capture() as graph:
            with pytest.raises(cuda.errors.CaptureError, match="GrowableArray.resize: releasing memory waits"):
                x.resize(0)
            cuda.memset(x.array, 5, stream=stream)
        assert (len(x), x.committed_bytes, graph.node_count) == (3 * PIECE, 3 * PIECE, 1)
        x.resize(0)
        assert x.committed_bytes == 0


def test_threads_append_in_turn(device):
    """Each thread appends rows that hold its number; the rows of one call stay together."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with growable(dtype=np.int32) as x:

        def append(number):
            with cuda.Device(0):
                for _ in range(20):
                    x.append(np.full(PIECE // 16, number, np.int32))

        threads = [threading.Thread(target=append, args=(number,)) for number in range(3)]
        try:
            for thread in threads:
                thread.start()
        finally:
            for thread in threads:
                thread.join()
            sys.setswitchinterval(interval)
        rows = x.array.to_host().reshape(-1, PIECE // 16)
        assert (rows == rows[:, :1]).all()
        assert sorted(rows[:, 0]) == sorted([*range(3)] * 20)
