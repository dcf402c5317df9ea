"""Every wrapper, with the bare driver calls that do the same.

`CALLS` contains the wrappers, and `launches` further ways to launch a kernel. The arguments of a call are prepared
beforehand, so that only the call itself is timed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cuda.bindings import driver

import cudart_py as cuda
from cudart_py.driver import calls

from . import host_things as things
from .host_things import BLOCK, GRID, LAUNCHES, MIB, SIZE, Call, Things


def bare(name: str, *arguments: Any) -> Call:
    return partial(getattr(calls.raw, name), *arguments)


def dropped(make: str, drop: str, *arguments: Any) -> Call:
    """Return a pair of driver calls, of which the second takes the result of the first."""
    first, second = getattr(calls.raw, make), getattr(calls.raw, drop)
    return lambda: second(first(*arguments)[1])


def closed(make: Callable[[], Any]) -> Call:
    return lambda: make().close()


def both(first: Call, second: Call) -> Call:
    return lambda: (first(), second())


def getter(thing: Any, name: str) -> Call:
    return partial(getattr(type(thing), name).fget, thing)


def bare_allocation(t: Things, make: str, *pool: Any) -> Call:
    first, second, stream = getattr(calls.raw, make), calls.raw.cuMemFreeAsync, t.s
    return lambda: second(first(MIB, *pool, stream)[1], stream)


def allocation(t: Things) -> Call:
    """Return a call that allocates and frees; names are looked up beforehand, as for the bare calls."""
    empty, uint8, stream = cuda.empty, np.uint8, t.stream
    return lambda: empty(MIB, uint8, stream=stream).close()


def current(t: Things) -> Call:
    def call() -> None:
        with t.device:
            pass

    return call


def bare_capture(t: Things) -> Call:
    names = ("cuStreamBeginCapture", "cuLaunchKernel", "cuStreamEndCapture", "cuGraphDestroy")
    begin, launch, end, drop = (getattr(calls.raw, name) for name in names)
    mode, f, s, where = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, t.f, t.s, t.extra

    def call() -> Any:
        begin(s, mode)
        launch(f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, where)
        return drop(end(s)[1])

    return call


def eighths(t: Things) -> list[tuple[cuda.DeviceArray, cuda.DeviceArray]]:
    """Return the parts of two arrays, as destinations and sources."""
    parts = [slice(SIZE * part // 8, SIZE * (part + 1) // 8) for part in range(8)]
    return [(t.y[part], t.x[part]) for part in parts]


def bare_batch(t: Things) -> Call:
    pairs, attributes = eighths(t), driver.CUmemcpyAttributes()
    attributes.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    ends = ([driver.CUdeviceptr(pair[end].pointer) for pair in pairs] for end in range(2))
    return bare("cuMemcpyBatchAsync", *ends, [to.nbytes for to, _ in pairs], 8, [attributes], [0], 1, t.s)


def capture(t: Things) -> Call:
    launch, stream = t.kernel[GRID, BLOCK, 0, t.stream].bind(*t.arguments), t.stream

    def call() -> None:
        with stream.capture() as graph:
            launch()
        graph.close()

    return call


def bare_policy(t: Things) -> Call:
    ask, set_it = calls.raw.cuStreamGetAttribute, calls.raw.cuStreamSetAttribute
    kind, value, s = driver.CUstreamAttrID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, things.access_policy(t), t.s

    def call() -> Any:
        before = ask(s, kind)[1]
        return set_it(s, kind, value), set_it(s, kind, before)

    return call


def policy(t: Things) -> Call:
    def call() -> None:
        with t.stream.access_policy(t.x):
            pass

    return call


def bare_managed_attributes(t: Things) -> Call:
    ask, start, kinds = calls.raw.cuMemRangeGetAttribute, t.at_managed, driver.CUmem_range_attribute
    names = ("READ_MOSTLY", "PREFERRED_LOCATION", "ACCESSED_BY", "LAST_PREFETCH_LOCATION")
    asked = [getattr(kinds, f"CU_MEM_RANGE_ATTRIBUTE_{name}") for name in names]
    return lambda: [ask(4, kind, start, 4 * SIZE) for kind in asked]


READ_MOSTLY = driver.CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY
CARVEOUT = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
# By kind of call: a function that returns the bare driver calls and ours.
CALLS: dict[str, Callable[[Things], tuple[Call, Call]]] = {
    "launch": lambda t: (
        bare("cuLaunchKernel", t.f, GRID, 1, 1, BLOCK, 1, 1, 0, t.s, 0, t.extra),
        partial(t.kernel[GRID, BLOCK, 0, t.stream], *t.arguments),
    ),
    "cooperative launch": lambda t: (
        bare("cuLaunchKernelEx", things.launch_config(t, cooperative=True), t.f, 0, t.extra),
        partial(t.kernel.configure(GRID, BLOCK, 0, t.stream, cooperative=True), *t.arguments),
    ),
    # Events and streams
    "event record": lambda t: (bare("cuEventRecord", t.e, t.s), partial(t.event.record, t.stream)),
    "event query": lambda t: (bare("cuEventQuery", t.e), getter(t.event, "done")),
    "event synchronize": lambda t: (bare("cuEventSynchronize", t.e), t.event.synchronize),
    "time between events": lambda t: (
        bare("cuEventElapsedTime", driver.CUevent(t.begin.handle), t.e),
        lambda: t.event - t.begin,
    ),
    "event made and closed": lambda t: (dropped("cuEventCreate", "cuEventDestroy", 0), closed(cuda.Event)),
    "stream made and closed": lambda t: (
        dropped("cuStreamCreateWithPriority", "cuStreamDestroy", 1, 0),
        closed(partial(cuda.Stream, non_blocking=True)),
    ),
    "stream query": lambda t: (bare("cuStreamQuery", t.s), getter(t.stream, "done")),
    "stream synchronize": lambda t: (bare("cuStreamSynchronize", t.s), t.stream.synchronize),
    "stream priority": lambda t: (bare("cuStreamGetPriority", t.s), getter(t.stream, "priority")),
    "stream is capturing": lambda t: (bare("cuStreamIsCapturing", t.s), getter(t.stream, "is_capturing")),
    "stream borrowed": lambda t: (bare("cuStreamGetDevice", t.s), partial(cuda.Stream.borrow, t.stream.handle)),
    "wait for an event": lambda t: (bare("cuStreamWaitEvent", t.s, t.e, 0), partial(t.stream.wait, t.event)),
    "access policy": lambda t: (bare_policy(t), policy(t)),
    # Memory
    "allocate and free 1 MiB": lambda t: (bare_allocation(t, "cuMemAllocAsync"), allocation(t)),
    "allocate from a pool and free 1 MiB": lambda t: (
        bare_allocation(t, "cuMemAllocFromPoolAsync", t.p),
        closed(partial(cuda.empty, MIB, np.uint8, stream=t.stream, pool=t.pool)),
    ),
    "pitched memory": lambda t: (
        dropped("cuMemAllocPitch", "cuMemFree", 256, 64, 4),
        closed(partial(cuda.empty_pitched, (64, 64), np.float32)),
    ),
    "page-locked memory": lambda t: (
        dropped("cuMemHostAlloc", "cuMemFreeHost", MIB, 1),
        partial(cuda.pinned_empty, MIB, np.uint8),
    ),
    "managed memory": lambda t: (
        dropped("cuMemAllocManaged", "cuMemFree", MIB, 1),
        partial(cuda.managed_empty, MIB, np.uint8),
    ),
    "register host memory": lambda t: (
        both(bare("cuMemHostRegister", t.at_pageable, MIB, 3), bare("cuMemHostUnregister", t.at_pageable)),
        closed(partial(cuda.register_host, t.pageable)),
    ),
    "device address of host memory": lambda t: (
        bare("cuMemHostGetDevicePointer", t.at_host, 0),
        partial(cuda.device_pointer, t.host),
    ),
    "advise": lambda t: (
        bare("cuMemAdvise", t.at_managed, 4 * SIZE, READ_MOSTLY, things.location(t)),
        partial(cuda.advise, t.managed, "set_read_mostly"),
    ),
    "prefetch": lambda t: (
        bare("cuMemPrefetchAsync", t.at_managed, 4 * SIZE, things.location(t), 0, t.s),
        partial(cuda.prefetch, t.managed, stream=t.stream),
    ),
    "batch of 8 copies": lambda t: (
        bare_batch(t),
        partial(cuda.batches.memcpy, eighths(t), stream=t.stream),
    ),
    "managed attributes": lambda t: (bare_managed_attributes(t), partial(cuda.managed_attributes, t.managed)),
    "memory info": lambda t: (bare("cuMemGetInfo"), getter(t.device, "memory_info")),
    "pointer attributes": lambda t: (
        bare("cuPointerGetAttribute", driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, t.at_x),
        partial(cuda.pointer_attributes, t.x),
    ),
    "pool made and closed": lambda t: (
        dropped("cuMemPoolCreate", "cuMemPoolDestroy", things.pool_properties(t)),
        closed(cuda.MemoryPool),
    ),
    "pool trim": lambda t: (bare("cuMemPoolTrimTo", t.p, MIB), partial(t.pool.trim, MIB)),
    "pool use": lambda t: (
        bare("cuMemPoolGetAttribute", t.p, driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
        getter(t.pool, "used"),
    ),
    # Copies and fills
    "memset 4 KiB": lambda t: (
        bare("cuMemsetD32Async", t.at_x, 0, SIZE, t.s),
        partial(cuda.memset, t.x, 0, stream=t.stream),
    ),
    "memset of a pitched array": lambda t: (
        bare("cuMemsetD2D32Async", driver.CUdeviceptr(t.plane.pointer), t.plane.pitch, 0, 64, 64, t.s),
        partial(cuda.memset, t.plane, 0, stream=t.stream),
    ),
    "upload 4 KiB": lambda t: (
        bare("cuMemcpyHtoDAsync", t.at_x, t.at_host, 4 * SIZE, t.s),
        partial(cuda.memcpy, t.x, t.host, stream=t.stream),
    ),
    "download 4 KiB": lambda t: (
        bare("cuMemcpyDtoHAsync", t.at_host, t.at_x, 4 * SIZE, t.s),
        partial(cuda.memcpy, t.host, t.x, stream=t.stream),
    ),
    "copy 4 KiB on the device": lambda t: (
        bare("cuMemcpyDtoDAsync", t.at_y, t.at_x, 4 * SIZE, t.s),
        partial(cuda.memcpy, t.y, t.x, stream=t.stream),
    ),
    "copy of a pitched array": lambda t: (
        bare("cuMemcpy2DAsync", things.planes(t), t.s),
        partial(cuda.memcpy2d, t.other, t.plane, stream=t.stream),
    ),
    "copy of a box": lambda t: (
        bare("cuMemcpy3DAsync", things.boxes(t), t.s),
        partial(cuda.memcpy3d, t.other_box[:, :, :32], t.box[:, :, :32], stream=t.stream),
    ),
    # CUDA arrays, textures and surfaces
    "CUDA array made and closed": lambda t: (
        dropped("cuArray3DCreate", "cuArrayDestroy", things.array_description()),
        closed(partial(cuda.textures.CudaArray, (64, 64), np.float32)),
    ),
    "copy to a CUDA array": lambda t: (
        bare("cuMemcpy2DAsync", things.plane_to_array(t), t.s),
        partial(cuda.memcpy, t.array, t.plane, stream=t.stream),
    ),
    "texture made and closed": lambda t: (
        dropped("cuTexObjectCreate", "cuTexObjectDestroy", *things.texture(t)),
        closed(partial(cuda.textures.Texture, t.plane)),
    ),
    "surface made and closed": lambda t: (
        dropped("cuSurfObjectCreate", "cuSurfObjectDestroy", t.array._resource),
        closed(partial(cuda.textures.Surface, t.array)),
    ),
    # Graphs
    "graph of 10 launches": lambda t: (bare("cuGraphLaunch", t.exec, t.s), partial(t.executable.launch, t.stream)),
    "capture of a launch": lambda t: (bare_capture(t), capture(t)),
    "graph instantiated and closed": lambda t: (
        dropped("cuGraphInstantiate", "cuGraphExecDestroy", t.g, 0),
        closed(t.graph.instantiate),
    ),
    "graph upload": lambda t: (bare("cuGraphUpload", t.exec, t.s), partial(t.executable.upload, t.stream)),
    "graph update": lambda t: (bare("cuGraphExecUpdate", t.exec, t.g), partial(t.executable.update, t.graph)),
    "graph's nodes": lambda t: (bare("cuGraphGetNodes", t.g, LAUNCHES), getter(t.graph, "nodes")),
    "node's kind": lambda t: (bare("cuGraphNodeGetType", t.node.handle), getter(t.node, "kind")),
    "node's dependencies": lambda t: (
        bare("cuGraphNodeGetDependencies", t.node.handle, 1),
        getter(t.node, "dependencies"),
    ),
    "node's dependents": lambda t: (
        bare("cuGraphNodeGetDependentNodes", t.node.handle, 1),
        getter(t.node, "dependents"),
    ),
    "graph's edges": lambda t: (bare("cuGraphGetEdges", t.g, LAUNCHES), getter(t.graph, "edges")),
    "node enabled": lambda t: (
        bare("cuGraphNodeSetEnabled", t.exec, t.node.handle, 1),
        partial(t.executable.set_enabled, t.node, True),
    ),
    "node is enabled": lambda t: (
        bare("cuGraphNodeGetEnabled", t.exec, t.node.handle),
        partial(t.executable.is_enabled, t.node),
    ),
    "node's launch changed": lambda t: (
        bare("cuGraphExecKernelNodeSetParams", t.exec, t.node.handle, things.kernel_node(t)),
        partial(t.executable.set_node, t.node, t.kernel[GRID, BLOCK].bind(*t.arguments)),
    ),
    # Devices
    "driver version": lambda t: (bare("cuDriverGetVersion"), cuda.driver_version),
    "devices": lambda t: (bare("cuDeviceGetCount"), cuda.devices),
    "device made current": lambda t: (
        both(bare("cuCtxPushCurrent", t.device.context), bare("cuCtxPopCurrent")),
        current(t),
    ),
    "current device": lambda t: (bare("cuCtxGetDevice"), cuda.current_device),
    "device attribute": lambda t: (
        bare("cuDeviceGetAttribute", driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE, t.device.handle),
        partial(t.device.attribute, "warp_size"),
    ),
    "device synchronize": lambda t: (bare("cuCtxSynchronize"), t.device.synchronize),
    "device limit": lambda t: (
        bare("cuCtxGetLimit", driver.CUlimit.CU_LIMIT_STACK_SIZE),
        lambda: t.device.limits.stack_size,
    ),
    "device's pool": lambda t: (
        bare("cuDeviceGetMemPool", t.device.handle),
        partial(cuda.MemoryPool.current, t.device),
    ),
    "persisting L2 reset": lambda t: (bare("cuCtxResetPersistingL2Cache"), t.device.reset_persisting_l2),
    # Modules and kernels
    "module loaded and closed": lambda t: (
        dropped("cuModuleLoadData", "cuModuleUnload", t.image),
        closed(partial(cuda.load, t.image)),
    ),
    "kernel by name": lambda t: (
        bare("cuModuleGetFunction", t.module.handle, b"five"),
        partial(t.module.__getitem__, "five"),
    ),
    "symbol by name": lambda t: (
        bare("cuModuleGetGlobal", t.module.handle, b"counter"),
        partial(t.module.symbol, "counter"),
    ),
    "kernel's attributes": lambda t: (
        bare("cuFuncGetAttribute", driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, t.f),
        getter(t.kernel, "attributes"),
    ),
    "kernel's carveout": lambda t: (
        bare("cuFuncSetAttribute", t.f, CARVEOUT, 50),
        partial(setattr, t.kernel, "carveout", 50),
    ),
    "occupancy": lambda t: (
        bare("cuOccupancyMaxActiveBlocksPerMultiprocessor", t.f, BLOCK, 0),
        partial(t.kernel.occupancy, BLOCK),
    ),
    "suggested block": lambda t: (bare("cuOccupancyMaxPotentialBlockSize", t.f, 0, 0, 0), t.kernel.suggested_block),
    "active clusters": lambda t: (
        bare("cuOccupancyMaxActiveClusters", t.f, things.launch_config(t, cooperative=False)),
        partial(t.kernel.max_active_clusters, BLOCK),
    ),
    "profiler started and stopped": lambda t: (
        both(bare("cuProfilerStart"), bare("cuProfilerStop")),
        both(cuda.profiling.profiler_start, cuda.profiling.profiler_stop),
    ),
}

# Driver functions of those rows of docs/names.md from which no function is called above, with the reasons.
UNTIMED = {
    name: reason
    for reason, names in {
        "only a failure asks for it": "cuGetErrorName",
        "as the batch of copies": "cuMemPrefetchBatchAsync cuMemDiscardBatchAsync cuMemDiscardAndPrefetchBatchAsync",
        "once in a process": "cuDevicePrimaryCtxRetain cuCoredumpSetAttributeGlobal",
        "the simulator alone has it": "cuDevicePrimaryCtxReset",
        "concerns another process": (
            "cuCheckpointProcessGetState cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessLock "
            "cuCheckpointProcessCheckpoint cuCheckpointProcessRestore cuCheckpointProcessUnlock"
        ),
        "a comprehension over the nodes and their dependencies, which are timed": "cuGraphGetRootNodes",
        "once, when a program chooses its device": "cuDeviceGetByPCIBusId",
        "one of many properties that are read together, once": "cuDeviceGetPCIBusId",
        "needs two devices": "cuDeviceCanAccessPeer cuCtxEnablePeerAccess cuCtxDisablePeerAccess cuMemcpyPeer",
        "timed as the same call for a stream, without a wait": "cuMemcpy cuMemcpy2D cuMemcpy3D cuMemsetD8",
        "our object calls cuStreamCreateWithPriority": "cuStreamCreate",
        "part of making a stream": "cuCtxGetStreamPriorityRange",
        "needs compute capability 9.0": "cuTensorMapEncodeTiled cuTensorMapReplaceAddress",
        "timed as the copy to a CUDA array, which cuMemcpy2DAsync makes": "cuMemcpyAtoD",
        "our object knows it without a call": (
            "cuArrayGetDescriptor cuTexObjectGetResourceDesc cuSurfObjectGetResourceDesc"
        ),
        "needs two processes": (
            "cuIpcGetMemHandle cuIpcOpenMemHandle cuIpcCloseMemHandle cuIpcGetEventHandle cuIpcOpenEventHandle "
            "cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle cuMemPoolExportPointer "
            "cuMemPoolImportPointer"
        ),
        "needs devices behind NVSwitch": "cuMulticastCreate cuMulticastAddDevice",
        "its function runs in a thread that takes turns with the one that measures": "cuLaunchHostFunc",
        "nvJitLink does it, in milliseconds": "cuLinkCreate",
        "makes the calls of a module, at the first use on each device": "cuLibrary*",
        "milliseconds, as the loading of a module": "cuLibraryLoadData",
        "once, when a program divides its device": (
            "cuDeviceGetDevResource cuDevSmResourceSplitByCount cuGreenCtxCreate cuGreenCtxStreamCreate"
        ),
        "once for each part of a device": "cuGreenCtxGetDevResource cuGreenCtxDestroy",
        "as an event of a stream, with another call of the driver": (
            "cuGreenCtxRecordEvent cuStreamWaitValue32 cuStreamWriteValue32 cuStreamBatchMemOp"
        ),
        "as a launch that is changed, with another call of the driver": (
            "cuGraphExecBatchMemOpNodeSetParams cuGraphExecChildGraphNodeSetParams cuGraphExecHostNodeSetParams "
            "cuGraphExecMemcpyNodeSetParams cuGraphExecMemsetNodeSetParams cuGraphExecEventRecordNodeSetEvent"
        ),
        "once, while a graph is made": (
            "cuGraphAddBatchMemOpNode cuGraphBatchMemOpNodeSetParams cuEventRecordWithFlags cuGraphAddEmptyNode "
            "cuGraphAddEventRecordNode cuGraphAddHostNode cuGraphAddKernelNode cuGraphAddMemcpyNode "
            "cuGraphAddMemsetNode cuGraphAddMemAllocNode cuGraphAddMemFreeNode cuGraphAddDependencies "
            "cuGraphRemoveDependencies cuGraphDestroyNode cuGraphClone cuGraphCreate cuGraphEventRecordNodeSetEvent "
            "cuGraphKernelNodeGetAttribute cuGraphKernelNodeSetAttribute cuGraphHostNodeSetParams "
            "cuGraphKernelNodeSetParams cuGraphMemcpyNodeSetParams cuGraphMemsetNodeSetParams"
        ),
        "launched by cuLaunchKernelEx": "cuLaunchCooperativeKernel",
        "once for each kernel": "cuFuncGetParamCount",
        "one of the calls of a capture": "cuGraphAddChildGraphNode cuGraphConditionalHandleCreate",
        "rare": "cuDeviceGetGraphMemAttribute cuDeviceSetGraphMemAttribute cuDeviceGraphMemTrim",
        "writes a text to be read": "cuGraphDebugDotPrint",
        "an argument of the capture, and no call": "cuThreadExchangeStreamCaptureMode",
    }.items()
    for name in names.split()
}

LAUNCHES_BY = ("checked", "checked, with kernel[...] each time", "bound")


def launches(t: Things) -> dict[str, Call]:
    kernel, stream = t.kernel, t.stream
    launch = kernel[GRID, BLOCK, 0, stream]

    def whole(a: float, x: Any, y: Any, z: Any, n: int) -> None:
        kernel[GRID, BLOCK, 0, stream](a, x, y, z, n)

    ways = (partial(launch, *t.arguments), partial(whole, *t.arguments), launch.bind(*t.arguments))
    return dict(zip(LAUNCHES_BY, ways, strict=True))
