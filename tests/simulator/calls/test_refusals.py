from collections.abc import Callable
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import clusters, function
from tests.simulator.support import create_array, ok, struct

DEVICE = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
FLOAT = bindings.CUarray_format.CU_AD_FORMAT_FLOAT


def make_pool(device: int, most: int = 0) -> Any:
    kind = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    given = {"allocType": kind, "location__type": DEVICE, "location__id": device, "maxSize": most}
    return ok(driver.cuMemPoolCreate(struct("CUmemPoolProps", **given)))


class World:
    """A module with a trivial kernel, and memory of several kinds."""

    def __init__(self, module: Any) -> None:
        self.module, self.kernel = module, function(module, "bump")
        self.device, self.pinned = int(ok(driver.cuMemAlloc(64))), int(ok(driver.cuMemHostAlloc(64, 0)))
        self.pooled, self.managed = ok(driver.cuMemAllocAsync(64, 0)), ok(driver.cuMemAllocManaged(64, 1))
        self.pool = ok(driver.cuDeviceGetDefaultMemPool(0))
        self.host = struct("CUmemLocation", type=bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST)


Marks, Limit, Advice = bindings.CUmemPool_attribute, bindings.CUlimit, bindings.CUmem_advise
Shared = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
SHAPES = [
    (0, 1, 1, 1, 1, 1),
    (1, 1, 0, 1, 1, 1),
    (1, 65536, 1, 1, 1, 1),
    (2**31, 1, 1, 1, 1, 1),
    (1, 1, 1, 0, 1, 1),
    (1, 1, 1, 1025, 1, 1),
    (1, 1, 1, 1, 1, 65),
    (1, 1, 1, 64, 32, 1),
    (-1, 1, 1, 1, 1, 1),
]
REFUSED: dict[str, list[Callable[[World], Any]]] = {
    "INVALID_VALUE": [
        lambda w: driver.cuMemAlloc(0),
        lambda w: driver.cuMemAlloc(-1),
        lambda w: driver.cuIpcGetMemHandle(0),
        lambda w: driver.cuIpcGetMemHandle(w.pinned),
        lambda w: driver.cuIpcGetMemHandle(w.pooled),
        lambda w: driver.cuIpcGetMemHandle(w.managed),
        lambda w: driver.cuIpcOpenMemHandle(ok(driver.cuIpcGetMemHandle(w.device)), 0),
        lambda w: driver.cuIpcOpenMemHandle(bindings.CUipcMemHandle(), 1),
        lambda w: driver.cuIpcCloseMemHandle(w.device),
        lambda w: driver.cuIpcOpenEventHandle(bindings.CUipcEventHandle()),
        lambda w: driver.cuEventCreate(4),
        lambda w: driver.cuMemAllocAsync(-1, 0),
        lambda w: driver.cuMemHostAlloc(0, 0),
        *(lambda w, size=size: driver.cuMemAllocPitch(16, 16, size) for size in (0, 1, 2, 3, 32)),
        lambda w: driver.cuMemFree(w.pinned),
        lambda w: driver.cuMemFree(12345),
        lambda w: driver.cuMemFreeHost(w.device),
        lambda w: driver.cuMemHostGetDevicePointer(w.device, 0),
        lambda w: driver.cuMemHostGetFlags(w.device),
        lambda w: driver.cuPointerGetAttribute(bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8),
        lambda w: driver.cuPointerGetAttribute(
            bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_HOST_POINTER, w.device
        ),
        lambda w: driver.cuMemAdvise(w.device, 64, Advice.CU_MEM_ADVISE_SET_READ_MOSTLY, w.host),
        lambda w: driver.cuMemPrefetchAsync(w.device, 64, w.host, 0, 0),
        lambda w: driver.cuMemsetD16(w.device + 1, 0, 4),
        lambda w: driver.cuMemsetD32(w.device + 2, 0, 4),
        lambda w: driver.cuMemsetD2D32(w.device, 10, 0, 2, 2),
        lambda w: driver.cuMemsetD32(w.device, 0, 17),
        lambda w: driver.cuMemsetD2D8(w.device, 10, 0, 10, 7),
        lambda w: driver.cuMemsetD2D8(w.device, 5, 0, 6, 2),
        lambda w: driver.cuDeviceSetMemPool(0, make_pool(1)),
        lambda w: driver.cuMemPoolDestroy(w.pool),
        lambda w: driver.cuMemPoolSetAttribute(w.pool, Marks.CU_MEMPOOL_ATTR_USED_MEM_HIGH, bindings.cuuint64_t(1)),
        lambda w: driver.cuModuleGetGlobal(w.module, None),
        lambda w: driver.cuFuncSetAttribute(w.kernel, Shared, 1 << 20),
        lambda w: driver.cuFuncGetParamInfo(w.kernel, 0),
        lambda w: driver.cuLaunchKernel(function(w.module, "add"), 1, 1, 1, 1, 1, 1, 0, 0, None, 0),
        *(lambda w, shape=shape: driver.cuLaunchKernel(w.kernel, *shape, 0, 0, 0, 0) for shape in SHAPES),
        lambda w: driver.cuOccupancyAvailableDynamicSMemPerBlock(w.kernel, 0, 128),
        lambda w: driver.cuCtxGetLimit(99),
        lambda w: driver.cuEventCreate(64),
        lambda w: driver.cuStreamCreate(2),
        lambda w: driver.cuLaunchHostFunc(0, 0, None),
        lambda w: driver.cuTexObjectDestroy(7),
        lambda w: create_array(4, channels=3),
        lambda w: driver.cuArrayCreate(struct("CUDA_ARRAY_DESCRIPTOR", Width=4, NumChannels=1)),
    ],
    "INVALID_HANDLE": [
        *(lambda w, handle=handle: driver.cuStreamSynchronize(handle) for handle in (3, 12345, -1)),
        lambda w: driver.cuEventRecord(3, 0),
        lambda w: driver.cuIpcGetEventHandle(ok(driver.cuEventCreate(2))),
        lambda w: driver.cuStreamDestroy(3),
        lambda w: driver.cuStreamQuery(int(ok(driver.cuEventCreate(0)))),
    ],
    "INVALID_DEVICE": [lambda w, ordinal=ordinal: driver.cuDeviceGet(ordinal) for ordinal in (-1, 2, 100)],
    "NOT_FOUND": [
        lambda w: driver.cuMemGetAddressRange(8),
        lambda w: driver.cuModuleGetFunction(w.module, b"nothing"),
        lambda w: driver.cuModuleGetGlobal(w.module, b"nothing"),
    ],
    "OUT_OF_MEMORY": [
        lambda w: driver.cuMemAlloc((64 << 20) + 1),
        lambda w: driver.cuMemAllocAsync(65 << 20, 0),
        lambda w: driver.cuMemAllocFromPoolAsync(101 << 20, make_pool(0, 100 << 20), 0),
    ],
    "INVALID_CLUSTER_SIZE": [
        lambda w: driver.cuLaunchKernelEx(clusters(16, 16), w.kernel, 0, 0),
        lambda w: driver.cuLaunchKernelEx(clusters(5, 2), w.kernel, 0, 0),
    ],
    "COOPERATIVE_LAUNCH_TOO_LARGE": [
        lambda w: driver.cuLaunchCooperativeKernel(w.kernel, 265, 1, 1, 1024, 1, 1, 0, 0, None)
    ],
    "ILLEGAL_STATE": [lambda w: driver.cuStreamWaitEvent(0, ok(driver.cuEventCreate(0)), 1)],
    "UNSUPPORTED_LIMIT": [lambda w: driver.cuCtxGetLimit(Limit.CU_LIMIT_CIG_ENABLED)],
    "NOT_SUPPORTED": [],
}


