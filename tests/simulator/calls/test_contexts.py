from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state.queue import captures
from tests.simulator.kernels import loaded
from tests.simulator.support import Player, Status, download, ok, upload

NO_CONTEXT, INVALID_HANDLE = Status.CUDA_ERROR_INVALID_CONTEXT, Status.CUDA_ERROR_INVALID_HANDLE
FAULT = Status.CUDA_ERROR_ILLEGAL_ADDRESS


def begin_again() -> None:
    ok(driver.cuDevicePrimaryCtxReset(0))
    ok(driver.cuDevicePrimaryCtxRetain(0))
    free, total = ok(driver.cuMemGetInfo())
    assert free == total


def test_contexts_are_pushed_and_popped_and_null_takes_the_current_one_away(two_devices: list[Any]) -> None:
    ok(driver.cuCtxPushCurrent(two_devices[1]))
    assert int(ok(driver.cuCtxGetDevice())) == 1
    assert int(ok(driver.cuCtxPopCurrent())) == int(two_devices[1])
    assert int(ok(driver.cuCtxGetDevice())) == 0
    ok(driver.cuCtxSetCurrent(None))
    for refused in (driver.cuCtxGetDevice(), driver.cuCtxPopCurrent(), driver.cuMemAlloc(4)):
        assert refused == (NO_CONTEXT, None)


def test_the_last_release_frees_all(context: Any) -> None:
    ok(driver.cuMemAlloc(1000))
    assert ok(driver.cuDevicePrimaryCtxGetState(0)) == (0, 1)
    ok(driver.cuDevicePrimaryCtxRelease(0))
    assert ok(driver.cuDevicePrimaryCtxGetState(0)) == (0, 0)
    assert driver.cuMemAlloc(4) == (Status.CUDA_ERROR_CONTEXT_IS_DESTROYED, None)
    assert driver.cuDevicePrimaryCtxRelease(0) == (NO_CONTEXT,)
    begin_again()


def test_limits_are_kept_as_the_driver_rounds_them(context: Any) -> None:
    for name, value, kept in (
        ("STACK_SIZE", 2000, 2000),
        ("STACK_SIZE", 2001, 2016),
        ("PRINTF_FIFO_SIZE", 1 << 20, 1 << 20),
        ("MALLOC_HEAP_SIZE", 64 << 20, 64 << 20),
        ("PRINTF_FIFO_SIZE", (1 << 20) + 1, (1 << 20) + 256),
        ("MALLOC_HEAP_SIZE", (8 << 20) + 1, (8 << 20) + (64 << 10)),
        ("DEV_RUNTIME_PENDING_LAUNCH_COUNT", 1, 32),
        ("MAX_L2_FETCH_GRANULARITY", 100, 100),
        ("PERSISTING_L2_CACHE_SIZE", 20 << 20, 23_592_960),
    ):
        limit = getattr(bindings.CUlimit, f"CU_LIMIT_{name}")
        ok(driver.cuCtxSetLimit(limit, value))
        assert ok(driver.cuCtxGetLimit(limit)) == kept


def test_a_fault_ends_only_its_own_context_and_is_sticky_until_the_reset(two_devices: list[Any], play: Player) -> None:
    kept, event = ok(driver.cuMemAlloc(64)), play["e"]
    # A fill of memory that another stream has freed in the meantime.
    play("take s a, fill s a, free t a, sync t, sync s -> ILLEGAL_ADDRESS")
    assert "which was freed" in (driver.take_report() or "")
    assert driver.take_report() is None
    assert driver.cuMemAlloc(4) == (FAULT, None)
    assert driver.cuMemFree(kept) == (FAULT,)
    assert driver.cuEventRecord(event, play["s"]) == (FAULT,)
    play("destroy s -> ILLEGAL_ADDRESS, sync device -> ILLEGAL_ADDRESS")
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    ok(driver.cuMemAlloc(64))
    play("sync device")
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    begin_again()


def test_handles_and_memory_of_an_ended_context_are_gone(play: Player) -> None:
    module = loaded()
    kernel = ok(driver.cuModuleEnumerateFunctions(1, module))[0]
    pool = ok(driver.cuDeviceGetDefaultMemPool(0))
    play("record e s, take null a 4096")
    registered = np.zeros(100)
    ok(driver.cuMemHostRegister(registered, registered.nbytes, 0))
    begin_again()
    assert driver.cuMemHostUnregister(registered.ctypes.data) == (Status.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,)
    play("sync s -> INVALID_HANDLE, sync e -> INVALID_HANDLE")
    assert driver.cuModuleGetFunctionCount(module)[0] == INVALID_HANDLE
    assert driver.cuFuncGetName(kernel)[0] == INVALID_HANDLE
    assert driver.cuMemPoolTrimTo(pool, 0) == (Status.CUDA_ERROR_INVALID_VALUE,)


def test_the_end_of_a_context_ends_its_own_captures_alone(two_devices: list[Any], play: Player) -> None:
    play("begin s relaxed, begin t relaxed")
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    play("begin u relaxed")
    ok(driver.cuDevicePrimaryCtxReset(0))
    assert [capture.origin.handle for capture in captures.active] == [int(play["u"])]
    ok(driver.cuGraphDestroy(play("end u")))


def test_peer_access_is_enabled_once_and_disabled_once(two_devices: list[Any]) -> None:
    own, peer = two_devices
    assert [ok(driver.cuDeviceCanAccessPeer(0, ordinal)) for ordinal in range(2)] == [0, 1]
    assert driver.cuCtxEnablePeerAccess(own, 0) == (Status.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,)
    assert driver.cuCtxDisablePeerAccess(peer) == (Status.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,)
    ok(driver.cuCtxEnablePeerAccess(peer, 0))
    assert driver.cuCtxEnablePeerAccess(peer, 0) == (Status.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,)
    ok(driver.cuCtxDisablePeerAccess(peer))


def test_a_peer_copy_needs_no_peer_access_and_comes_between_all_work_of_both_devices(two_devices: list[Any]) -> None:
    (own, peer), source = two_devices, upload(np.zeros(4, np.uint8))
    ok(driver.cuCtxSetCurrent(peer))
    destination, copy = (int(ok(driver.cuMemAlloc(4))) for _ in range(2))
    ok(driver.cuCtxSetCurrent(own))
    ok(driver.cuMemsetD8Async(source, 7, 4, ok(driver.cuStreamCreate(1))))
    ok(driver.cuMemcpyPeer(destination, peer, source, own, 4))
    ok(driver.cuMemsetD8(source, 8, 4))
    ok(driver.cuCtxSetCurrent(peer))
    ok(driver.cuMemcpyDtoD(copy, destination, 4))
    assert download(copy, 4).tolist() == [7] * 4
    assert driver.cuMemcpyPeer(source, peer, source, own, 4) == (Status.CUDA_ERROR_INVALID_VALUE,)
