"""What the calls of `host_calls` work on, and those of the driver's calls that are more than one line."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cuda.bindings import driver

import cudart_py as cuda
from cudart_py.driver import seam

SOURCE = """
__device__ int counter;
extern "C" __global__ void five(float a, const float *x, const float *y, float *z, unsigned n) {}
"""
GRID, BLOCK, SIZE = 4, 256, 1024
MIB = 1 << 20
LAUNCHES = 10
Call = Callable[[], object]


class Things:
    """What the calls work on, and the driver's own objects for it, which the bindings take fastest."""

    def __init__(self, device: cuda.Device) -> None:
        self.device = device
        self.stream = cuda.Stream(non_blocking=True)
        self.module = cuda.compile(SOURCE)
        self.kernel = self.module["five"]
        self.x, self.y, self.z = (cuda.zeros(SIZE, np.float32, stream=self.stream) for _ in range(3))
        self.plane, self.other = (cuda.empty_pitched((64, 64), np.float32) for _ in range(2))
        self.box, self.other_box = (cuda.empty((4, 16, 64), np.float32) for _ in range(2))
        self.array = cuda.CudaArray((64, 64), np.float32, surface=True)
        self.host = cuda.pinned_empty(SIZE, np.float32, mapped=True)
        self.managed = cuda.managed_empty(SIZE, np.float32)
        self.pool = cuda.MemoryPool()
        self.begin, self.event = cuda.Event(), cuda.Event()
        self.begin.record(self.stream)
        self.event.record(self.stream)
        self.stream.synchronize()
        self.graph = self.captured()
        self.executable = self.graph.instantiate()
        self.executable.upload(self.stream)
        self.node = self.graph.nodes[0]
        self.image = self.module.cubin if seam.image_kind() == "cubin" else self.module.ptx
        # The driver's own.
        self.s, self.e = driver.CUstream(self.stream.handle), driver.CUevent(self.event.handle)
        self.f, self.g = driver.CUfunction(self.kernel.handle), driver.CUgraph(self.graph.handle)
        self.exec = driver.CUgraphExec(self.executable.handle)
        self.at_x, self.at_y = driver.CUdeviceptr(self.x.pointer), driver.CUdeviceptr(self.y.pointer)
        self.arguments = (2.0, self.x, self.y, self.z, SIZE)
        # The parameters, and the list that says where they are: CU_LAUNCH_PARAM_BUFFER_POINTER 1, _SIZE 2, _END 0.
        self.layout = struct.Struct("<f4xQQQI")
        self.values = (2.0, self.x.pointer, self.y.pointer, self.z.pointer, SIZE)
        self.packed, self._size = ctypes.create_string_buffer(self.layout.size), ctypes.c_size_t(self.layout.size)
        self.layout.pack_into(self.packed, 0, *self.values)
        places = ctypes.addressof(self.packed), ctypes.addressof(self._size)
        self._extra = (ctypes.c_uint64 * 5)(1, places[0], 2, places[1], 0)
        self.extra = ctypes.addressof(self._extra)

    def captured(self) -> cuda.Graph:
        """Return a graph of ten launches."""
        with self.stream.capture() as graph:
            for _ in range(LAUNCHES):
                self.kernel[GRID, BLOCK, 0, self.stream](2.0, self.x, self.y, self.z, SIZE)
        return graph


def bare_allocation(t: Things) -> Call:
    """Allocate and free."""
    make, drop, stream = seam.raw.cuMemAllocAsync, seam.raw.cuMemFreeAsync, t.s
    return lambda: drop(make(MIB, stream)[1], stream)


def allocation(t: Things) -> Call:
    """Allocate and free; the names are looked up beforehand, as beside the bare calls."""
    empty, uint8, stream = cuda.empty, np.uint8, t.stream

    def call() -> None:
        empty(MIB, uint8, stream=stream).close()

    return call


def bare_pool_allocation(t: Things) -> Call:
    """Allocate from a pool and free."""
    make, drop, stream = seam.raw.cuMemAllocFromPoolAsync, seam.raw.cuMemFreeAsync, t.s
    pool = driver.CUmemoryPool(t.pool.handle)
    return lambda: drop(make(MIB, pool, stream)[1], stream)


def bare_current(t: Things) -> Call:
    """Make a context current and go back."""
    push, pop, context = seam.raw.cuCtxPushCurrent, seam.raw.cuCtxPopCurrent, t.device.context
    return lambda: (push(context), pop())


def current(t: Things) -> Call:
    """Make a device current and go back."""

    def call() -> None:
        with t.device:
            pass

    return call


def bare_capture(t: Things) -> Call:
    """Capture one launch, and drop the graph."""
    begin, launch, end, drop = (
        getattr(seam.raw, name)
        for name in ("cuStreamBeginCapture", "cuLaunchKernel", "cuStreamEndCapture", "cuGraphDestroy")
    )
    mode, f, s, where = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, t.f, t.s, t.extra

    def call() -> Any:
        begin(s, mode)
        launch(f, GRID, 1, 1, BLOCK, 1, 1, 0, s, 0, where)
        return drop(end(s)[1])

    return call


def capture(t: Things) -> Call:
    """Capture one launch, and close the graph."""
    launch, stream = t.kernel[GRID, BLOCK, 0, t.stream].bind(*t.arguments), t.stream

    def call() -> None:
        with stream.capture() as graph:
            launch()
        graph.close()

    return call


