"""The objects of one fuzzing process: valid arrays, streams, graphs and modules, and checks of their contents."""

from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.compilation.compiler import compile_image
from cudart_py.driver import backend

NVVM_IR = """
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64\
-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
define void @nothing() { ret void }
!nvvm.annotations = !{!0}
!0 = !{void ()* @nothing, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0}
"""
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
    """A factory of valid objects, new ones for each call; a call that raises must not change their contents."""

    def __init__(self) -> None:
        self.device = cuda.Device(0)
        self.device.set_current()
        self.module = cuda.compile(SOURCE)
        self.compiled = compile_image(SOURCE, arch=self.device.compute_capability)
        # An image that this driver loads.
        self.image = self.compiled.cubin if backend.chosen().image_kind == "cubin" else self.compiled.ptx
        self.kernel = self.module["touch_nothing"]
        self.launch = self.kernel[1, 32]
        self.written: list[tuple[Any, np.ndarray[Any, Any]]] = []

    def watch(self, array: Any, host: Any) -> Any:
        """Return an array, and remember that it must still equal the host array later."""
        self.written.append((array, host))
        return array

    def host(self, shape: Any = (2, 3), dtype: Any = np.float32) -> Any:
        array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
        return self.watch(array, array.copy())

    def array(self, shape: Any = (2, 3), dtype: Any = np.float32) -> cuda.DeviceArray:
        host = self.host(shape, dtype)
        return self.watch(cuda.to_device(host), host)

    def pinned_word(self) -> Any:
        """Return a pinned word, as memory operations need it; memory of pools is refused."""
        word = cuda.pinned_empty(1, np.uint32)
        word[0] = 2**31 - 1
        return word

    def square(self) -> cuda.DeviceArray:
        """Return a positive definite 3 x 3 matrix."""
        host = np.array([[4, 1, 0], [1, 5, 1], [0, 1, 6]], np.float32)
        return self.watch(cuda.to_device(host), host)

    def off_diagonal(self) -> cuda.DeviceArray:
        """Return lower or upper diagonals of three tridiagonal systems; elements outside the matrices are zero."""
        host = np.array([[0, 1, 0]] * 3, np.float32)
        return self.watch(cuda.to_device(host), host)

    def pitched(self) -> cuda.DeviceArray:
        return cuda.empty_pitched((4, 8), np.float32).copy_from(np.zeros((4, 8), np.float32))

    def cuda_array(self) -> cuda.textures.CudaArray:
        return cuda.textures.CudaArray((2, 3), np.float32, surface=True).copy_from(np.zeros((2, 3), np.float32))

    def event(self) -> cuda.Event:
        """Return an event that was recorded and is complete."""
        event = cuda.Event().record()
        event.synchronize()
        return event

    def graph(self) -> cuda.graphs.Graph:
        """Return a graph of one launch."""
        with cuda.Stream() as stream:
            array = cuda.zeros(3, np.float32)
            self.device.synchronize()
            with stream.capture() as graph:
                self.kernel[1, 1, 0, stream](1.0, array, array, 3)
        return graph

    def condition(self) -> cuda.graphs.Condition:
        """Return the condition of a graph whose capture has ended."""
        with cuda.Stream() as stream, stream.capture():
            return stream.condition()

    def bound(self) -> cuda.BoundLaunch:
        return self.launch.bind(1.0, self.array(3), self.array(3), 3)

    def sparse(self, rows: int = 2) -> libraries.SparseMatrix:
        """Return a sparse matrix of `rows` rows, with one element each, and 3 columns."""
        offsets, indices = self.array(rows + 1, np.int32), self.array(rows, np.int32)
        return libraries.SparseMatrix("csr", (rows, 3), self.array(rows), indices, offsets)

    def sparse_vector(self) -> libraries.SparseVector:
        return libraries.SparseVector(8, self.array(2, np.int32), self.array(2))

    def closed(self, thing: Any) -> Any:
        """Close an object and return it; forget the expected contents, which are gone."""
        self.written.clear()
        thing.close()
        return thing

    def unchanged(self) -> bool:
        """Check whether all watched arrays have kept their contents, and forget them."""
        written, self.written = self.written, []
        return all(
            np.array_equal(array if isinstance(array, np.ndarray) else array.to_host(), host)
            for array, host in written
            if not getattr(array, "closed", False)
        )

    def works(self) -> bool:
        """Check whether a kernel still computes correctly."""
        x, y = cuda.full(64, 3.0, np.float32), cuda.full(64, 1.0, np.float32)
        self.module["saxpy"][2, 32](2.0, x, y, 64)
        return bool((y.to_host() == 7).all())
