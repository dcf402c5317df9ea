"""Batches: many copies, prefetches and discards in one call."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import batches


def test_copies_in_all_directions_run_in_stream_order(stream, rng):
    values = rng.random((3, 101)).astype(np.float32)
    x, y = cuda.zeros(101, np.float32, stream=stream), cuda.zeros((1, 101), np.float32, stream=stream)
    out, pinned = cuda.pinned_empty(101, np.float32), cuda.pinned_empty(101, np.float32)
    pinned[:], out[:] = values[1], -1
    batches.memcpy([(x, values[0]), (y, pinned)], stream=stream)
    z = cuda.empty(101, np.float32, stream=stream)
    batches.memcpy([(out, x), (z, y)], stream=stream)
    assert np.array_equal(z.to_host(stream=stream), values[1])
    assert np.array_equal(out, values[0])


def test_a_pageable_source_may_be_reused_at_once(stream):
    x = cuda.zeros((4, 1000), np.int32, stream=stream)
    source = np.empty(1000, np.int32)
    for row in range(4):
        source[:] = row
        batches.memcpy([(x[row, :500], source[:500]), (x[row, 500:], source[500:])], stream=stream)
    assert np.array_equal(x.to_host(), np.repeat(np.arange(4), 1000).reshape(4, 1000))


def test_pairs_of_nothing_are_left_out(stream):
    x = cuda.zeros(3, np.int32, stream=stream)
    batches.memcpy([], stream=stream)
    batches.memcpy([(x[:0], np.empty(0, np.int32))], stream=stream)
    batches.memcpy([(x[:0], np.empty(0, np.int32)), (x[1:], np.full(2, 7, np.int32))], stream=stream)
    assert x.to_host().tolist() == [0, 7, 7]


def test_the_per_thread_default_stream_takes_batches(device):
    x = cuda.zeros(3, np.int32)
    device.synchronize()
    batches.memcpy(((x, np.arange(3, dtype=np.int32)) for _ in range(1)), stream=cuda.per_thread_default)
    assert x.to_host(stream=cuda.per_thread_default).tolist() == [0, 1, 2]


def test_managed_arrays_are_prefetched_to_a_place_of_each(stream, device):
    x, y = (cuda.managed_empty(1 << 20, np.uint8) for _ in range(2))
    x[:], y[:] = 3, 4
    batches.prefetch([x, y], [device, "host"], stream=stream)
    stream.synchronize()
    assert [cuda.managed_attributes(one).last_prefetch_location for one in (x, y)] == [device, "host"]
    batches.prefetch([x, y], "host", stream=stream)
    batches.prefetch([], stream=stream)
    stream.synchronize()
    assert (int(x.min()), int(y.min())) == (3, 4)


@pytest.mark.parametrize("place", [None, "host", "device"])
def test_discarded_arrays_are_written_anew(stream, device, place):
    arrays = [cuda.managed_empty(1 << 20, np.uint8) for _ in range(2)]
    for array in arrays:
        array[:] = 5
    batches.discard(arrays, prefetch_to=device if place == "device" else place, stream=stream)
    for array in arrays:
        cuda.DeviceArray.borrow(array.ctypes.data, array.shape, np.uint8, owner=array).fill(6, stream=stream)
    stream.synchronize()
    assert {int(value) for array in arrays for value in (array.min(), array.max())} == {6}


def test_the_legacy_stream_and_captures_are_refused(device, stream):
    x, shared = cuda.zeros(3), cuda.managed_empty(3)
    calls = [
        lambda queue: batches.memcpy([(x, np.zeros(3))], stream=queue),
        lambda queue: batches.prefetch([shared], stream=queue),
        lambda queue: batches.discard([shared], stream=queue),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="'stream' must not be the legacy default stream; use a Stream"):
            call(cuda.legacy_default)
        with pytest.raises(cuda.errors.CaptureError, match="a batch cannot be captured"), stream.capture():
            call(stream)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda x: x, TypeError, "argument 'pairs' must be a list of pairs"),
        (lambda x: [x], TypeError, "argument 'pairs' must be a list of pairs"),
        (lambda x: 5, TypeError, "argument 'pairs' must be a list of pairs"),
        (lambda x: [(x, 5)], TypeError, "argument 'src' must be a DeviceArray or a NumPy array"),
        (
            lambda x: [(x, np.zeros(6, np.float32))],
            TypeError,
            "argument 'src' must have dtype float64, like 'dst', not float32",
        ),
        (lambda x: [(x, np.zeros(5))], ValueError, r"argument 'dst' must have shape \(5,\)"),
        (lambda x: [(x[::2], np.zeros(3))], ValueError, "argument 'dst' must be contiguous"),
        (lambda x: [(np.zeros(6), x)], ValueError, "argument 'dst' must be pinned, not pageable"),
        (lambda x: [(np.broadcast_to(np.zeros(1), 6), x)], ValueError, "argument 'dst' is read-only"),
    ],
)
def test_what_cannot_be_copied_is_refused_before_anything_is(stream, make, error, text):
    x, y = cuda.zeros(6, stream=stream), cuda.zeros(6, stream=stream)
    pairs = make(x)
    if isinstance(pairs, list):
        pairs = [(y, np.ones(6)), *pairs]
    with pytest.raises(error, match=f"^batches.memcpy: {text}"):
        batches.memcpy(pairs, stream=stream)
    assert not y.to_host(stream=stream).any()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((5,), TypeError, "argument 'arrays' must be a list of NumPy arrays"),
        ((np.zeros(3),), TypeError, "argument 'arrays' must be a list of NumPy arrays"),
        (([np.zeros(3)],), ValueError, "argument 'arrays' must be managed memory"),
        (([], "mars"), TypeError, "argument 'location' must be a Device or 'host'"),
        (([], cuda.Event), TypeError, "argument 'location' must be a Device or 'host'"),
        (([], np.zeros(0)), TypeError, "argument 'location' must be a Device, \"host\" or a list of them"),
        (([], ["host"]), ValueError, "argument 'location' must have 0 locations, one per array, not 1"),
    ],
)
def test_ranges_and_places_are_checked(stream, arguments, error, text):
    with pytest.raises(error, match=f"^batches.prefetch: {text}"):
        batches.prefetch(*arguments, stream=stream)
