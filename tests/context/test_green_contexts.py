"""Green contexts: parts of a device's multiprocessors, on which alone the kernels in their streams run."""

import gc
import weakref

import numpy as np
import pytest
from cuda.bindings.driver import CUdevResourceType

import cudart_py as cuda
from cudart_py import green_contexts

KERNELS = r"""
extern "C" __global__ void where(unsigned *place)
{
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    if (threadIdx.x == 0)
        place[blockIdx.x] = number;
}
extern "C" __global__ void add(int *value, int by) { *value = *value * 10 + by; }
"""
BLOCKS = 4099


@pytest.fixture
def whole(device):
    return green_contexts.multiprocessors()


def places(kernels, stream):
    place = cuda.full(BLOCKS, 2**32 - 1, np.uint32, stream=stream)
    kernels["where"][BLOCKS, 64, 0, stream](place)
    return set(place.to_host(stream=stream).tolist())


def test_a_device_has_all_its_multiprocessors(device, whole):
    assert (whole.device, whole.count, len(whole)) == (device, device.sm_count, device.sm_count)
    assert 0 < whole.smallest <= whole.count
    assert repr(whole) == f"<Multiprocessors: {device.sm_count} of device {device.ordinal}>"


@pytest.mark.parametrize("counts", [(16, 16), (8,), (16, 40), (3, 20, 9)])
def test_kernels_run_on_the_multiprocessors_of_their_part_alone(kernels, whole, counts):
    groups, _ = whole.split(*counts)
    seen = []
    for group, count in zip(groups, counts, strict=True):
        assert count <= group.count < count + 2 * whole.smallest
        with green_contexts.GreenContext(group) as part:
            assert part.multiprocessors.count == group.count
            seen.append(places(kernels, part.stream()))
            assert len(seen[-1]) == group.count
    for number, here in enumerate(seen):
        assert not here & set().union(*seen[:number])


def test_the_rest_is_a_part_too(kernels, whole):
    groups, rest = whole.split(32)
    assert groups[0].count + rest.count == whole.count
    with green_contexts.GreenContext(groups[0]) as first, green_contexts.GreenContext(rest) as second:
        here, there = places(kernels, first.stream()), places(kernels, second.stream())
        assert not here & there
        assert len(here | there) == whole.count


def test_small_parts_need_no_common_scheduling(kernels, whole):
    groups, _ = whole.split(2, 4, coscheduled=False)
    assert [group.count for group in groups] == [2, 4]
    with green_contexts.GreenContext(groups[1]) as part:
        assert len(places(kernels, part.stream())) == 4


def test_the_multiprocessors_of_a_green_context_can_be_split_again(whole):
    (half,), _ = whole.split(64)
    with green_contexts.GreenContext(half) as part:
        groups, rest = part.multiprocessors.split(16, 16)
        assert [group.count for group in groups] == [16, 16]
        assert rest.count == half.count - 32


def test_bad_sizes_and_sets_are_named(device, whole):
    for counts in ((whole.count,) * 2, (8, whole.count), (8,) * 1000):
        with pytest.raises(ValueError, match=rf"split: argument 'counts' must fit into {whole.count} multiprocessors"):
            whole.split(*counts)
    with pytest.raises(ValueError, match="'counts' must have at least one count"):
        whole.split()
    with pytest.raises(ValueError, match=r"'counts\[1\]' must be an int from 1 to \d+, not the int 0"):
        whole.split(8, 0)
    with pytest.raises(ValueError, match=rf"'counts\[0\]' must be an int from 1 to {whole.count}, not"):
        whole.split(whole.count + 1)
    with pytest.raises(TypeError, match=r"'counts\[0\]' must be an int, not the str"):
        whole.split("8")
    with pytest.raises(TypeError, match="'coscheduled' must be a bool"):
        whole.split(8, coscheduled=1)
    (group,), _ = whole.split(8)
    with pytest.raises(ValueError, match="must not be the result of a split; make a GreenContext of it"):
        group.split(8)
    with pytest.raises(TypeError, match="'multiprocessors' must be a Multiprocessors, not the int 8"):
        green_contexts.GreenContext(8)
    with pytest.raises(ValueError, match="'multiprocessors' must not be empty"):
        green_contexts.GreenContext(green_contexts.Multiprocessors(device, [], whole=False))
    with pytest.raises(TypeError, match="'device' must be a Device or None"):
        green_contexts.multiprocessors(0)


def test_a_stream_of_a_part_is_a_stream_like_any_other(device, kernels, whole):
    (group,), _ = whole.split(8)
    with green_contexts.GreenContext(group) as part, cuda.Stream(non_blocking=True) as other:
        stream = part.stream(priority=-1)
        assert (stream.priority, stream.device) == (-1, device)
        value = cuda.to_device(np.array([0], np.int32), stream=stream)
        with stream.capture() as graph:
            kernels["add"][1, 1, 0, stream](value, 1)
        graph.instantiate().launch(stream)
        other.wait(stream)
        kernels["add"][1, 1, 0, other](value, 2)
        stream.wait(other.record())
        kernels["add"][1, 1, 0, stream](value, 3)
        assert value.to_host(stream=stream).tolist() == [123]
        with pytest.raises(ValueError, match="'priority' must be an int from"):
            part.stream(priority=1)


