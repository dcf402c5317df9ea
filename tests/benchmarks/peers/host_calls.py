"""Every wrapper beside the bare calls of the driver that do the same.

`CALLS` has the wrappers, and `launches` further ways to launch. A call is made with its arguments beforehand, so that
only the call itself is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import driver

import cudart_py as cuda
from cudart_py.driver import seam

from . import host_things as things
from .host_things import BLOCK, GRID, LAUNCHES, MIB, SIZE, Call, Things

__all__ = ["CALLS", "LAUNCHES_BY", "UNTIMED", "launches"]


class Wrapper(NamedTuple):
    """One of our calls, and the bare calls of the driver that do the same; each is made for the things."""

    bare: Callable[[Things], Call]
    ours: Callable[[Things], Call]


def bare(name: str, *arguments: Any) -> Callable[[Things], Call]:
    """Return what makes a call of a driver's function; an argument that is a function is asked for with the things."""

    def make(t: Things) -> Call:
        return partial(getattr(seam.raw, name), *(one(t) if callable(one) else one for one in arguments))

    return make


def made_and_dropped(make: Any, drop: Any, *arguments: Any) -> Callable[[Things], Call]:
    """Return what makes two calls of the driver, of which the second takes what the first returns."""

    def both(t: Things) -> Call:
        first, second = getattr(seam.raw, make), getattr(seam.raw, drop)
        given = [one(t) if callable(one) else one for one in arguments]
        return lambda: second(first(*given)[1])

    return both


def closed(make: Callable[[Things], Callable[[], Any]]) -> Callable[[Things], Call]:
    """Return what makes one of our objects and closes it."""

    def both(t: Things) -> Call:
        open_it = make(t)
        return lambda: open_it().close()

    return both


def getter(thing: Callable[[Things], Any], name: str) -> Callable[[Things], Call]:
    """Return what asks for a property."""
    return lambda t: partial(getattr(type(thing(t)), name).fget, thing(t))


def of(name: str) -> Callable[[Things], Any]:
    """Return what asks the things for one of them."""
    return lambda t: getattr(t, name)


s, e, f, g, at_x, at_y, executable = map(of, ("s", "e", "f", "g", "at_x", "at_y", "exec"))


def address(t: Things) -> int:
    """Return where the page-locked array lies."""
    return int(t.host.ctypes.data)


def managed_address(t: Things) -> int:
    """Return where the managed array lies."""
    return int(t.managed.ctypes.data)


