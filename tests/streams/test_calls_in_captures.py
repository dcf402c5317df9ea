"""The driver refuses the same calls during a capture as driver 580.159 does on an H200."""

import concurrent.futures
import contextlib
import ctypes
import gc
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cuda.bindings import driver as bindings

import cudart_py as cuda
from cudart_py.driver.calls import api, raw
from tests.simulator.support import struct

# All other calls below are allowed, except cuCtxSynchronize, which no capture mode allows.
FORBIDDEN = """
    cuMemAlloc cuMemAllocPitch cuMemAllocManaged cuMemAllocAsync cuMemFree cuMemFreeAsync cuMemHostAlloc cuMemFreeHost
    cuMemHostRegister cuMemHostUnregister cuMemAdvise cuMemPoolCreate cuMemPoolDestroy cuMemPoolTrimTo
    cuMemPoolGetAttribute cuMemPoolSetAttribute cuMemPoolGetAccess cuDeviceSetMemPool cuArray3DCreate cuArrayDestroy
    cuTexObjectCreate cuTexObjectDestroy cuSurfObjectCreate cuSurfObjectDestroy cuEventQuery cuEventSynchronize
    cuStreamQuery cuStreamSynchronize cuModuleUnload cuCtxSetLimit cuGraphInstantiate cuGraphInstantiateWithParams
    cuGraphExecDestroy
"""
UNSUPPORTED = bindings.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
LOST = bindings.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
SUCCESS = bindings.CUresult.CUDA_SUCCESS
HOST = mmap.mmap(-1, mmap.PAGESIZE)


