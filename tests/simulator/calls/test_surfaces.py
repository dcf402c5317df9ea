"""Surface objects, and what the simulator says of accesses that go wrong."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID, function, launch
from tests.simulator.support import Status, compile_ptx, ok, upload

SOURCE = r"""
extern "C" __global__ void write(unsigned long long surface, int x, int y) {
    surf2Dwrite(1.0f, surface, x + (int)threadIdx.x, y);
}
extern "C" __global__ void layer(unsigned long long surface, int x, int y) {
    surf2DLayeredwrite(1.0f, surface, x, 0, y + threadIdx.x);
}
"""
RESOURCE = bindings.CUresourcetype


@pytest.fixture
def kernels(context: Any) -> Any:
    return ok(driver.cuModuleLoadData(compile_ptx(SOURCE)))


def surface_of(*extents: int, flags: int = bindings.CUDA_ARRAY3D_SURFACE_LDST) -> tuple[Any, Any]:
    """Return an array of float32 and the result of making a surface over it."""
    description = bindings.CUDA_ARRAY3D_DESCRIPTOR()
    description.Width, description.Height, description.Depth = (*extents, 0, 0)[:3]
    description.Format, description.NumChannels = bindings.CUarray_format.CU_AD_FORMAT_FLOAT, 1
    description.Flags = flags
    array = ok(driver.cuArray3DCreate(description))
    resource = bindings.CUDA_RESOURCE_DESC()
    resource.resType, resource.res.array.hArray = RESOURCE.CU_RESOURCE_TYPE_ARRAY, array
    return array, driver.cuSurfObjectCreate(resource)


def report_of(module: Any, kernel: str, surface: Any, x: int, y: int) -> tuple[Any, str]:
    """Return the status of a launch, and its report."""
    arguments = ctypes.c_ulonglong(int(surface)), ctypes.c_int(x), ctypes.c_int(y)
    launch(function(module, kernel), *arguments, block=(2, 1, 1))
    (status,) = driver.cuCtxSynchronize()
    return status, driver.take_report() or ""


def test_an_access_outside_names_the_coordinates_and_the_thread(kernels: Any) -> None:
    layers = bindings.CUDA_ARRAY3D_SURFACE_LDST | bindings.CUDA_ARRAY3D_LAYERED
    status, report = report_of(kernels, "layer", ok(surface_of(4, 4, 3, flags=layers)[1]), 8, 2)
    assert status == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "outside of a surface, at layer = 3, x = 8, y = 0; block (0, 0, 0), thread (1, 0, 0)" in report


def test_x_that_counts_elements_is_found(kernels: Any) -> None:
    status, report = report_of(kernels, "write", ok(surface_of(4, 4)[1]), 0, 0)
    assert status == Status.CUDA_ERROR_MISALIGNED_ADDRESS
    assert "an access of 4 bytes to a surface, at x = 1, y = 0: x counts bytes" in report


def test_an_access_of_other_dimensions_is_named(kernels: Any) -> None:
    status, report = report_of(kernels, "write", ok(surface_of(8)[1]), 0, 0)
    assert status == Status.CUDA_ERROR_NOT_SUPPORTED
    assert "an access to a surface of two dimensions, and this one has one dimension" in report


@pytest.mark.parametrize("end", ["array", "surface"])
def test_what_is_gone_is_a_fault(kernels: Any, end: str) -> None:
    array, result = surface_of(4, 4)
    surface = ok(result)
    ok(driver.cuArrayDestroy(array) if end == "array" else driver.cuSurfObjectDestroy(surface))
    status, report = report_of(kernels, "write", surface, 0, 0)
    assert status == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert ("the memory of surface" if end == "array" else "is no surface object") in report


def test_only_arrays_that_were_made_for_it_have_surfaces(context: Any) -> None:
    assert surface_of(4, 4, flags=0)[1] == (INVALID, None)
    surface = ok(surface_of(4, 4)[1])
    ok(driver.cuSurfObjectDestroy(surface))
    assert driver.cuSurfObjectDestroy(surface) == (INVALID,)
    resource = bindings.CUDA_RESOURCE_DESC()
    resource.resType = RESOURCE.CU_RESOURCE_TYPE_LINEAR
    resource.res.linear.devPtr = bindings.CUdeviceptr(upload(np.zeros(4, np.float32)))
    assert driver.cuSurfObjectCreate(resource) == (INVALID, None)