CALLS: dict[str, Wrapper] = {
    "launch": Wrapper(
        bare("cuLaunchKernel", f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, of("extra")),
        lambda t: partial(t.kernel[GRID, BLOCK, 0, t.stream], *t.arguments),
    ),
    "cooperative launch": Wrapper(
        bare("cuLaunchKernelEx", things.launch_config, f, 0, of("extra")),
        lambda t: partial(t.kernel.launch(GRID, BLOCK, 0, t.stream, cooperative=True), *t.arguments),
    ),
    # Events and streams
    "event record": Wrapper(bare("cuEventRecord", e, s), lambda t: partial(t.event.record, t.stream)),
    "event query": Wrapper(bare("cuEventQuery", e), getter(of("event"), "done")),
    "event synchronize": Wrapper(bare("cuEventSynchronize", e), lambda t: t.event.synchronize),
    "time between events": Wrapper(
        bare("cuEventElapsedTime", lambda t: driver.CUevent(t.begin.handle), e), lambda t: lambda: t.event - t.begin
    ),
    "event made and closed": Wrapper(
        made_and_dropped("cuEventCreate", "cuEventDestroy", 0), closed(lambda t: cuda.Event)
    ),
    "stream made and closed": Wrapper(
        made_and_dropped("cuStreamCreateWithPriority", "cuStreamDestroy", 1, 0),
        closed(lambda t: partial(cuda.Stream, non_blocking=True)),
    ),
    "stream query": Wrapper(bare("cuStreamQuery", s), getter(of("stream"), "done")),
    "stream synchronize": Wrapper(bare("cuStreamSynchronize", s), lambda t: t.stream.synchronize),
    "stream priority": Wrapper(bare("cuStreamGetPriority", s), getter(of("stream"), "priority")),
    "stream is capturing": Wrapper(bare("cuStreamIsCapturing", s), getter(of("stream"), "is_capturing")),
    "stream borrowed": Wrapper(bare("cuStreamGetDevice", s), lambda t: partial(cuda.Stream.borrow, t.stream.handle)),
    "wait for an event": Wrapper(bare("cuStreamWaitEvent", s, e, 0), lambda t: partial(t.stream.wait, t.event)),
    "access policy": Wrapper(things.bare_policy, things.policy),
    # Memory
    "allocate and free 1 MiB": Wrapper(things.bare_allocation, things.allocation),
    "allocate from a pool and free 1 MiB": Wrapper(
        things.bare_pool_allocation, closed(lambda t: partial(cuda.empty, MIB, np.uint8, stream=t.stream, pool=t.pool))
    ),
    "pitched memory": Wrapper(
        made_and_dropped("cuMemAllocPitch", "cuMemFree", 256, 64, 4),
        closed(lambda t: partial(cuda.empty_pitched, (64, 64), np.float32)),
    ),
    "page-locked memory": Wrapper(
        made_and_dropped("cuMemHostAlloc", "cuMemFreeHost", MIB, 1), lambda t: partial(cuda.pinned_empty, MIB, np.uint8)
    ),
    "managed memory": Wrapper(
        made_and_dropped("cuMemAllocManaged", "cuMemFree", MIB, 1),
        lambda t: partial(cuda.managed_empty, MIB, np.uint8),
    ),
    "register host memory": Wrapper(things.bare_register, things.register),
    "device address of host memory": Wrapper(
        bare("cuMemHostGetDevicePointer", address, 0), lambda t: partial(cuda.device_pointer, t.host)
    ),
    "advise": Wrapper(
        bare(
            "cuMemAdvise", managed_address, 4 * SIZE, driver.CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY, things.location
        ),
        lambda t: partial(cuda.advise, t.managed, "set_read_mostly"),
    ),
    "prefetch": Wrapper(
        bare("cuMemPrefetchAsync", managed_address, 4 * SIZE, things.location, 0, s),
        lambda t: partial(cuda.prefetch, t.managed, stream=t.stream),
    ),
    "managed attributes": Wrapper(
        things.bare_managed_attributes, lambda t: partial(cuda.managed_attributes, t.managed)
    ),
    "memory info": Wrapper(bare("cuMemGetInfo"), getter(of("device"), "memory_info")),
    "pointer attributes": Wrapper(
        bare("cuPointerGetAttribute", driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at_x),
        lambda t: partial(cuda.pointer_attributes, t.x),
    ),
    "pool made and closed": Wrapper(
        made_and_dropped("cuMemPoolCreate", "cuMemPoolDestroy", things.pool_properties),
        closed(lambda t: cuda.MemoryPool),
    ),
    "pool trim": Wrapper(
        bare("cuMemPoolTrimTo", lambda t: driver.CUmemoryPool(t.pool.handle), MIB), lambda t: partial(t.pool.trim, MIB)
    ),
    "pool use": Wrapper(
        bare(
            "cuMemPoolGetAttribute",
            lambda t: driver.CUmemoryPool(t.pool.handle),
            driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        ),
        getter(of("pool"), "used"),
    ),
    # Copies and fills
    "memset 4 KiB": Wrapper(
        bare("cuMemsetD32Async", at_x, 0, SIZE, s), lambda t: partial(cuda.memset, t.x, 0, stream=t.stream)
    ),
    "memset of a pitched array": Wrapper(
        bare(
            "cuMemsetD2D32Async", lambda t: driver.CUdeviceptr(t.plane.pointer), lambda t: t.plane.pitch, 0, 64, 64, s
        ),
        lambda t: partial(cuda.memset, t.plane, 0, stream=t.stream),
    ),
    "upload 4 KiB": Wrapper(
        bare("cuMemcpyHtoDAsync", at_x, address, 4 * SIZE, s),
        lambda t: partial(cuda.memcpy, t.x, t.host, stream=t.stream),
    ),
    "download 4 KiB": Wrapper(
        bare("cuMemcpyDtoHAsync", address, at_x, 4 * SIZE, s),
        lambda t: partial(cuda.memcpy, t.host, t.x, stream=t.stream),
    ),
    "copy 4 KiB on the device": Wrapper(
        bare("cuMemcpyDtoDAsync", at_y, at_x, 4 * SIZE, s), lambda t: partial(cuda.memcpy, t.y, t.x, stream=t.stream)
    ),
    "copy of a pitched array": Wrapper(
        bare("cuMemcpy2DAsync", things.planes, s), lambda t: partial(cuda.memcpy2d, t.other, t.plane, stream=t.stream)
    ),
    "copy of a box": Wrapper(bare("cuMemcpy3DAsync", things.boxes, s), things.copied_box),
    # CUDA arrays, textures and surfaces
    "CUDA array made and closed": Wrapper(
        made_and_dropped("cuArray3DCreate", "cuArrayDestroy", things.array_description),
        closed(lambda t: partial(cuda.CudaArray, (64, 64), np.float32)),
    ),
    "copy to a CUDA array": Wrapper(
        bare("cuMemcpy2DAsync", things.copy_to_array, s),
        lambda t: partial(cuda.memcpy, t.array, t.plane, stream=t.stream),
    ),
    "texture made and closed": Wrapper(
        made_and_dropped("cuTexObjectCreate", "cuTexObjectDestroy", things.texture_memory, things.texture_reads, None),
        closed(lambda t: partial(cuda.Texture, t.plane)),
    ),
    "surface made and closed": Wrapper(
        made_and_dropped("cuSurfObjectCreate", "cuSurfObjectDestroy", lambda t: t.array.resource),
        closed(lambda t: partial(cuda.Surface, t.array)),
    ),
    # Graphs
    "graph of 10 launches": Wrapper(
        bare("cuGraphLaunch", executable, s), lambda t: partial(t.executable.launch, t.stream)
    ),
    "capture of a launch": Wrapper(things.bare_capture, things.capture),
    "graph instantiated and closed": Wrapper(
        made_and_dropped("cuGraphInstantiate", "cuGraphExecDestroy", g, 0), closed(lambda t: t.graph.instantiate)
    ),
    "graph upload": Wrapper(bare("cuGraphUpload", executable, s), lambda t: partial(t.executable.upload, t.stream)),
    "graph update": Wrapper(bare("cuGraphExecUpdate", executable, g), lambda t: partial(t.executable.update, t.graph)),
    "graph's nodes": Wrapper(bare("cuGraphGetNodes", g, LAUNCHES), getter(of("graph"), "nodes")),
    "node's kind": Wrapper(bare("cuGraphNodeGetType", lambda t: t.node.handle), getter(of("node"), "kind")),
    "node's dependencies": Wrapper(
        bare("cuGraphNodeGetDependencies", lambda t: t.node.handle, 1), getter(of("node"), "dependencies")
    ),
    "node's dependents": Wrapper(
        bare("cuGraphNodeGetDependentNodes", lambda t: t.node.handle, 1), getter(of("node"), "dependents")
    ),
    "graph's edges": Wrapper(bare("cuGraphGetEdges", g, LAUNCHES), getter(of("graph"), "edges")),
    "node enabled": Wrapper(
        bare("cuGraphNodeSetEnabled", executable, lambda t: t.node.handle, 1),
        lambda t: partial(t.executable.set_enabled, t.node, True),
    ),
    "node is enabled": Wrapper(
        bare("cuGraphNodeGetEnabled", executable, lambda t: t.node.handle),
        lambda t: partial(t.executable.is_enabled, t.node),
    ),
    "node's launch changed": Wrapper(
        bare("cuGraphExecKernelNodeSetParams", executable, lambda t: t.node.handle, things.kernel_node),
        lambda t: partial(t.executable.set_node, t.node, t.kernel[GRID, BLOCK].bind(*t.arguments)),
    ),
    # Devices
    "driver version": Wrapper(bare("cuDriverGetVersion"), lambda t: cuda.driver_version),
    "devices": Wrapper(bare("cuDeviceGetCount"), lambda t: cuda.devices),
    "device made current": Wrapper(things.bare_current, things.current),
    "current device": Wrapper(bare("cuCtxGetDevice"), lambda t: cuda.current_device),
    "device attribute": Wrapper(
        bare(
            "cuDeviceGetAttribute", driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE, lambda t: t.device.handle
        ),
        lambda t: partial(t.device.attribute, "warp_size"),
    ),
    "device synchronize": Wrapper(bare("cuCtxSynchronize"), lambda t: t.device.synchronize),
    "device limit": Wrapper(
        bare("cuCtxGetLimit", driver.CUlimit.CU_LIMIT_STACK_SIZE), lambda t: lambda: t.device.limits.stack_size
    ),
    "device's pool": Wrapper(
        bare("cuDeviceGetMemPool", lambda t: t.device.handle), getter(of("device"), "memory_pool")
    ),
    "persisting L2 reset": Wrapper(bare("cuCtxResetPersistingL2Cache"), lambda t: t.device.reset_persisting_l2),
    # Modules and kernels
    "module loaded and closed": Wrapper(
        made_and_dropped("cuModuleLoadData", "cuModuleUnload", of("image")),
        closed(lambda t: partial(cuda.load, t.image)),
    ),
    "kernel by name": Wrapper(
        bare("cuModuleGetFunction", lambda t: t.module.handle, b"five"), lambda t: partial(t.module.__getitem__, "five")
    ),
    "symbol by name": Wrapper(
        bare("cuModuleGetGlobal", lambda t: t.module.handle, b"counter"), lambda t: partial(t.module.symbol, "counter")
    ),
    "kernel's attributes": Wrapper(
        bare("cuFuncGetAttribute", driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, f),
        getter(of("kernel"), "attributes"),
    ),
    "kernel's carveout": Wrapper(
        bare(
            "cuFuncSetAttribute",
            f,
            driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            50,
        ),
        lambda t: partial(setattr, t.kernel, "carveout", 50),
    ),
    "occupancy": Wrapper(
        bare("cuOccupancyMaxActiveBlocksPerMultiprocessor", f, BLOCK, 0), lambda t: partial(t.kernel.occupancy, BLOCK)
    ),
    "suggested block": Wrapper(
        bare("cuOccupancyMaxPotentialBlockSize", f, 0, 0, 0), lambda t: t.kernel.suggested_block
    ),
    "active clusters": Wrapper(
        bare("cuOccupancyMaxActiveClusters", f, things.cluster_config),
        lambda t: partial(t.kernel.max_active_clusters, BLOCK),
    ),
    "profiler started and stopped": Wrapper(things.bare_profiler, things.profiler),
}

