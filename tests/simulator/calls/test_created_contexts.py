"""Contexts that programs create own what is made in them, and take it along when they are destroyed."""

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import function, launch, loaded
from tests.simulator.support import HostCalls, Status, download, ok, struct, upload

DESTROYED, NO_CONTEXT = Status.CUDA_ERROR_CONTEXT_IS_DESTROYED, Status.CUDA_ERROR_INVALID_CONTEXT
INVALID_VALUE, INVALID_HANDLE = Status.CUDA_ERROR_INVALID_VALUE, Status.CUDA_ERROR_INVALID_HANDLE


@pytest.fixture
def created(context: Any) -> Iterator[Callable[[], Any]]:
    """Return a function that creates a context of device 0, which becomes the current one."""
    made: list[Any] = []

    def create() -> Any:
        made.append(ok(driver.cuCtxCreate(None, 0, 0)))
        return made[-1]

    yield create
    for one in made:
        driver.cuCtxDestroy(one)


def free_bytes() -> int:
    return int(ok(driver.cuMemGetInfo())[0])


def test_a_created_context_is_current_above_the_previous_one(context: Any, created: Callable[[], Any]) -> None:
    own = created()
    assert int(ok(driver.cuCtxGetCurrent())) == int(own)
    assert int(ok(driver.cuCtxPopCurrent())) == int(own)
    assert int(ok(driver.cuCtxGetCurrent())) == int(context)


def test_its_end_takes_its_memory_streams_events_and_modules_along(context: Any, created: Callable[[], Any]) -> None:
    before, own = free_bytes(), created()
    address, stream, event = ok(driver.cuMemAlloc(1 << 20)), ok(driver.cuStreamCreate(0)), ok(driver.cuEventCreate(0))
    module, host = loaded(), int(ok(driver.cuMemHostAlloc(64, 0)))
    ok(driver.cuCtxDestroy(own))
    assert int(ok(driver.cuCtxGetCurrent())) == int(context)
    assert free_bytes() == before
    assert driver.cuMemsetD8(address, 0, 1) == (INVALID_VALUE,)
    assert driver.cuMemFreeHost(host) == (INVALID_VALUE,)
    assert driver.cuStreamSynchronize(stream) == (INVALID_HANDLE,)
    assert driver.cuEventSynchronize(event) == (INVALID_HANDLE,)
    assert driver.cuModuleGetFunctionCount(module)[0] == INVALID_HANDLE


def test_the_memory_of_pools_outlives_it(context: Any, created: Callable[[], Any], rng: np.random.Generator) -> None:
    own, values = created(), rng.integers(0, 256, 99, np.uint8)
    address = int(ok(driver.cuMemAllocAsync(99, 0)))
    ok(driver.cuMemcpyHtoD(address, values, 99))
    freed = ok(driver.cuMemAllocAsync(1000, 0))
    ok(driver.cuMemFreeAsync(freed, 0))
    ok(driver.cuCtxDestroy(own))
    assert np.array_equal(download(address, 99), values)
    ok(driver.cuMemFree(address))
    ok(driver.cuMemPoolTrimTo(ok(driver.cuDeviceGetDefaultMemPool(0)), 0))
    assert driver.cuMemGetAddressRange(freed)[0] == Status.CUDA_ERROR_NOT_FOUND


def test_where_it_stays_current_its_calls_say_that_it_is_destroyed(context: Any, created: Callable[[], Any]) -> None:
    below, above = created(), created()
    results: list[Any] = []

    def use() -> None:
        ok(driver.cuCtxSetCurrent(below))
        started.set()
        destroyed.wait(60)
        results.append(driver.cuMemAlloc(4))

    started, destroyed = threading.Event(), threading.Event()
    thread = threading.Thread(target=use)
    thread.start()
    started.wait(60)
    ok(driver.cuCtxDestroy(below))
    destroyed.set()
    thread.join()
    assert int(ok(driver.cuCtxPopCurrent())) == int(above)
    assert results == [driver.cuMemAlloc(4)] == [(DESTROYED, None)]
    assert driver.cuCtxGetId(below) == (DESTROYED, None)
    assert driver.cuCtxPushCurrent(below) == (DESTROYED,)


def test_only_created_contexts_are_destroyed_and_only_once(context: Any, created: Callable[[], Any]) -> None:
    own = created()
    ok(driver.cuCtxDestroy(own))
    assert driver.cuCtxDestroy(own) == (DESTROYED,)
    assert driver.cuCtxDestroy(context) == driver.cuCtxDestroy(1) == (NO_CONTEXT,)
    assert driver.cuCtxDestroy(None) == (Status.CUDA_ERROR_INVALID_VALUE,)


def test_a_kernel_reaches_the_memory_of_another_context_of_its_device(context: Any, created: Callable[[], Any]) -> None:
    address = upload(np.zeros(1, np.int32))
    created()
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(address))
    assert download(address, 1, np.int32) == [1]


