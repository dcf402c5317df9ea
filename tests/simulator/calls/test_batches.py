"""Batches of copies, prefetches and discards run in stream order, and are checked as a whole before they begin."""

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import HostCalls, Status, create_array, download, ok, struct, upload

INVALID, CAPTURED = Status.CUDA_ERROR_INVALID_VALUE, Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
Order = bindings.CUmemcpySrcAccessOrder
STREAM, DURING = Order.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, Order.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
Place = bindings.CUmemLocationType
POINTER, ARRAY = (
    getattr(bindings.CUmemcpy3DOperandType, f"CU_MEMCPY_OPERAND_TYPE_{name}") for name in ("POINTER", "ARRAY")
)
BATCHES = ["cuMemPrefetchBatchAsync", "cuMemDiscardBatchAsync", "cuMemDiscardAndPrefetchBatchAsync"]


def attributes(order: Any = STREAM, flags: int = 0) -> Any:
    return struct("CUmemcpyAttributes", srcAccessOrder=order, flags=flags)


def batch(pairs: list[tuple[int, int, int]], stream: Any, attrs: Any = None, starts: Any = (0,)) -> Any:
    """Copy several times; a pair is the destination, the source and the size in bytes."""
    attrs = [attributes()] if attrs is None else attrs
    destinations = [bindings.CUdeviceptr(pair[0]) for pair in pairs]
    sources = [bindings.CUdeviceptr(pair[1]) for pair in pairs]
    sizes = [pair[2] for pair in pairs]
    return driver.cuMemcpyBatchAsync(destinations, sources, sizes, len(pairs), attrs, list(starts), len(attrs), stream)


def location(device: int | None = 0) -> Any:
    if device is None:
        return struct("CUmemLocation", type=Place.CU_MEM_LOCATION_TYPE_HOST)
    return struct("CUmemLocation", type=Place.CU_MEM_LOCATION_TYPE_DEVICE, id=device)


def ranges(name: str, addresses: list[int], sizes: list[int], stream: Any, flags: int = 0, places: Any = None) -> Any:
    """Call one of the batches of ranges of managed memory."""
    places = [location()] if places is None else places
    where = () if name == "cuMemDiscardBatchAsync" else (places, list(range(len(places))), len(places))
    pointers = [bindings.CUdeviceptr(address) for address in addresses]
    return getattr(driver, name)(pointers, sizes, len(pointers), *where, flags, stream)


def managed(size: int) -> int:
    return int(ok(driver.cuMemAllocManaged(size, 1)))


def test_a_copy_to_pageable_memory_is_done_when_the_call_returns(stream: Any) -> None:
    out, source = np.zeros(4, np.uint8), upload(np.ones(4, np.uint8))
    ok(driver.cuMemsetD8Async(source, 7, 4, stream))
    ok(batch([(out.ctypes.data, source, 4)], stream))
    assert out.tolist() == [7] * 4


def test_a_pinned_source_is_read_when_its_access_order_says(context: Any, stream: Any) -> None:
    host = int(ok(driver.cuMemAllocHost(8)))
    pinned = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * 8).from_address(host))
    pinned[:] = 1
    early, late = upload(np.zeros(8, np.uint8)), upload(np.zeros(8, np.uint8))
    ok(batch([(early, host, 8), (late, host, 8)], stream, [attributes(DURING), attributes()], (0, 1)))
    pinned[:] = 2
    assert (download(early, 8).tolist(), download(late, 8).tolist()) == ([1] * 8, [2] * 8)


def test_a_copy_does_not_see_another_one_of_its_batch(context: Any, stream: Any) -> None:
    first, second, third = (upload(np.full(4, value, np.uint8)) for value in (1, 2, 3))
    ok(batch([(second, first, 4), (third, second, 4)], stream))
    assert download(third, 4).tolist() == [2] * 4


@pytest.mark.parametrize("attrs", [[], [attributes(Order.CU_MEMCPY_SRC_ACCESS_ORDER_INVALID)], [attributes(flags=2)]])
def test_invalid_attributes_are_refused(context: Any, stream: Any, attrs: Any) -> None:
    assert batch([(upload(np.zeros(4)), upload(np.zeros(4)), 4)], stream, attrs) == (INVALID,)


@pytest.mark.parametrize("starts", [(1, 2), (0, 0), (0, 3), (0,)])
def test_attributes_begin_at_ascending_copies(context: Any, stream: Any, starts: Any) -> None:
    pair = upload(np.zeros(4)), upload(np.zeros(4)), 4
    assert batch([pair] * 3, stream, [attributes()] * 2, starts) == (INVALID,)


