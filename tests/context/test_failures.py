"""Every driver call in every creation of something fails once, and nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import re

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import errors
from cudart_py.driver import seam
from cudart_py.memory import staging

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
    "cuModuleLoadData": "cuModuleUnload",
    "cuArray3DCreate": "cuArrayDestroy",
    "cuTexObjectCreate": "cuTexObjectDestroy",
    "cuSurfObjectCreate": "cuSurfObjectDestroy",
    "cuStreamEndCapture": "cuGraphDestroy",
    "cuGraphInstantiate": "cuGraphExecDestroy",
}
# Calls that give back or put back: were they to fail as well, nothing could be promised.
ENDINGS = {*PAIRS.values(), "cuCtxPopCurrent", "cuCtxSetCurrent", "cuThreadExchangeStreamCaptureMode"}
# How many values the raw calls return behind the status.
OUTPUTS = {"cuMemAllocPitch": 2, "cuModuleGetGlobal": 2, "cuFuncGetParamInfo": 2, "cuDeviceGetAttribute": 1}


class Calls:
    """Count what the driver is asked for, and let one call fail before it reaches the driver."""

    def __init__(self):
        self.fail_at = None
        self.count = 0
        self.balance = 0
        self.functions = {}

    def wrap(self, name, function, status):
        def call(*arguments):
            if name in ENDINGS:
                result = function(*arguments)
                self.balance -= name in PAIRS.values()
                return result
            self.count += 1
            if self.count == self.fail_at:
                if name == "cuStreamEndCapture":  # which ends the capture also where it fails
                    self.functions["cuGraphDestroy"](function(*arguments)[1])
                if status is None:
                    raise errors.CudaError("planted", call=name)
                return (status, *[None] * OUTPUTS.get(name, name in PAIRS))
            result = function(*arguments)
            # A raw call may have failed for a reason of its own.
            self.balance += name in PAIRS and (status is None or not result[0])
            return result

        return call


@pytest.fixture
def calls(monkeypatch):
    from cuda.bindings.driver import CUresult

    counting = Calls()
    chosen = seam._choose()
    functions = [name for name in dir(chosen) if re.match("cu[A-Z]", name) and callable(getattr(chosen, name))]
    for face, status in ((seam.api, None), (seam.raw, CUresult.CUDA_ERROR_UNKNOWN)):
        # Look all of them up before any is wrapped: api's functions call raw ones that they bind then.
        counting.functions = found = {name: getattr(face, name) for name in functions}
        for name, function in found.items():
            monkeypatch.setitem(vars(face), name, counting.wrap(name, function, status))
    return counting


def read_surface():
    array = cuda.CudaArray((4, 8), np.float32, surface=True)
    with cuda.Surface(array), cuda.Texture(array):
        return array.copy_from(np.zeros((4, 8), np.float32)).to_host()


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


CODE = """
__device__ float kept[8];
extern __shared__ float shared[];
extern "C" __global__ void keep(const float *x) { shared[0] = kept[threadIdx.x] = *x; }
"""


def capture():
    words = cuda.zeros(10, np.int32)
    with cuda.Stream() as stream, stream.capture() as graph:
        cuda.memset(words, 1, stream=stream)
        stream.add_callback(int)
    return graph


def set_policy():
    words = cuda.zeros(1000)
    with cuda.Stream() as stream, stream.access_policy(words, hit_ratio=0.5):
        pass


def launch():
    # More shared memory than a kernel has unless the driver is asked for it.
    cuda.compile(CODE)["keep"][1, 8, 60_000].bind(cuda.zeros(8, np.float32))()


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
    "module": lambda: cuda.compile(CODE)["keep"].attributes,
    "symbol": lambda: cuda.compile(CODE).symbol("kept", np.float32),
    "launch": launch,
    "texture": lambda: cuda.Texture(cuda.empty_pitched((8, 8), np.float32)),
    "surface": read_surface,
    "graph": capture,
    "executable graph": lambda: capture().instantiate(),
    "access policy": set_policy,
}


FRAMES = pytest.mark.unsanitized(
    "the tool keeps the Python frame of the last launch, and with it all that it refers to"
)
KINDS = [pytest.param(kind, marks=FRAMES) if kind == "launch" else kind for kind in MAKERS]


@pytest.mark.parametrize("kind", KINDS)
def test_whichever_call_fails_nothing_is_left_behind(device, monkeypatch, calls, kind):
    monkeypatch.setattr(staging, "THRESHOLD", 8 << 10)
    monkeypatch.setattr(staging, "_LEAST_PROCESSORS", 1)
    make = MAKERS[kind]
    make()
    gc.collect()
    device.synchronize()  # after which closed pools end
    steps, calls.count, calls.balance = calls.count, 0, 0
    assert steps
    for fail_at in range(1, steps + 1):
        calls.count, calls.fail_at = 0, fail_at
        with contextlib.suppress(errors.CudaError):  # planted; some steps do without the call that fails
            make()
        calls.fail_at = None
        gc.collect()
        device.synchronize()
        assert calls.balance == 0, f"call {fail_at} of {steps}"
    make()
    gc.collect()
    device.synchronize()
    assert calls.balance == 0