def calls() -> dict[str, Callable[[], Any]]:
    """Return each call by name, ready to be made three times; objects for calls that destroy them exist already."""
    kernel = cuda.compile('extern "C" __device__ int number; extern "C" __global__ void nothing() {}')
    image = bytes(kernel.ptx) + b"\0"
    array = struct(
        "CUDA_ARRAY3D_DESCRIPTOR", Width=8, Height=4, NumChannels=1, Flags=bindings.CUDA_ARRAY3D_SURFACE_LDST
    )
    array.Format = bindings.CUarray_format.CU_AD_FORMAT_FLOAT
    grid = api.cuArray3DCreate(array)
    kind = bindings.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource, texture = struct("CUDA_RESOURCE_DESC", resType=kind, res__array__hArray=grid), struct("CUDA_TEXTURE_DESC")
    place = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    pinned = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    pool, location = struct("CUmemPoolProps", allocType=pinned), struct("CUmemLocation", type=place)
    pool.location = location
    parameters = struct("CUDA_GRAPH_INSTANTIATE_PARAMS")
    page = ctypes.addressof(ctypes.c_char.from_buffer(HOST))
    made: dict[str, list[Any]] = {}

    def each(ends: str, create: Callable[[], Any]) -> None:
        made[ends] = [create() for _ in range(3)]
        table[ends] = lambda: getattr(raw, ends)(made[ends].pop())

    other, event, start = api.cuStreamCreate(1), api.cuEventCreate(0), api.cuEventCreate(0)
    api.cuEventRecord(start, other)
    api.cuStreamSynchronize(other)
    module = api.cuModuleLoadData(image)
    function = api.cuModuleGetFunction(module, b"nothing")
    graph = api.cuGraphCreate(0)
    executable = api.cuGraphInstantiate(graph, 0)
    memory, others, managed = api.cuMemAlloc(64), api.cuMemAlloc(64), api.cuMemAllocManaged(64, 1)
    default, context = api.cuDeviceGetDefaultMemPool(0), api.cuCtxGetCurrent()
    shared = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    advice = bindings.CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY
    threshold = bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    stack = bindings.CUlimit.CU_LIMIT_STACK_SIZE
    table: dict[str, Callable[[], Any]] = {
        "cuMemAlloc": lambda: raw.cuMemAlloc(64),
        "cuMemAllocPitch": lambda: raw.cuMemAllocPitch(64, 4, 4),
        "cuMemAllocManaged": lambda: raw.cuMemAllocManaged(64, 1),
        "cuMemHostAlloc": lambda: raw.cuMemHostAlloc(64, 0),
        "cuMemHostRegister": lambda: raw.cuMemHostRegister(page, mmap.PAGESIZE, 0),
        "cuMemHostUnregister": lambda: raw.cuMemHostUnregister(page),
        "cuMemPoolCreate": lambda: raw.cuMemPoolCreate(pool),
        "cuMemPoolTrimTo": lambda: raw.cuMemPoolTrimTo(default, 1 << 40),
        "cuMemPoolGetAttribute": lambda: raw.cuMemPoolGetAttribute(default, threshold),
        "cuMemPoolSetAttribute": lambda: raw.cuMemPoolSetAttribute(default, threshold, bindings.cuuint64_t(0)),
        "cuMemPoolGetAccess": lambda: raw.cuMemPoolGetAccess(default, location),
        "cuDeviceSetMemPool": lambda: raw.cuDeviceSetMemPool(0, default),
        "cuMemGetInfo": lambda: raw.cuMemGetInfo(),
        "cuMemcpyHtoD": lambda: raw.cuMemcpyHtoD(memory, page, 64),
        "cuMemcpyDtoH": lambda: raw.cuMemcpyDtoH(page, memory, 64),
        "cuMemcpyDtoD": lambda: raw.cuMemcpyDtoD(memory, memory, 64),
        "cuMemcpy": lambda: raw.cuMemcpy(memory, memory, 64),
        "cuMemsetD8": lambda: raw.cuMemsetD8(memory, 0, 64),
        "cuMemsetD2D8": lambda: raw.cuMemsetD2D8(memory, 8, 0, 8, 8),
        "cuMemcpyDtoDAsync": lambda: raw.cuMemcpyDtoDAsync(others, others, 64, other),
        "cuMemcpyPeerAsync": lambda: raw.cuMemcpyPeerAsync(others, context, others, context, 64, other),
        "cuMemsetD8Async": lambda: raw.cuMemsetD8Async(others, 0, 64, other),
        "cuMemAllocAsync": lambda: raw.cuMemAllocAsync(64, other),
        "cuMemAdvise": lambda: raw.cuMemAdvise(managed, 64, advice, location),
        "cuPointerGetAttribute": lambda: raw.cuPointerGetAttribute(
            bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory
        ),
        "cuArray3DCreate": lambda: raw.cuArray3DCreate(array),
        "cuArray3DGetDescriptor": lambda: raw.cuArray3DGetDescriptor(grid),
        "cuTexObjectCreate": lambda: raw.cuTexObjectCreate(resource, texture, None),
        "cuSurfObjectCreate": lambda: raw.cuSurfObjectCreate(resource),
        "cuEventCreate": lambda: raw.cuEventCreate(0),
        "cuEventRecord": lambda: raw.cuEventRecord(event, other),
        "cuEventQuery": lambda: raw.cuEventQuery(start),
        "cuEventElapsedTime": lambda: raw.cuEventElapsedTime(start, start),
        "cuEventSynchronize": lambda: raw.cuEventSynchronize(event),
        "cuStreamCreate": lambda: raw.cuStreamCreate(1),
        "cuStreamWaitEvent": lambda: raw.cuStreamWaitEvent(other, event, 0),
        "cuStreamQuery": lambda: raw.cuStreamQuery(other),
        "cuStreamSynchronize": lambda: raw.cuStreamSynchronize(other),
        "cuModuleLoadData": lambda: raw.cuModuleLoadData(image),
        "cuModuleGetFunction": lambda: raw.cuModuleGetFunction(module, b"nothing"),
        "cuModuleGetGlobal": lambda: raw.cuModuleGetGlobal(module, b"number"),
        "cuFuncSetAttribute": lambda: raw.cuFuncSetAttribute(function, shared, 1024),
        "cuFuncGetAttribute": lambda: raw.cuFuncGetAttribute(shared, function),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor": lambda: raw.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            function, 128, 0
        ),
        "cuCtxSynchronize": lambda: raw.cuCtxSynchronize(),
        "cuCtxSetLimit": lambda: raw.cuCtxSetLimit(stack, api.cuCtxGetLimit(stack)),
        "cuCtxGetLimit": lambda: raw.cuCtxGetLimit(stack),
        "cuCtxResetPersistingL2Cache": lambda: raw.cuCtxResetPersistingL2Cache(),
        "cuDeviceGetAttribute": lambda: raw.cuDeviceGetAttribute(
            bindings.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0
        ),
        "cuDevicePrimaryCtxRetain": lambda: raw.cuDevicePrimaryCtxRetain(0),
        "cuDevicePrimaryCtxRelease": lambda: raw.cuDevicePrimaryCtxRelease(0),
        "cuGraphCreate": lambda: raw.cuGraphCreate(0),
        "cuGraphInstantiate": lambda: raw.cuGraphInstantiate(graph, 0),
        "cuGraphInstantiateWithParams": lambda: raw.cuGraphInstantiateWithParams(graph, parameters),
        "cuGraphUpload": lambda: raw.cuGraphUpload(executable, other),
        "cuGraphLaunch": lambda: raw.cuGraphLaunch(executable, other),
        "cuGraphExecUpdate": lambda: raw.cuGraphExecUpdate(executable, graph),
    }
    each("cuMemFree", lambda: api.cuMemAlloc(64))
    each("cuMemFreeHost", lambda: api.cuMemHostAlloc(64, 0))
    each("cuMemPoolDestroy", lambda: api.cuMemPoolCreate(pool))
    each("cuArrayDestroy", lambda: api.cuArray3DCreate(array))
    each("cuTexObjectDestroy", lambda: api.cuTexObjectCreate(resource, texture, None))
    each("cuSurfObjectDestroy", lambda: api.cuSurfObjectCreate(resource))
    each("cuEventDestroy", lambda: api.cuEventCreate(0))
    each("cuStreamDestroy", lambda: api.cuStreamCreate(1))
    each("cuModuleUnload", lambda: api.cuModuleLoadData(image))
    each("cuGraphDestroy", lambda: api.cuGraphCreate(0))
    each("cuGraphExecDestroy", lambda: api.cuGraphInstantiate(graph, 0))
    made["cuMemFreeAsync"] = [api.cuMemAllocAsync(64, other) for _ in range(3)]
    table["cuMemFreeAsync"] = lambda: raw.cuMemFreeAsync(made["cuMemFreeAsync"].pop(), other)
    return table


