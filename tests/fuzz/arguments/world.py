"""The world of one fuzzed process: good arrays, streams, graphs and modules, and whether they kept what they held."""

from __future__ import annotations

from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.compilation.compiler import compile_image
from cudart_py.driver import seam

__all__ = ["SOURCE", "World"]

SOURCE = r"""
extern "C" __global__ void touch_nothing(float a, const float *x, float *y, unsigned int n) {}
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
__device__ float numbers[4];
extern "C" __global__ void read(float *out) { out[0] = numbers[0]; }
"""


class World:
    """Good things to call with, new ones for each call; what they hold must be the same after a call that raised."""

    def __init__(self) -> None:
        self.device = cuda.Device(0)
        self.device.set_current()
        self.module = cuda.compile(SOURCE)
        self.compiled = compile_image(SOURCE, arch=self.device.compute_capability)
        self.kernel = self.module["touch_nothing"]
        self.written: list[tuple[Any, np.ndarray[Any, Any]]] = []

    def host(self, shape: Any = (2, 3), dtype: Any = np.float32) -> Any:
        """Return a NumPy array, which is looked at again."""
        array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
        self.written.append((array, array.copy()))
        return array

    def array(self, shape: Any = (2, 3), dtype: Any = np.float32) -> cuda.DeviceArray:
        """Return a device array, which is looked at again."""
        host = self.host(shape, dtype)
        array = cuda.to_device(host)
        self.written.append((array, host))
        return array

    def pitched(self) -> cuda.DeviceArray:
        """Return an array of padded rows."""
        return cuda.empty_pitched((4, 8), np.float32).copy_from(np.zeros((4, 8), np.float32))

    def cuda_array(self) -> cuda.CudaArray:
        """Return an array in the layout for textures, whose elements are zeros."""
        return cuda.CudaArray((2, 3), np.float32, surface=True).copy_from(np.zeros((2, 3), np.float32))

    def managed(self) -> Any:
        """Return an array of managed memory."""
        return cuda.managed_empty(8, np.float32)

    def event(self) -> cuda.Event:
        """Return an event that was recorded and reached."""
        event = cuda.Event().record()
        event.synchronize()
        return event

    def graph(self) -> cuda.Graph:
        """Return a graph of one launch."""
        with cuda.Stream() as stream:
            array = cuda.zeros(3, np.float32)
            self.device.synchronize()
            with stream.capture() as graph:
                self.kernel[1, 1, 0, stream](1.0, array, array, 3)
        return graph

    def condition(self) -> cuda.Condition:
        """Return the condition of a graph whose capture has ended."""
        with cuda.Stream() as stream, stream.capture():
            return stream.condition()

    def launch(self) -> cuda.Launch:
        """Return a launch of the kernel that does nothing."""
        return self.kernel[1, 32]

    def image(self) -> bytes:
        """Return an image that this driver loads."""
        return self.compiled.cubin if seam.image_kind() == "cubin" else self.compiled.ptx

    def sparse(self) -> libraries.SparseMatrix:
        """Return a sparse matrix of 2 rows and 3 columns."""
        offsets, indices = self.array(3, np.int32), self.array(2, np.int32)
        return libraries.SparseMatrix("csr", (2, 3), self.array(2), indices, offsets)

    def sparse_square(self) -> libraries.SparseMatrix:
        """Return a sparse matrix of 3 rows and columns."""
        offsets, indices = self.array(4, np.int32), self.array(3, np.int32)
        return libraries.SparseMatrix("csr", (3, 3), self.array(3), indices, offsets)

    def square(self) -> cuda.DeviceArray:
        """Return a positive definite array of 3 rows and columns."""
        host = np.array([[4, 1, 0], [1, 5, 1], [0, 1, 6]], np.float32)
        self.written.append((cuda.to_device(host), host))
        return self.written[-1][0]

    def closed(self, thing: Any) -> Any:
        """Close something, of which nothing must be the same then."""
        self.written.clear()
        thing.close()
        return thing

    def unchanged(self) -> bool:
        """Tell whether all arrays have what was written to them, and forget them."""
        written, self.written = self.written, []
        return all(
            np.array_equal(array if isinstance(array, np.ndarray) else array.to_host(), host)
            for array, host in written
            if not getattr(array, "closed", False)
        )

    def works(self) -> bool:
        """Tell whether a kernel still computes."""
        x, y = cuda.full(64, 3.0, np.float32), cuda.full(64, 1.0, np.float32)
        self.module["saxpy"][2, 32](2.0, x, y, 64)
        return bool((y.to_host() == 7).all())
