"""Every driver call in every creation of memory fails once, and nothing is left behind."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import _driver, errors, staging

PAIRS = {
    "cuMemPoolCreate": "cuMemPoolDestroy",
    "cuMemAllocAsync": "cuMemFreeAsync",
    "cuMemAllocFromPoolAsync": "cuMemFreeAsync",
    "cuMemAllocManaged": "cuMemFree",
    "cuMemAllocPitch": "cuMemFree",
    "cuMemHostAlloc": "cuMemFreeHost",
    "cuMemHostRegister": "cuMemHostUnregister",
    "cuEventCreate": "cuEventDestroy",
    "cuStreamCreateWithPriority": "cuStreamDestroy",
}
OTHERS = (
    "cuCtxGetStreamPriorityRange",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetMemPool",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAccess",
    "cuMemPoolSetAttribute",
    "cuMemcpyHtoDAsync",
    "cuMemcpyDtoDAsync",
    "cuMemcpyPeerAsync",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuMemsetD8Async",
    "cuPointerGetAttributes",
    "cuStreamIsCapturing",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
)


class Calls:
    """Count what the driver is asked for, and let one call fail before it reaches the driver."""

    def __init__(self):
        self.fail_at = None
        self.count = 0
        self.balance = 0

    def wrap(self, name, function, status):
        def call(*arguments):
            if name in PAIRS.values():
                result = function(*arguments)
                self.balance -= 1
                return result
            self.count += 1
            if self.count == self.fail_at:
                if status is None:
                    raise errors.CudaError("planted", call=name)
                return (status, None, None)[: 1 + (name in PAIRS) + (name == "cuMemAllocPitch")]
            result = function(*arguments)
            self.balance += name in PAIRS
            return result

        return call


@pytest.fixture
def calls(monkeypatch):
    from cuda.bindings.driver import CUresult

    counting = Calls()
    for face, status in ((_driver.api, None), (_driver.raw, CUresult.CUDA_ERROR_UNKNOWN)):
        # Look all of them up before any is wrapped: api's functions call raw ones that they bind then.
        found = {name: getattr(face, name) for name in (*PAIRS, *set(PAIRS.values()), *OTHERS)}
        for name, function in found.items():
            monkeypatch.setitem(vars(face), name, counting.wrap(name, function, status))
    return counting


def stage():
    cuda.release_staging()
    try:
        cuda.to_device(np.zeros(20_000, np.uint8)).close()
    finally:
        cuda.release_staging()


def take_from_own_pool():
    with cuda.MemoryPool() as pool:
        return cuda.empty(100, pool=pool)


def register():
    with cuda.register_host(np.zeros(10_000)):
        pass


MAKERS = {
    "array": lambda: cuda.empty(100),
    "zeros": lambda: cuda.zeros(100),
    "full": lambda: cuda.full(100, 3.5),
    "to_device": lambda: cuda.to_device(np.zeros(100)),
    "pitched": lambda: cuda.empty_pitched((10, 10)),
    "pinned": lambda: cuda.pinned_empty(100, mapped=True),
    "managed": lambda: cuda.managed_empty(100),
    "pool": cuda.MemoryPool,
    "array of a pool": take_from_own_pool,
    "registered": register,
    "staged copy": stage,
    "stream": cuda.Stream,
    "event": cuda.Event,
    "peer copy": lambda: cuda.memcpy_peer(cuda.zeros(10), cuda.zeros(10)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_whichever_call_fails_nothing_is_left_behind(device, monkeypatch, calls, kind):
    monkeypatch.setattr(staging, "THRESHOLD", 8 << 10)
    monkeypatch.setattr(staging, "_LEAST_PROCESSORS", 1)
    make = MAKERS[kind]
    make()
    gc.collect()
    steps, calls.count, calls.balance = calls.count, 0, 0
    assert steps
    for fail_at in range(1, steps + 1):
        calls.count, calls.fail_at = 0, fail_at
        with contextlib.suppress(errors.CudaError):
            make()
        calls.fail_at = None
        gc.collect()
        assert calls.balance == 0, f"call {fail_at} of {steps}"
    make()
    gc.collect()
    assert calls.balance == 0
