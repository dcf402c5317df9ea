"""Objects that the calls in `host_calls` use, and structures for the driver's functions."""

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver

import cudart_py as cuda
from cudart_py.driver import backend

SOURCE = """
__device__ int counter;
extern "C" __global__ void five(float a, const float *x, const float *y, float *z, unsigned n) {}
"""
GRID, BLOCK, SIZE = 4, 256, 1024
MIB = 1 << 20
SHAPE = dict.fromkeys(("gridDimY", "gridDimZ", "blockDimY", "blockDimZ"), 1) | {"gridDimX": GRID, "blockDimX": BLOCK}
LAUNCHES = 10
Call = Callable[[], object]


class Things:
    """The objects on which the calls operate, and their handles as bindings' types, the fastest arguments to pass."""

    def __init__(self, device: cuda.Device) -> None:
        self.device = device
        self.stream = cuda.Stream(non_blocking=True)
        self.module = cuda.compile(SOURCE)
        self.kernel = self.module["five"]
        self.x, self.y, self.z = (cuda.zeros(SIZE, np.float32, stream=self.stream) for _ in range(3))
        self.plane, self.other = (cuda.empty_pitched((64, 64), np.float32) for _ in range(2))
        self.box, self.other_box = (cuda.empty((4, 16, 64), np.float32) for _ in range(2))
        self.array = cuda.textures.CudaArray((64, 64), np.float32, surface=True)
        self.host = cuda.pinned_empty(SIZE, np.float32, mapped=True)
        self.managed = cuda.managed_empty(SIZE, np.float32)
        self.pageable = np.zeros(MIB, np.uint8)
        self.pool = cuda.MemoryPool()
        self.begin, self.event = cuda.Event(), cuda.Event()
        self.begin.record(self.stream)
        self.event.record(self.stream)
        self.stream.synchronize()
        with self.stream.capture() as self.graph:
            for _ in range(LAUNCHES):
                self.kernel[GRID, BLOCK, 0, self.stream](2.0, self.x, self.y, self.z, SIZE)
        self.executable = self.graph.instantiate()
        self.executable.upload(self.stream)
        self.node = self.graph.nodes[0]
        self.image = self.module.cubin if backend.chosen().image_kind == "cubin" else self.module.ptx
        # The bindings' objects.
        self.s, self.e = driver.CUstream(self.stream.handle), driver.CUevent(self.event.handle)
        self.f, self.g = driver.CUfunction(self.kernel.handle), driver.CUgraph(self.graph.handle)
        self.exec, self.p = driver.CUgraphExec(self.executable.handle), driver.CUmemoryPool(self.pool.handle)
        self.at_x, self.at_y = driver.CUdeviceptr(self.x.pointer), driver.CUdeviceptr(self.y.pointer)
        self.at_host, self.at_managed, self.at_pageable = (
            array.ctypes.data for array in (self.host, self.managed, self.pageable)
        )
        self.arguments = (2.0, self.x, self.y, self.z, SIZE)
        # The kernel parameters, and the `extra` list with their address and size: CU_LAUNCH_PARAM_BUFFER_POINTER is 1,
        # _SIZE is 2, and _END is 0.
        self.layout = struct.Struct("<f4xQQQI")
        self.values = (2.0, self.x.pointer, self.y.pointer, self.z.pointer, SIZE)
        self.packed, self._size = ctypes.create_string_buffer(self.layout.size), ctypes.c_size_t(self.layout.size)
        self.layout.pack_into(self.packed, 0, *self.values)
        places = ctypes.addressof(self.packed), ctypes.addressof(self._size)
        self._extra = (ctypes.c_uint64 * 5)(1, places[0], 2, places[1], 0)
        self.extra = ctypes.addressof(self._extra)


def fill(target: Any, **fields: Any) -> Any:
    """Set fields of a driver structure and return it; a dict sets the fields of a nested structure."""
    for name, value in fields.items():
        if isinstance(value, dict):
            fill(getattr(target, name), **value)
        else:
            setattr(target, name, value)
    return target


def planes(t: Things) -> Any:
    of_device = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    source = {"srcMemoryType": of_device, "srcDevice": t.plane.pointer, "srcPitch": t.plane.pitch}
    target = {"dstMemoryType": of_device, "dstDevice": t.other.pointer, "dstPitch": t.other.pitch}
    return fill(driver.CUDA_MEMCPY2D(), **source, **target, WidthInBytes=256, Height=64)


def plane_to_array(t: Things) -> Any:
    return fill(planes(t), dstMemoryType=driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, dstArray=t.array.handle)


def boxes(t: Things) -> Any:
    of_device = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    source = {"srcMemoryType": of_device, "srcDevice": t.box.pointer, "srcPitch": 256, "srcHeight": 16}
    target = {"dstMemoryType": of_device, "dstDevice": t.other_box.pointer, "dstPitch": 256, "dstHeight": 16}
    return fill(driver.CUDA_MEMCPY3D(), **source, **target, WidthInBytes=128, Height=16, Depth=4)


def launch_config(t: Things, *, cooperative: bool) -> Any:
    attribute = fill(driver.CUlaunchAttribute(), id=driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    attribute.value.cooperative = 1
    attributes = [attribute] if cooperative else []
    return fill(driver.CUlaunchConfig(), **SHAPE, hStream=t.s, attrs=attributes, numAttrs=len(attributes))


def access_policy(t: Things) -> Any:
    hit = driver.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    miss = driver.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    window = {"base_ptr": t.x.pointer, "num_bytes": t.x.nbytes, "hitRatio": 1.0, "hitProp": hit, "missProp": miss}
    return fill(driver.CUstreamAttrValue(), accessPolicyWindow=window)


def kernel_node(t: Things) -> Any:
    return fill(driver.CUDA_KERNEL_NODE_PARAMS(), func=t.f, **SHAPE, extra=t.extra)


def location(t: Things) -> Any:
    return fill(driver.CUmemLocation(), type=driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id=t.device.ordinal)


def pool_properties(t: Things) -> Any:
    pinned = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    return fill(driver.CUmemPoolProps(), allocType=pinned, location=location(t))


def array_description() -> Any:
    kind = driver.CUarray_format.CU_AD_FORMAT_FLOAT
    return fill(driver.CUDA_ARRAY3D_DESCRIPTOR(), Width=64, Height=64, Format=kind, NumChannels=1)


def texture(t: Things) -> tuple[Any, Any, None]:
    kind = driver.CUarray_format.CU_AD_FORMAT_FLOAT
    plane = {"devPtr": driver.CUdeviceptr(t.plane.pointer), "pitchInBytes": t.plane.pitch}
    plane |= {"format": kind, "numChannels": 1, "width": 64, "height": 64}
    kinds = driver.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    memory = fill(driver.CUDA_RESOURCE_DESC(), resType=kinds, res={"pitch2D": plane})
    modes = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
    point = driver.CUfilter_mode.CU_TR_FILTER_MODE_POINT
    return memory, fill(driver.CUDA_TEXTURE_DESC(), addressMode=modes, filterMode=point), None