# Functions of the driver behind a row of docs/names.md none of which is called above, and why.
UNTIMED = {
    "cuGetErrorName": "only a failure asks for it",
    "cuDevicePrimaryCtxRetain": "once in a process",
    "cuDevicePrimaryCtxReset": "the simulator alone has it",
    "cuDeviceGetPCIBusId": "one of many properties that are read together, once",
    "cuDeviceCanAccessPeer": "needs two devices",
    "cuCtxEnablePeerAccess": "needs two devices",
    "cuCtxDisablePeerAccess": "needs two devices",
    "cuMemcpyPeer": "needs two devices",
    "cuCtxGetStreamPriorityRange": "part of making a stream",
    "cuArrayGetDescriptor": "our object knows it without a call",
    "cuMemcpyAtoD": "timed as the copy to a CUDA array, which cuMemcpy2DAsync makes",
    "cuTexObjectGetResourceDesc": "our object knows it without a call",
    "cuSurfObjectGetResourceDesc": "our object knows it without a call",
    "cuIpcGetMemHandle": "needs two processes",
    "cuIpcOpenMemHandle": "needs two processes",
    "cuIpcCloseMemHandle": "needs two processes",
    "cuIpcGetEventHandle": "needs two processes",
    "cuIpcOpenEventHandle": "needs two processes",
    "cuLaunchHostFunc": "its function runs in a thread that takes turns with the one that measures",
    "cuLinkCreate": "nvJitLink does it, in milliseconds",
    "cuLibrary*": "makes the calls of a module, at the first use on each device",
    "cuLaunchCooperativeKernel": "launched by cuLaunchKernelEx",
    "cuFuncGetParamCount": "once for each kernel",
    "cuGraphAddChildGraphNode": "one of the calls of a capture",
    "cuGraphConditionalHandleCreate": "one of the calls of a capture",
    "cuGraphExecChildGraphNodeSetParams": "as a launch that is changed, with another call of the driver",
    "cuGraphExecMemcpyNodeSetParams": "as a launch that is changed, with another call of the driver",
    "cuGraphExecMemsetNodeSetParams": "as a launch that is changed, with another call of the driver",
    "cuGraphDebugDotPrint": "writes a text to be read",
    "cuThreadExchangeStreamCaptureMode": "an argument of the capture, and no call",
}

LAUNCHES_BY = ("checked", "checked, with kernel[...] each time", "bound")


def launches(t: Things) -> dict[str, Call]:
    """Return the ways to launch, of which the table above has the checked one."""
    kernel, stream = t.kernel, t.stream
    launch = kernel[GRID, BLOCK, 0, stream]

    def whole(a: float, x: Any, y: Any, z: Any, n: int) -> None:
        kernel[GRID, BLOCK, 0, stream](a, x, y, z, n)

    ways = (partial(launch, *t.arguments), partial(whole, *t.arguments), launch.bind(*t.arguments))
    return dict(zip(LAUNCHES_BY, ways, strict=True))