def test_an_invalid_copy_keeps_the_whole_batch_from_running(context: Any, stream: Any) -> None:
    first, second = upload(np.zeros(32, np.uint8)), upload(np.ones(32, np.uint8))
    for size in (0, 33):
        assert batch([(first, second, 4), (first, second, size)], stream) == (INVALID,)
    assert batch([], stream) == (INVALID,)
    assert download(first, 4).tolist() == [0] * 4


def test_the_legacy_stream_takes_no_batches(context: Any) -> None:
    address, shared = upload(np.zeros(8, np.uint8)), managed(64)
    for stream in (0, bindings.CU_STREAM_LEGACY):
        assert batch([(address, address + 4, 4)], stream) == (INVALID,)
        assert [ranges(name, [shared], [64], stream) for name in BATCHES] == [(INVALID,)] * 3
    ok(batch([(address, address + 4, 4)], bindings.CU_STREAM_PER_THREAD))


def begin(stream: Any) -> None:
    ok(driver.cuStreamBeginCapture(stream, bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))


def test_a_capture_takes_no_batches(context: Any, stream: Any) -> None:
    address, shared = upload(np.zeros(8, np.uint8)), managed(64)
    begin(stream)
    assert batch([(address, address + 4, 4)], stream) == (CAPTURED,)
    ok(driver.cuGraphDestroy(ok(driver.cuStreamEndCapture(stream))))
    for name in BATCHES:
        begin(stream)
        assert ranges(name, [shared], [64], stream) == (CAPTURED,)
        assert driver.cuStreamEndCapture(stream)[0] == Status.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED


def operand(address: int, row: int = 0, rows: int = 0) -> Any:
    return struct(
        "CUmemcpy3DOperand", type=POINTER, op__ptr__ptr=address, op__ptr__rowLength=row, op__ptr__layerHeight=rows
    )


def in_array(array: Any, x: int, y: int, z: int = 0) -> Any:
    where = {"op__array__array": array, "op__array__offset__x": x, "op__array__offset__y": y, "op__array__offset__z": z}
    return struct("CUmemcpy3DOperand", type=ARRAY, **where)


def box(destination: Any, source: Any, *extent: int) -> Any:
    sizes = {f"extent__{name}": size for name, size in zip(("width", "height", "depth"), extent, strict=True)}
    return struct("CUDA_MEMCPY3D_BATCH_OP", src=source, dst=destination, srcAccessOrder=STREAM, **sizes)


def test_boxes_are_copied_between_pitched_memory_and_arrays(
    context: Any, stream: Any, rng: np.random.Generator
) -> None:
    values = rng.random((3, 5, 7)).astype(np.float32)
    source, out = upload(values), upload(np.zeros((2, 3, 4), np.float32))
    array = ok(create_array(7, 5, 3))
    whole = box(in_array(array, 0, 0), operand(source, 7, 5), 7, 5, 3)
    ok(driver.cuMemcpy3DBatchAsync(1, [whole], 0, stream))
    part = box(operand(out), in_array(array, 2, 1, 1), 4, 3, 2)
    ok(driver.cuMemcpy3DBatchAsync(1, [part], 0, stream))
    assert np.array_equal(download(out, 24, np.float32).reshape(2, 3, 4), values[1:, 1:4, 2:6])


def test_boxes_that_do_not_fit_are_refused(context: Any, stream: Any) -> None:
    array, memory = ok(create_array(7, 5)), upload(np.zeros(35, np.float32))
    for refused in (
        box(operand(memory), in_array(array, 4, 0), 4, 1, 1),
        box(operand(memory), in_array(array, 0, 5), 1, 1, 1),
        box(operand(memory, 3), in_array(array, 0, 0), 4, 2, 1),
        box(operand(memory), in_array(array, 0, 0), 4, 0, 1),
        box(operand(memory + 100), in_array(array, 0, 0), 7, 5, 1),
    ):
        assert driver.cuMemcpy3DBatchAsync(1, [refused], 0, stream) == (INVALID,)


def test_prefetches_are_recorded_in_stream_order(context: Any, stream: Any, calls: HostCalls) -> None:
    first, second = managed(4096), managed(4096)
    calls.launch(stream, "before")
    ok(ranges(BATCHES[0], [first, second], [4096, 5], stream, places=[location(), location(None)]))
    last = bindings.CUmem_range_attribute.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
    assert ok(driver.cuMemRangeGetAttribute(4, last, first, 4096)) == -2
    ok(driver.cuCtxSynchronize())
    assert [ok(driver.cuMemRangeGetAttributes([4], [last], 1, one, 4096)) for one in (first, second)] == [[0], [-1]]