def test_events_of_a_part_order_all_its_streams(kernels, whole):
    (group,), _ = whole.split(8)
    with green_contexts.GreenContext(group) as part, cuda.Stream(non_blocking=True) as other:
        first, second = part.stream(), part.stream()
        values = [cuda.to_device(np.array([0], np.int32), stream=stream) for stream in (first, second)]
        for stream, value in zip((first, second), values, strict=True):
            kernels["add"][1, 1, 0, stream](value, 1)
        other.wait(part.record())
        for value in values:
            kernels["add"][1, 1, 0, other](value, 2)
        part.wait(other.record())
        for stream, value in zip((second, first), reversed(values), strict=True):
            kernels["add"][1, 1, 0, stream](value, 3)
        third = part.stream()
        for stream in (first, second, third):
            stream.synchronize()
        assert [value.to_host().item() for value in values] == [123, 123]
        with pytest.raises(cuda.errors.EventNotRecordedError, match=r"GreenContext\.wait: argument 'event'"):
            part.wait(cuda.Event())
        for call in (part.record, part.wait):
            with pytest.raises(TypeError, match="'event' must be an Event"):
                call(5)


def test_closing_a_part_closes_its_streams_after_their_work(device, kernels, whole):
    (group,), _ = whole.split(8)
    part = green_contexts.GreenContext(group)
    stream = part.stream()
    value = cuda.to_device(np.array([4], np.int32))
    device.synchronize()
    kernels["add"][1, 1, 0, stream](value, 2)
    part.close()
    part.close()
    assert value.to_host().tolist() == [42]
    assert (part.closed, stream.closed) == (True, True)
    assert repr(part) == "<GreenContext closed>"
    for use in (part.stream, part.record, part.__enter__, lambda: part.multiprocessors):
        with pytest.raises(ValueError, match="this GreenContext is closed"):
            use()


@pytest.mark.unsanitized("under memcheck of CUDA 13.0, what a launch has used outlives its last reference")
def test_a_stream_keeps_its_part_alive(kernels, whole):
    (group,), _ = whole.split(8)
    part = green_contexts.GreenContext(group)
    stream, seen = part.stream(), weakref.ref(part)
    del part
    gc.collect()
    assert len(places(kernels, stream)) == group.count
    del stream
    gc.collect()
    assert seen() is None


def test_a_cooperative_launch_must_fit_on_the_part(device, kernels, whole):
    kernel = kernels["where"]
    (group,), _ = whole.split(8)
    most = kernel.occupancy(1024).blocks * group.count
    with green_contexts.GreenContext(group) as part:
        stream = part.stream()
        place = cuda.empty(most + 1, np.uint32)
        device.synchronize()
        kernel.launch(most, 1024, place, stream=stream, cooperative=True)
        stream.synchronize()
        with pytest.raises(cuda.CudaError, match="COOPERATIVE_LAUNCH_TOO_LARGE"):
            kernel.launch(most + 1, 1024, place, stream=stream, cooperative=True)


SM = CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM


@pytest.mark.parametrize(
    ("groups", "flags", "least", "sizes", "remainder"),
    [
        (1, 0, 8, [8], 124),
        (2, 0, 16, [16, 16], 100),
        (100, 0, 8, [8] * 15, 12),
        (100, 0, 10, [16] * 8, 4),
        (100, 0, 24, [24] * 5, 12),
        (4, 1, 2, [2] * 4, 124),
        (70, 1, 1, [2] * 66, 0),
        (1, 0, 0, [8], 124),
        (3, 0, 132, [132], 0),
        (1, 4, 8, [8], 124),
        (1, 1, 3, [4], 128),
    ],
)
def test_the_driver_splits_like_that_of_an_h200(device, whole, groups, flags, least, sizes, remainder):
    if whole.count != 132:
        pytest.skip("the device has another number of multiprocessors")
    resource = cuda.check(cuda.raw.cuDeviceGetDevResource(device.handle, SM))
    parts, count, rest = cuda.check(cuda.raw.cuDevSmResourceSplitByCount(groups, resource, flags, least))
    assert [part.sm.smCount for part in parts] == sizes + [0] * (groups - len(sizes))
    assert (count, rest.sm.smCount) == (len(sizes), remainder)


def test_the_statuses_of_bad_arguments_are_the_drivers(device):
    raw = cuda.raw
    resource = cuda.check(raw.cuDeviceGetDevResource(device.handle, SM))
    (part, other), _, rest = cuda.check(raw.cuDevSmResourceSplitByCount(2, resource, 0, 8))
    description = cuda.check(raw.cuDevResourceGenerateDesc([part, rest, part], 3))
    green = cuda.check(raw.cuGreenCtxCreate(description, device.handle, 1))
    stream = cuda.check(raw.cuGreenCtxStreamCreate(green, 1, -99))
    calls = {
        "INVALID_RESOURCE_TYPE": [lambda: raw.cuDeviceGetDevResource(device.handle, SM.CU_DEV_RESOURCE_TYPE_INVALID)],
        "INVALID_RESOURCE_CONFIGURATION": [
            lambda: raw.cuDevSmResourceSplitByCount(1, resource, 0, 200),
            lambda: raw.cuDevSmResourceSplitByCount(1, part, 0, 8),
            lambda: raw.cuDevSmResourceSplitByCount(1, rest, 0, 8),
        ],
        "INVALID_VALUE": [
            lambda: raw.cuDevSmResourceSplitByCount(1, resource, 3, 8),
            lambda: raw.cuDevResourceGenerateDesc([], 0),
            lambda: raw.cuGreenCtxCreate(description, device.handle, 0),
            lambda: raw.cuGreenCtxStreamCreate(green, 0, 0),
        ],
        "SUCCESS": [lambda: raw.cuGreenCtxDestroy(green)],
        "CONTEXT_IS_DESTROYED": [lambda: raw.cuStreamSynchronize(stream), lambda: raw.cuStreamDestroy(stream)],
    }
    for name, each in calls.items():
        assert [call()[0].name.removeprefix("CUDA_").removeprefix("ERROR_") for call in each] == [name] * len(each)
    assert other.sm.smCount == 8