@contextlib.contextmanager
def no_finalizers() -> Iterator[None]:
    """Keep finalizers from calling the driver during a capture that the package doesn't know about."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("mode", ["GLOBAL", "THREAD_LOCAL", "RELAXED"])
def test_a_captures_mode_says_which_calls_of_which_threads_it_allows(
    device: cuda.Device, mode: str, elsewhere: bool
) -> None:
    captured = api.cuStreamCreate(1)
    forbidden = {"cuCtxSynchronize"}
    if mode == "GLOBAL" or (mode == "THREAD_LOCAL" and not elsewhere):
        forbidden.update(FORBIDDEN.split())

    def answer(call: Callable[[], Any]) -> Any:
        with cuda.Device(0):
            return call()[0]

    answers, expected = {}, {}
    with concurrent.futures.ThreadPoolExecutor(1) as pool, no_finalizers():
        for name, call in calls().items():
            api.cuStreamBeginCapture(captured, getattr(bindings.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{mode}"))
            status = pool.submit(answer, call).result() if elsewhere else call()[0]
            answers[name] = status, raw.cuStreamEndCapture(captured)[0]
            expected[name] = (UNSUPPORTED, LOST) if name in forbidden else (SUCCESS, SUCCESS)
    assert set(answers) > forbidden
    assert {name: both for name, both in answers.items() if both != expected[name]} == {}
    api.cuStreamDestroy(captured)