@pytest.mark.parametrize("name", BATCHES[1:])
def test_discarded_values_are_gone_in_stream_order(context: Any, stream: Any, name: str) -> None:
    address = managed(64)
    ok(driver.cuMemsetD8Async(address, 7, 64, stream))
    ok(ranges(name, [address], [32], stream))
    values = download(address, 64)
    assert 7 not in values[:32]
    assert values[32:].tolist() == [7] * 32
    ok(driver.cuMemsetD8(address, 1, 32))
    assert download(address, 32).tolist() == [1] * 32


@pytest.mark.parametrize("name", BATCHES)
def test_ranges_are_managed_memory(context: Any, stream: Any, name: str) -> None:
    shared, device = managed(64), int(ok(driver.cuMemAlloc(64)))
    for refused in (
        ranges(name, [shared, device], [64, 64], stream),
        ranges(name, [shared], [0], stream),
        ranges(name, [shared], [65], stream),
        ranges(name, [], [], stream),
        ranges(name, [shared], [64], stream, flags=1),
    ):
        assert refused == (INVALID,)
    if "Prefetch" in name:
        assert ranges(name, [shared], [64], stream, places=[location(9)]) == (INVALID,)
        assert ranges(name, [shared], [64], stream, places=[]) == (INVALID,)


def test_one_dimensional_arrays_are_copied_from_and_to_all_memory(context: Any, rng: np.random.Generator) -> None:
    values, out = rng.random(9).astype(np.float32), np.zeros(9, np.float32)
    first, second = ok(create_array(9)), ok(create_array(9))
    device = upload(values)
    ok(driver.cuMemcpyDtoA(first, 0, device, 36))
    ok(driver.cuMemcpyAtoA(second, 4, first, 0, 32))
    ok(driver.cuMemcpyHtoA(second, 0, values, 4))
    ok(driver.cuMemcpyAtoD(device, second, 0, 36))
    ok(driver.cuMemcpyAtoH(out, second, 0, 36))
    expected = [values[0], *values[:8]]
    assert out.tolist() == download(device, 9, np.float32).tolist() == expected


def test_offsets_in_one_dimensional_arrays_are_checked(context: Any) -> None:
    line, plane, out = ok(create_array(9)), ok(create_array(9, 2)), np.zeros(9, np.float32)
    # The offset may be inside an element, and an array of two dimensions has its first row copied.
    for array, offset, size in ((line, 2, 4), (line, 0, 6), (plane, 0, 36)):
        ok(driver.cuMemcpyAtoH(out, array, offset, size))
    for array, offset, size in ((line, 4, 36), (plane, 0, 40), (line, 0, -4)):
        assert driver.cuMemcpyAtoH(out, array, offset, size) == (INVALID,)


def test_pinned_memory_of_the_plain_call_has_a_device_address(context: Any) -> None:
    host = int(ok(driver.cuMemAllocHost(64)))
    assert int(ok(driver.cuMemHostGetDevicePointer(host, 0))) == host
    portable = int(ok(driver.cuMemHostAlloc(64, bindings.CU_MEMHOSTALLOC_PORTABLE)))
    for address in (host, portable):
        assert ok(driver.cuMemHostGetFlags(address)) == bindings.CU_MEMHOSTALLOC_DEVICEMAP
        ok(driver.cuMemFreeHost(address))


def test_a_box_is_copied_to_another_device(two_devices: list[Any], rng: np.random.Generator) -> None:
    values = rng.integers(0, 256, (2, 3, 4), np.uint8)
    source = upload(values)
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    destination = upload(np.zeros(24, np.uint8))
    kind = bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
    ends: dict[str, Any] = {}
    for end, address, context in (("src", source, two_devices[0]), ("dst", destination, two_devices[1])):
        ends |= {f"{end}MemoryType": kind, f"{end}Device": address, f"{end}Context": context}
        ends |= {f"{end}Pitch": 4, f"{end}Height": 3}
    ok(driver.cuMemcpy3DPeer(struct("CUDA_MEMCPY3D_PEER", **ends, WidthInBytes=4, Height=3, Depth=2)))
    assert np.array_equal(download(destination, 24).reshape(2, 3, 4), values)