def test_a_fault_leaves_the_primary_context_usable(context: Any, created: Callable[[], Any]) -> None:
    address, own = upload(np.zeros(64, np.uint8)), created()
    assert not launch(function(loaded(), "bounded"), ctypes.c_void_p(8))
    assert driver.cuCtxSynchronize() == driver.cuCtxSetFlags(0) == (Status.CUDA_ERROR_ILLEGAL_ADDRESS,)
    ok(driver.cuCtxDestroy(own))
    assert download(address, 64).tolist() == [0] * 64


def test_references_are_counted(context: Any, created: Callable[[], Any]) -> None:
    own = created()
    assert int(ok(driver.cuCtxAttach(0))) == int(own)
    ok(driver.cuCtxDetach(own))
    assert driver.cuCtxDetach(context) == (NO_CONTEXT,)
    assert driver.cuCtxAttach(1) == (INVALID_VALUE, None)
    ok(driver.cuCtxDetach(own))
    assert driver.cuCtxGetId(own) == (DESTROYED, None)
    assert int(ok(driver.cuCtxGetCurrent())) == int(context)


def test_each_context_has_its_own_number_and_settings(context: Any, created: Callable[[], Any]) -> None:
    own = created()
    assert len({ok(driver.cuCtxGetId(one)) for one in (None, own, context)}) == 2
    assert ok(driver.cuCtxGetApiVersion(context)) == ok(driver.cuCtxGetApiVersion(None)) == 3020
    preferences = bindings.CUfunc_cache
    ok(driver.cuCtxSetCacheConfig(preferences.CU_FUNC_CACHE_PREFER_L1))
    ok(driver.cuCtxSetFlags(bindings.CUctx_flags.CU_CTX_SCHED_BLOCKING_SYNC))
    assert ok(driver.cuCtxGetCacheConfig()) is preferences.CU_FUNC_CACHE_PREFER_L1
    host = bindings.CUctx_flags.CU_CTX_MAP_HOST.value
    assert ok(driver.cuCtxGetFlags()) == 4 | host
    ok(driver.cuCtxSetCurrent(context))
    assert ok(driver.cuCtxGetCacheConfig()) is preferences.CU_FUNC_CACHE_PREFER_NONE
    assert ok(driver.cuCtxGetFlags()) == host


def test_banks_of_shared_memory_stay_four_bytes_wide(context: Any) -> None:
    widths = bindings.CUsharedconfig
    ok(driver.cuCtxSetSharedMemConfig(widths.CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE))
    assert ok(driver.cuCtxGetSharedMemConfig()) is widths.CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE


def test_settings_that_do_not_exist_are_refused(context: Any) -> None:
    affinity = {"execAffinityParams": [bindings.CUexecAffinityParam()], "numExecAffinityParams": 1}
    shared = struct("CUctxCreateParams", **affinity)
    assert driver.cuCtxCreate(shared, 0, 0) == (Status.CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, None)
    assert driver.cuCtxCreate(None, 3, 0) == driver.cuCtxCreate(None, 256, 0) == (INVALID_VALUE, None)
    assert driver.cuCtxCreate(None, 0, 9) == (Status.CUDA_ERROR_INVALID_DEVICE, None)
    for refused in (driver.cuCtxSetFlags(3), driver.cuCtxSetCacheConfig(4), driver.cuCtxSetSharedMemConfig(3)):
        assert refused == (INVALID_VALUE,)


def test_an_event_of_a_context_is_behind_all_of_its_streams(
    context: Any, created: Callable[[], Any], calls: HostCalls
) -> None:
    streams, event = [ok(driver.cuStreamCreate(1)) for _ in range(2)], ok(driver.cuEventCreate(0))
    for name, stream in zip("st", streams, strict=True):
        calls.launch(stream, name)
    ok(driver.cuCtxRecordEvent(context, event))
    calls.launch(streams[0], "later")
    ok(driver.cuEventSynchronize(event))
    assert sorted(calls.names) == ["s", "t"]
    own = created()
    assert driver.cuCtxRecordEvent(own, event) == (INVALID_HANDLE,)


def test_later_work_of_a_waiting_context_is_behind_the_event(
    context: Any, created: Callable[[], Any], calls: HostCalls
) -> None:
    stream, event = ok(driver.cuStreamCreate(1)), ok(driver.cuEventCreate(0))
    calls.launch(stream, "first")
    ok(driver.cuEventRecord(event, stream))
    own = created()
    idle = ok(driver.cuStreamCreate(1))
    ok(driver.cuCtxWaitEvent(own, event))
    later = ok(driver.cuStreamCreate(1))
    for name, waiting in (("idle", idle), ("later", later)):
        calls.launch(waiting, name)
        ok(driver.cuStreamSynchronize(waiting))
    assert calls.names == ["first", "idle", "later"]


@pytest.mark.parametrize("call", ["cuCtxRecordEvent", "cuCtxWaitEvent"])
def test_a_context_that_is_captured_neither_records_nor_waits(context: Any, call: str) -> None:
    stream, event = ok(driver.cuStreamCreate(1)), ok(driver.cuEventCreate(0))
    ok(driver.cuStreamBeginCapture(stream, bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    assert getattr(driver, call)(context, event) == (Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
    assert driver.cuStreamEndCapture(stream)[0] == Status.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