def planes(t: Things) -> Any:
    """Return the copy of a 2-D array, as the driver takes it."""
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.srcDevice, copy.dstDevice = t.plane.pointer, t.other.pointer
    copy.srcPitch, copy.dstPitch = t.plane.pitch, t.other.pitch
    copy.WidthInBytes, copy.Height = 256, 64
    return copy


def boxes(t: Things) -> Any:
    """Return the copy of a 3-D array, as the driver takes it."""
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.srcDevice, copy.dstDevice = t.box.pointer, t.other_box.pointer
    copy.srcPitch = copy.dstPitch = 256
    copy.srcHeight = copy.dstHeight = 16
    copy.WidthInBytes, copy.Height, copy.Depth = 128, 16, 4
    return copy


def copied_box(t: Things) -> Call:
    """Copy a box of one array into a box of another."""
    source, target = t.box[:, :, :32], t.other_box[:, :, :32]
    return partial(cuda.memcpy3d, target, source, stream=t.stream)


def launch_config(t: Things) -> Any:
    """Return a cooperative launch, as the driver takes it."""
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    attribute.value.cooperative = 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = GRID, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = BLOCK, 1, 1
    config.hStream, config.attrs, config.numAttrs = t.s, [attribute], 1
    return config


def bare_policy(t: Things) -> Call:
    """Set an access policy, and what was there before."""
    ask, set_it = seam.raw.cuStreamGetAttribute, seam.raw.cuStreamSetAttribute
    kind = driver.CUstreamAttrID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    value = driver.CUstreamAttrValue()
    value.accessPolicyWindow.base_ptr, value.accessPolicyWindow.num_bytes = t.x.pointer, t.x.nbytes
    value.accessPolicyWindow.hitRatio = 1.0
    value.accessPolicyWindow.hitProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    value.accessPolicyWindow.missProp = driver.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    s = t.s

    def call() -> Any:
        before = ask(s, kind)[1]
        return set_it(s, kind, value), set_it(s, kind, before)

    return call


def policy(t: Things) -> Call:
    """Set an access policy for a block of the program."""

    def call() -> None:
        with t.stream.access_policy(t.x):
            pass

    return call


def kernel_node(t: Things) -> Any:
    """Return what a kernel's node does, as the driver takes it."""
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = t.f
    params.gridDimX, params.gridDimY, params.gridDimZ = GRID, 1, 1
    params.blockDimX, params.blockDimY, params.blockDimZ = BLOCK, 1, 1
    params.extra = t.extra
    return params


def location(t: Things) -> Any:
    """Return where managed memory is, as the driver takes it."""
    where = driver.CUmemLocation()
    where.type, where.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, t.device.ordinal
    return where


def pool_properties(t: Things) -> Any:
    """Return the properties of a pool of the device's memory."""
    properties = driver.CUmemPoolProps()
    properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location = location(t)
    return properties


def array_description(t: Things) -> Any:
    """Return a CUDA array, as the driver takes it."""
    description = driver.CUDA_ARRAY3D_DESCRIPTOR()
    description.Width, description.Height = 64, 64
    description.Format, description.NumChannels = driver.CUarray_format.CU_AD_FORMAT_FLOAT, 1
    return description


def copy_to_array(t: Things) -> Any:
    """Return a copy to a CUDA array, as the driver takes it."""
    copy = planes(t)
    copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
    copy.dstArray = t.array.handle
    return copy


def texture_memory(t: Things) -> Any:
    """Return the memory of a texture, as the driver takes it."""
    memory = driver.CUDA_RESOURCE_DESC()
    memory.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    plane = memory.res.pitch2D
    plane.devPtr, plane.pitchInBytes = driver.CUdeviceptr(t.plane.pointer), t.plane.pitch
    plane.format, plane.numChannels = driver.CUarray_format.CU_AD_FORMAT_FLOAT, 1
    plane.width = plane.height = 64
    return memory


def texture_reads(t: Things) -> Any:
    """Return how a texture is read, as the driver takes it."""
    reads = driver.CUDA_TEXTURE_DESC()
    reads.addressMode = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
    reads.filterMode = driver.CUfilter_mode.CU_TR_FILTER_MODE_POINT
    return reads


def cluster_config(t: Things) -> Any:
    """Return a launch of clusters of one block, as the driver takes it."""
    config = launch_config(t)
    config.attrs, config.numAttrs = [], 0
    return config


def bare_register(t: Things) -> Call:
    """Page-lock memory, and let it go."""
    t.pageable = np.zeros(MIB, np.uint8)
    register_it, unregister = seam.raw.cuMemHostRegister, seam.raw.cuMemHostUnregister
    start = t.pageable.ctypes.data

    def call() -> Any:
        return register_it(start, MIB, 3), unregister(start)

    return call


def register(t: Things) -> Call:
    """Page-lock an array, and let it go."""
    pageable = np.zeros(MIB, np.uint8)
    return lambda: cuda.register_host(pageable).close()


def bare_managed_attributes(t: Things) -> Call:
    """Ask for four attributes of managed memory."""
    ask, start = seam.raw.cuMemRangeGetAttribute, t.managed.ctypes.data
    kinds = driver.CUmem_range_attribute
    wanted = [
        kinds.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
        kinds.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
        kinds.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
        kinds.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
    ]
    return lambda: [ask(4, kind, start, 4 * SIZE) for kind in wanted]


def bare_profiler(t: Things) -> Call:
    """Start and stop a profiler's recording."""
    start, stop = seam.raw.cuProfilerStart, seam.raw.cuProfilerStop
    return lambda: (start(), stop())


def profiler(t: Things) -> Call:
    """Start and stop a profiler's recording."""
    return lambda: (cuda.profiler_start(), cuda.profiler_stop())
