"""Contexts: currency, limits, references, stickiness, peers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state.queue import captures
from tests.simulator.kernels import ptx
from tests.simulator.support import SUCCESS, Status, download, ok, upload

Limit = bindings.CUlimit


def test_push_and_pop_restore_the_context_before(two_devices: list[Any]) -> None:
    ok(driver.cuCtxPushCurrent(two_devices[1]))
    assert int(ok(driver.cuCtxGetDevice())) == 1
    assert int(ok(driver.cuCtxPopCurrent())) == int(two_devices[1])
    assert int(ok(driver.cuCtxGetDevice())) == 0


def test_another_thread_has_no_context(context: Any) -> None:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.extend([driver.cuCtxGetCurrent(), driver.cuMemAlloc(4)]))
    thread.start()
    thread.join()
    assert int(ok(results[0])) == 0
    assert results[1] == (Status.CUDA_ERROR_INVALID_CONTEXT, None)


def test_set_current_with_null_takes_the_context_away(context: Any) -> None:
    ok(driver.cuCtxSetCurrent(None))
    assert driver.cuCtxGetDevice() == (Status.CUDA_ERROR_INVALID_CONTEXT, None)
    assert driver.cuCtxPopCurrent() == (Status.CUDA_ERROR_INVALID_CONTEXT, None)


def test_the_last_release_frees_all(context: Any) -> None:
    ok(driver.cuMemAlloc(1000))
    assert ok(driver.cuDevicePrimaryCtxGetState(0)) == (0, 1)
    ok(driver.cuDevicePrimaryCtxRelease(0))
    assert ok(driver.cuDevicePrimaryCtxGetState(0)) == (0, 0)
    assert driver.cuMemAlloc(4) == (Status.CUDA_ERROR_CONTEXT_IS_DESTROYED, None)
    ok(driver.cuDevicePrimaryCtxRetain(0))
    free, total = ok(driver.cuMemGetInfo())
    assert free == total


def test_a_release_too_many_is_an_invalid_context(context: Any) -> None:
    ok(driver.cuDevicePrimaryCtxRelease(0))
    assert driver.cuDevicePrimaryCtxRelease(0) == (Status.CUDA_ERROR_INVALID_CONTEXT,)


@pytest.mark.parametrize(
    ("limit", "value", "kept"),
    [
        (Limit.CU_LIMIT_STACK_SIZE, 2000, 2000),
        (Limit.CU_LIMIT_STACK_SIZE, 2001, 2016),
        (Limit.CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20, 1 << 20),
        (Limit.CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20, 64 << 20),
        (Limit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 100, 128),
    ],
)
def test_limits_are_kept_as_the_driver_rounds_them(context: Any, limit: Any, value: int, kept: int) -> None:
    ok(driver.cuCtxSetLimit(limit, value))
    assert ok(driver.cuCtxGetLimit(limit)) == kept


def test_unknown_limits_are_told_from_unsupported_ones(context: Any) -> None:
    assert driver.cuCtxGetLimit(99)[0] == Status.CUDA_ERROR_INVALID_VALUE
    assert driver.cuCtxGetLimit(Limit.CU_LIMIT_CIG_ENABLED)[0] == Status.CUDA_ERROR_UNSUPPORTED_LIMIT


def _break(stream: Any) -> None:
    # A copy from memory that was given back in another stream meanwhile.
    other = ok(driver.cuStreamCreate(1))
    source = ok(driver.cuMemAllocAsync(64, stream))
    destination = ok(driver.cuMemAlloc(64))
    ok(driver.cuMemcpyDtoDAsync(destination, source, 64, stream))
    ok(driver.cuMemFreeAsync(source, other))
    ok(driver.cuStreamSynchronize(other))


def test_a_fault_is_sticky_until_the_reset(context: Any) -> None:
    stream = ok(driver.cuStreamCreate(1))
    event = ok(driver.cuEventCreate(0))
    kept = ok(driver.cuMemAlloc(64))
    _break(stream)
    fault = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert driver.cuStreamSynchronize(stream) == (fault,)
    assert "which was freed" in (driver.take_report() or "")
    assert driver.take_report() is None
    assert driver.cuMemAlloc(4) == (fault, None)
    assert driver.cuMemFree(kept) == (fault,)
    assert driver.cuEventRecord(event, stream) == (fault,)
    assert driver.cuStreamDestroy(stream) == (fault,)
    assert driver.cuCtxSynchronize() == (fault,)
    assert driver.cuCtxGetCurrent()[0] == SUCCESS
    ok(driver.cuDevicePrimaryCtxReset(0))
    ok(driver.cuDevicePrimaryCtxRetain(0))
    free, total = ok(driver.cuMemGetInfo())
    assert free == total


def test_a_fault_ends_only_its_own_context(two_devices: list[Any]) -> None:
    _break(ok(driver.cuStreamCreate(1)))
    assert driver.cuCtxSynchronize()[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    ok(driver.cuMemAlloc(64))
    ok(driver.cuCtxSynchronize())


def test_handles_of_an_ended_context_are_invalid(context: Any) -> None:
    stream = ok(driver.cuStreamCreate(0))
    event = ok(driver.cuEventCreate(0))
    module = ok(driver.cuModuleLoadData(ptx()))
    kernel = ok(driver.cuModuleEnumerateFunctions(1, module))[0]
    pool = ok(driver.cuDeviceGetDefaultMemPool(0))
    ok(driver.cuDevicePrimaryCtxReset(0))
    ok(driver.cuDevicePrimaryCtxRetain(0))
    assert driver.cuStreamSynchronize(stream) == (Status.CUDA_ERROR_INVALID_HANDLE,)
    assert driver.cuEventSynchronize(event) == (Status.CUDA_ERROR_INVALID_HANDLE,)
    assert driver.cuModuleGetFunctionCount(module)[0] == Status.CUDA_ERROR_INVALID_HANDLE
    assert driver.cuFuncGetName(kernel)[0] == Status.CUDA_ERROR_INVALID_HANDLE
    assert driver.cuMemPoolTrimTo(pool, 0) == (Status.CUDA_ERROR_INVALID_VALUE,)


def test_a_pool_has_no_memory_after_the_end_of_its_context(context: Any) -> None:
    free, _ = ok(driver.cuMemGetInfo())
    ok(driver.cuMemAllocAsync(4096, 0))
    ok(driver.cuDevicePrimaryCtxReset(0))
    ok(driver.cuDevicePrimaryCtxRetain(0))
    assert ok(driver.cuMemGetInfo())[0] == free


def test_the_end_of_a_context_ends_its_own_captures_alone(two_devices: list[Any]) -> None:
    mode = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    streams = []
    for context in (two_devices[0], two_devices[0], two_devices[1]):
        ok(driver.cuCtxSetCurrent(context))
        streams.append(ok(driver.cuStreamCreate(1)))
        ok(driver.cuStreamBeginCapture(streams[-1], mode))
    ok(driver.cuDevicePrimaryCtxReset(0))
    assert [capture.origin.handle for capture in captures.active] == [int(streams[2])]
    ok(driver.cuGraphDestroy(ok(driver.cuStreamEndCapture(streams[2]))))


def test_peer_access_is_enabled_once_and_disabled_once(two_devices: list[Any]) -> None:
    peer = two_devices[1]
    assert ok(driver.cuDeviceCanAccessPeer(0, 1)) == 1
    assert ok(driver.cuDeviceCanAccessPeer(0, 0)) == 0
    assert driver.cuCtxDisablePeerAccess(peer) == (Status.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,)
    ok(driver.cuCtxEnablePeerAccess(peer, 0))
    assert driver.cuCtxEnablePeerAccess(peer, 0) == (Status.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,)
    ok(driver.cuCtxDisablePeerAccess(peer))


def test_peer_access_to_oneself_is_an_invalid_context(context: Any) -> None:
    assert driver.cuCtxEnablePeerAccess(context, 0) == (Status.CUDA_ERROR_INVALID_CONTEXT,)


def test_copies_between_devices_need_no_peer_access(two_devices: list[Any]) -> None:
    data = np.arange(100, dtype=np.uint8)
    source = upload(data)
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    destination = ok(driver.cuMemAlloc(100))
    ok(driver.cuMemcpyPeer(destination, two_devices[1], source, two_devices[0], 100))
    assert (download(destination, 100) == data).all()


def test_a_peer_copy_checks_whose_memory_it_is(two_devices: list[Any]) -> None:
    source, destination = ok(driver.cuMemAlloc(100)), ok(driver.cuMemAlloc(100))
    result = driver.cuMemcpyPeer(destination, two_devices[1], source, two_devices[0], 100)
    assert result == (Status.CUDA_ERROR_INVALID_VALUE,)


def test_a_peer_copy_comes_between_all_work_of_both_devices(two_devices: list[Any]) -> None:
    source = upload(np.zeros(4, np.uint8))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    destination, copy = int(ok(driver.cuMemAlloc(4))), int(ok(driver.cuMemAlloc(4)))
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    ok(driver.cuMemsetD8Async(source, 7, 4, ok(driver.cuStreamCreate(1))))
    ok(driver.cuMemcpyPeer(destination, two_devices[1], source, two_devices[0], 4))
    ok(driver.cuMemsetD8(source, 8, 4))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    ok(driver.cuMemcpyDtoD(copy, destination, 4))
    assert download(copy, 4).tolist() == [7, 7, 7, 7]
