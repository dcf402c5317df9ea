"""Copies between devices."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import enums
from cudart_py.driver.calls import api


@pytest.mark.parametrize("with_stream", [False, True])
def test_a_copy_between_devices(rng, with_stream):
    """From the first device to the last, which are the same on a machine with one device."""
    host = rng.random((10, 100))
    with cuda.devices()[0]:
        stream = cuda.Stream() if with_stream else None
        source = cuda.to_device(host, stream=stream)
    with cuda.devices()[-1]:
        target = cuda.zeros((10, 100))
        target.stream.synchronize()
    cuda.memcpy_peer(target, source, stream=stream)
    if stream is not None:
        stream.synchronize()
    with cuda.devices()[-1]:
        np.testing.assert_array_equal(target.to_host(), host)


def test_a_capture_refuses_it_and_records_memcpy(stream):
    source, target = cuda.full(100, 3.0, stream=stream), cuda.zeros(100, stream=stream)
    stream.synchronize()
    with stream.capture() as graph:
        with pytest.raises(cuda.errors.CaptureError, match="memcpy_peer.*use memcpy"):
            cuda.memcpy_peer(target, source, stream=stream)
        cuda.memcpy(target, source, stream=stream)
    graph.instantiate().launch(stream)
    assert (target.to_host(stream=stream) == 3).all()


def test_the_driver_refuses_it_in_a_capture(device, stream):
    x = cuda.zeros(100)
    stream.synchronize()
    place = x.pointer, device.context
    api.cuStreamBeginCapture(stream.native, enums.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    with pytest.raises(cuda.errors.CaptureError):
        api.cuMemcpyPeerAsync(*place, *place, 8, stream.native)
    with pytest.raises(cuda.errors.CaptureError):  # the call has invalidated the capture
        api.cuStreamEndCapture(stream.native)


def test_arrays_that_are_not_alike_not_contiguous_or_closed_are_refused_and_empty_ones_copied_at_once(device):
    cuda.memcpy_peer(cuda.zeros(0), cuda.zeros((3, 0)))
    x, window, closed = cuda.zeros((4, 2)), cuda.zeros((4, 4))[:, :2], cuda.zeros((4, 2))
    closed.close()
    for dst, src, words in (
        (x, cuda.zeros((3, 2)), "shape"),
        (x, cuda.zeros((4, 2), np.float32), "'src' must have dtype float64, like 'dst'"),
        (window, x, "argument 'dst' must be contiguous"),
        (x, window, "argument 'src' must be contiguous"),
        (closed, x, "closed"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            cuda.memcpy_peer(dst, src)


TWO_DEVICES = """
import numpy as np, cudart_py as cuda
first, second = cuda.devices()[:2]
host = np.arange(1000.0)
pool = cuda.MemoryPool(first)

def said(call):
    try: call()
    except ValueError as error: return str(error)
    raise AssertionError

for device in (first, second):
    with device: things = cuda.zeros(3), cuda.empty_pitched((3, 3)), cuda.pinned_empty(3)
    assert all(cuda.pointer_attributes(thing).device is device for thing in things)
with second:
    stream = cuda.Stream()
    expected = "empty: argument 'pool' must be on device 1, like 'stream', not on device 0"
    assert said(lambda: cuda.empty(3, pool=pool)) == expected
    twice = cuda.compile(
        'extern "C" __global__ void twice(const double *x, double *y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }'
    )["twice"]
with first:
    rows, wide = cuda.zeros((8, 8), np.float32), cuda.zeros(8, np.complex128)
    # Nothing is waited for: a copy between devices comes after the work of both.
    source, pooled = cuda.to_device(host), cuda.empty(1000, pool=pool).copy_from(host)
with second:
    target = cuda.zeros(1000)
    target.stream.synchronize()
    cuda.memcpy_peer(target, source)
    assert (target.to_host() == host).all()
    for array in (source, pooled):
        assert "enable_peer" in said(lambda: twice[1, 1000](array, target))
first.synchronize()
for call in (
    lambda: cuda.memset(rows, 1, stream=stream),
    lambda: cuda.memset(rows[:, 1:], 2, stream=stream),
    lambda: rows.fill(1, stream=stream),
    lambda: wide.fill(0, stream=stream),
):
    assert "call Device(1).enable_peer(Device(0)), or use" in said(call)
if second.can_access_peer(first):
    with second:
        second.enable_peer(first)
        late = cuda.MemoryPool(first)
        with first: after = cuda.empty(1000, pool=late).copy_from(host)
        first.synchronize()
        for array in (source, pooled, after):
            twice[1, 1000](array, target)
            assert (target.to_host() == 2 * host).all()
            cuda.memcpy(target, array, stream=target.stream)
            assert (target.to_host() == host).all()
    for current in (first, second):
        with current:
            rows.fill(0, stream=stream)
            cuda.memset(rows[:, 1:], 2, stream=stream)
            wide.fill(3 + 4j, stream=stream)
            stream.synchronize()
        assert (rows.to_host() == [0, *[2] * 7]).all()
        assert (wide.to_host() == 3 + 4j).all()
    second.disable_peer(first)
print("done")
"""


def test_two_devices_with_and_without_peer_access(device, python):
    if len(cuda.devices()) < 2 and "profile" not in cuda.capabilities():
        pytest.skip("this machine has one device")
    assert python(TWO_DEVICES, CUDART_PY_SIMULATOR_DEVICES="2").stdout == "done\n"