@pytest.mark.parametrize("status", REFUSED)
def test_a_refused_call_has_its_status_and_changes_nothing(module: Any, status: str) -> None:
    world = World(module)
    before = ok(driver.cuMemGetInfo())
    found = [call(world)[0].name for call in REFUSED[status]]
    assert found == [f"CUDA_ERROR_{status}"] * len(found)
    assert ok(driver.cuMemGetInfo()) == before
    ok(driver.cuCtxSynchronize())


@pytest.mark.filterwarnings("ignore::cudart_py.errors.SimulatorWarning")  # its largest grid races
def test_what_is_almost_refused_is_taken(module: Any) -> None:
    world = World(module)
    ok(driver.cuMemFree(0))
    assert list(map(int, ok(driver.cuMemGetAddressRange(world.device + 10)))) == [world.device, 64]
    ok(driver.cuFuncSetAttribute(world.kernel, Shared, 100_000))
    assert ok(driver.cuOccupancyAvailableDynamicSMemPerBlock(world.kernel, 4, 128)) == 57 << 10
    kind = bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    assert ok(driver.cuPointerGetAttributes(1, [kind], 8)) == [0]
    mine = make_pool(0)
    ok(driver.cuDeviceSetMemPool(0, mine))
    ok(driver.cuMemPoolDestroy(mine))
    assert int(ok(driver.cuDeviceGetMemPool(0))) == int(world.pool)
    ok(driver.cuMemsetD8(world.device, 0, 0))
    known = struct("CUDA_ARRAY_DESCRIPTOR", Width=4, NumChannels=1, Format=FLOAT)
    ok(driver.cuArrayDestroy(ok(driver.cuArrayCreate(known))))
    allowed = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    ok(driver.cuFuncSetAttribute(world.kernel, allowed, 1))
    ok(driver.cuLaunchCooperativeKernel(world.kernel, 264, 1, 1, 1024, 1, 1, 0, 0, None))
    ok(driver.cuLaunchKernelEx(clusters(16, 16), world.kernel, 0, 0))
    assert ok(driver.cuOccupancyMaxPotentialClusterSize(world.kernel, clusters(64, 8, 1024))) == 16
    assert ok(driver.cuOccupancyMaxActiveClusters(world.kernel, clusters(64, 8, 1024))) == 32
