"""Kernels shared by the tests of modules, launches and graphs, with helpers to launch them."""

import ctypes
from typing import Any

import numpy as np
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import Status, compile_ptx, download, ok, struct

SOURCE = r"""
__constant__ int table[4] = {10, 20, 30, 40};
__device__ int counter = 5;
struct Pair { float first; double second; };

extern "C" __global__ void add(int *x, int value, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value + table[i % 4];
}
extern "C" __global__ void pairs(double *x, Pair pair, char scale) { *x = scale * (pair.first + pair.second); }
extern "C" __global__ void bump() { counter += 1; }
extern "C" __global__ void __launch_bounds__(128) bounded(int *x) { x[threadIdx.x] = 1; }
"""
INVALID = Status.CUDA_ERROR_INVALID_VALUE


def ptx() -> bytes:
    return compile_ptx(SOURCE)


def loaded(source: str = SOURCE) -> Any:
    return ok(driver.cuModuleLoadData(compile_ptx(source)))


def function(module: Any, name: str) -> Any:
    return ok(driver.cuModuleGetFunction(module, name.encode()))


def launch(kernel: Any, *parameters: Any, grid: Any = (1, 1, 1), block: Any = (1, 1, 1)) -> Any:
    """Launch a kernel with ctypes objects as parameters, and return the status."""
    pointers = (ctypes.c_void_p * max(len(parameters), 1))(*map(ctypes.addressof, parameters))
    (status,) = driver.cuLaunchKernel(kernel, *grid, *block, 0, 0, ctypes.addressof(pointers), 0)
    return status


def clusters(grid: int, cluster: int | None, threads: int = 1) -> Any:
    """Return a configuration with one-dimensional extents; the launch has no cluster attribute if `cluster` is None."""
    sizes = {f"{kind}Dim{axis}": 1 for kind in ("grid", "block") for axis in "XYZ"}
    sizes |= {"gridDimX": grid, "blockDimX": threads}
    if cluster is None:
        return struct("CUlaunchConfig", **sizes, numAttrs=0)
    dimension = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    extents = {"value__clusterDim__x": cluster, "value__clusterDim__y": 1, "value__clusterDim__z": 1}
    attribute = struct("CUlaunchAttribute", id=dimension, **extents)
    return struct("CUlaunchConfig", **sizes, attrs=[attribute], numAttrs=1)


def value_of(address: int) -> int:
    return int(download(address, 1, np.int32)[0])
