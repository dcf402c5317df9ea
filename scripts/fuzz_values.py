"""What the fuzz of arguments calls with: bad values for anything, and good ones by the parameters' names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py import _driver
from cudart_py.benchmark import Measurement, MeasureOptions
from cudart_py.compilation import compile_image
from library_tour import libraries

__all__ = ["BAD", "GOOD", "OBJECTS", "QUICK", "NastyError", "World"]

SOURCE = r"""
extern "C" __global__ void touch_nothing(float a, const float *x, float *y, unsigned int n) {}
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
__device__ float numbers[4];
extern "C" __global__ void read(float *out) { out[0] = numbers[0]; }
"""
QUICK = MeasureOptions(min_samples=1, max_samples=1, min_seconds=0, max_seconds=0, warm_up_seconds=0)


class NastyError(Exception):
    """What a hostile value's own methods raise; it may come out as it is."""


def nasty(*_: object) -> Any:
    raise NastyError


class Hostile:
    """A value whose every method raises."""

    __index__ = __int__ = __float__ = __len__ = __iter__ = __bool__ = __eq__ = __getitem__ = __array__ = nasty
    __hash__ = None  # type: ignore[assignment]  # as of a list
    __repr__ = nasty


class Plain:
    """A class, which is itself given where an object is wanted."""


class Interface:
    """An array of another library that says something wrong."""

    def __init__(self, **changes: Any) -> None:
        told = {"version": 3, "shape": (3,), "typestr": "<f4", "data": (0, False)} | changes
        self.__cuda_array_interface__: Any = {key: value for key, value in told.items() if value is not Plain}


class Listed:
    """A stream of another library that says something wrong."""

    def __init__(self, told: Any) -> None:
        self._told = told

    def __cuda_stream__(self) -> Any:
        return self._told


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

    def launch(self) -> cuda.Launch:
        """Return a launch of the kernel that does nothing."""
        return self.kernel[1, 32]

    def image(self) -> bytes:
        """Return an image that this driver loads."""
        return self.compiled.cubin if _driver.image_kind() == "cubin" else self.compiled.ptx

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


def _generate() -> Iterator[int]:
    yield 1


BAD: dict[str, Callable[[World], Any]] = {
    "None": lambda w: None,
    "True": lambda w: True,
    "np.True_": lambda w: np.True_,
    "-1": lambda w: -1,
    "0": lambda w: 0,
    "1": lambda w: 1,
    "2**40": lambda w: 2**40,
    "2**63": lambda w: 2**63,
    "2**64": lambda w: 2**64,
    "10**400": lambda w: 10**400,
    "10**5000": lambda w: 10**5000,
    "1.5": lambda w: 1.5,
    "-0.5": lambda w: -0.5,
    "nan": lambda w: float("nan"),
    "inf": lambda w: float("inf"),
    "1e300": lambda w: 1e300,
    "1+2j": lambda w: 1 + 2j,
    "int8": lambda w: np.int8(3),
    "float32": lambda w: np.float32(0.5),
    "datetime64": lambda w: np.datetime64("2020-01-01"),
    "''": lambda w: "",
    "'x'": lambda w: "x",
    "NUL": lambda w: "a\0b",
    "surrogate": lambda w: "\ud800",
    "bytes": lambda w: b"ab",
    "bytearray": lambda w: bytearray(b"ab"),
    "[]": lambda w: [],
    "()": lambda w: (),
    "{}": lambda w: {},
    "set": lambda w: {1},
    "(1, 2)": lambda w: (1, 2),
    "(-1, 2)": lambda w: (-1, 2),
    "('a', None)": lambda w: ("a", None),
    "[[1], 2]": lambda w: [[1], 2],
    "(1,) * 70": lambda w: (1,) * 70,
    "{1: 2}": lambda w: {1: 2},
    "...": lambda w: ...,
    "slice": lambda w: slice(None, None, -1),
    "range": lambda w: range(3),
    "generator": lambda w: _generate(),
    "object": lambda w: object(),
    "lambda": lambda w: lambda: None,
    "hostile": lambda w: Hostile(),
    "class": lambda w: Plain,
    "path": lambda w: Path("/nowhere/at/all"),
    "dtype": lambda w: np.dtype("f4"),
    "complex array": lambda w: np.zeros((2, 3), complex),
    "object array": lambda w: np.array([None, "x"], object),
    "0-d array": lambda w: np.array(1.5),
    "0-d int array": lambda w: np.array(2),
    "reversed": lambda w: np.zeros((2, 3), np.float32)[::-1],
    "read-only": lambda w: np.broadcast_to(np.float32(1), (2, 3)),
    "structured": lambda w: np.zeros(2, [("a", "i4"), ("b", "f4")]),
    "other endian": lambda w: np.zeros((2, 3), ">f4"),
    "empty array": lambda w: np.zeros((0, 3), np.float32),
    "vast array": lambda w: np.broadcast_to(np.int8(0), (2**20, 2**20, 2**20)),
    "device array": lambda w: cuda.zeros(5, np.int16),
    "empty device array": lambda w: cuda.zeros(0, np.float32),
    "strided device array": lambda w: cuda.zeros((4, 6), np.float32)[::2, ::2],
    "closed array": lambda w: w.closed(cuda.zeros((2, 3), np.float32)),
    "stream": lambda w: cuda.Stream(),
    "closed stream": lambda w: w.closed(cuda.Stream()),
    "event": lambda w: cuda.Event(),
    "closed event": lambda w: w.closed(cuda.Event()),
    "closed graph": lambda w: w.closed(w.graph()),
    "closed pool": lambda w: w.closed(cuda.MemoryPool()),
    "device": lambda w: w.device,
    "last device": lambda w: cuda.devices()[-1],
    "stream of the last device": lambda w: _on_last(cuda.Stream),
    "array of the last device": lambda w: _on_last(lambda: cuda.zeros((2, 3), np.float32)),
    "pool of the last device": lambda w: _on_last(cuda.MemoryPool),
    "class Stream": lambda w: cuda.Stream,
    "class DeviceArray": lambda w: cuda.DeviceArray,
    "class Event": lambda w: cuda.Event,
    "class Device": lambda w: cuda.Device,
    "interface of None": lambda w: Interface(data=None),
    "interface without shape": lambda w: Interface(shape=Plain),
    "interface without type": lambda w: Interface(typestr=Plain),
    "interface of 'x'": lambda w: Interface(typestr="x"),
    "interface of ''": lambda w: Interface(typestr=""),
    "interface of objects": lambda w: Interface(typestr="|O"),
    "interface at 'a'": lambda w: Interface(data=("a", False)),
    "interface at -1": lambda w: Interface(data=(-1, False)),
    "interface at 2**64": lambda w: Interface(data=(2**64, False)),
    "interface of a bad shape": lambda w: Interface(shape=(-1,)),
    "interface of strides": lambda w: Interface(strides=(1, 2, 3)),
    "interface of a stream": lambda w: Interface(stream="x"),
    "stream 'a'": lambda w: Listed((0, "a")),
    "stream of version 7": lambda w: Listed((7, 1)),
    "stream of None": lambda w: Listed(None),
    "stream -1": lambda w: Listed((0, -1)),
}


def _on_last(make: Callable[[], Any]) -> Any:
    with cuda.devices()[-1]:
        return make()


def _scipy_matrix(world: World) -> Any:
    from scipy import sparse

    return sparse.csr_array(np.eye(3, dtype=np.float32))


# By "call.parameter", or by the parameter alone.
GOOD: Mapping[str, Callable[[World], Any]] = {
    "advice": lambda w: "set_read_mostly",
    "address": lambda w: "clamp",
    "advise.array": World.managed,
    "alpha": lambda w: 1.0,
    "activation": lambda w: "relu",
    "arch": lambda w: w.device.compute_capability,
    "array": World.array,
    "arguments": lambda w: (1.0, cuda.zeros(3, np.float32), cuda.zeros(3, np.float32), 3),
    "axes": lambda w: -1,
    "axpy.x": lambda w: w.array(3),
    "axpy.y": lambda w: w.array(3),
    "a": World.square,
    "b": World.square,
    "batch": lambda w: 2,
    "beta": lambda w: 0.0,
    "bias": lambda w: w.array(3),
    "block": lambda w: 32,
    "blocking": lambda w: False,
    "border": lambda w: (0.0, 0.0, 0.0, 0.0),
    "bytes": lambda w: 12,
    "cache": lambda w: True,
    "ceiling": lambda w: None,
    "cluster": lambda w: None,
    "color": lambda w: "green",
    "compiled": lambda w: None,
    "compute": lambda w: None,
    "compute_capability": lambda w: (9, 0),
    "cooperative": lambda w: False,
    "copy_from.host": World.host,
    "count": lambda w: None,
    "define": lambda w: {"N": 4},
    "deviation": lambda w: 1.0,
    "device": lambda w: w.device,
    "dimensions": lambda w: 1,
    "domain": lambda w: "ours",
    "dst": World.array,
    "dst_start": lambda w: (0, 0),
    "dtype": lambda w: np.float32,
    "event": World.event,
    "fast_math": lambda w: True,
    "fft.x": lambda w: w.array((2, 3), np.complex64),
    "ifft.x": lambda w: w.array((2, 3), np.complex64),
    "irfft.x": lambda w: w.array((2, 3), np.complex64),
    "filter": lambda w: "point",
    "flops": lambda w: 2.5,
    "flush_l2": lambda w: True,
    "fn": lambda w: lambda *_: None,
    "format": lambda w: "csr",
    "function": lambda w: lambda: None,
    "gemv.x": lambda w: w.array(3),
    "graph": World.graph,
    "measure.graph": lambda w: False,
    "grid": lambda w: (2, 1),
    "hit": lambda w: "persisting",
    "hit_ratio": lambda w: 0.5,
    "host": World.host,
    "image": World.image,
    "images": lambda w: [w.compiled],
    "include": lambda w: [],
    "indices": lambda w: w.array(2, np.int32),
    "key": lambda w: (slice(0, 1), ...),
    "kind": lambda w: "philox",
    "launch": World.launch,
    "length": lambda w: 4,
    "limit": lambda w: 64,
    "location": lambda w: "host",
    "lower": lambda w: True,
    "mapped": lambda w: True,
    "matrix": World.sparse,
    "max_samples": lambda w: 10,
    "max_seconds": lambda w: 1.0,
    "max_size": lambda w: 1 << 25,
    "mean": lambda w: 0.0,
    "memcpy3d.dst": lambda w: w.array((2, 3, 4)),
    "memcpy3d.dst_start": lambda w: (0, 0, 0),
    "memcpy3d.shape": lambda w: (1, 2, 3),
    "memcpy3d.src": lambda w: w.array((2, 3, 4)),
    "memcpy3d.src_start": lambda w: (0, 0, 0),
    "method": lambda w: "qr",
    "min_samples": lambda w: 2,
    "min_seconds": lambda w: 0.1,
    "miss": lambda w: "streaming",
    "mode": lambda w: "thread_local",
    "checks.mode": lambda w: "warn",
    "name": lambda w: "touch_nothing",
    "Module.symbol.name": lambda w: "numbers",
    "names": lambda w: ["touch_nothing"],
    "keep": lambda w: 1 << 20,
    "non_blocking": lambda w: True,
    "normalized": lambda w: False,
    "offset": lambda w: 0,
    "offsets": lambda w: w.array(3, np.int32),
    "op": lambda w: "N",
    "op_a": lambda w: "N",
    "op_b": lambda w: "T",
    "options": lambda w: ["--extra-device-vectorization"],
    "measure.options": lambda w: QUICK,
    "measure_host.options": lambda w: QUICK,
    "ordering": lambda w: None,
    "ordinal": lambda w: 0,
    "other": World.array,
    "Device.disable_peer.other": lambda w: cuda.devices()[-1],
    "Device.enable_peer.other": lambda w: cuda.devices()[-1],
    "ExecutableGraph.update.graph": World.graph,
    "handle": lambda w: w.device.memory_pool.handle,
    "Launch.__call__.a": lambda w: 2.0,
    "Launch.bind.a": lambda w: 2.0,
    "Launch.__call__.x": lambda w: w.array(3),
    "Launch.__call__.y": lambda w: w.array(3),
    "nbytes": lambda w: 1 << 20,
    "SparseMatrix.from_host.matrix": _scipy_matrix,
    "solve_triangular.a": lambda w: cuda.to_device(np.eye(3, dtype=np.float32)),
    "dot.out": lambda w: None,
    "fft.out": lambda w: None,
    "ifft.out": lambda w: None,
    "irfft.out": lambda w: None,
    "rfft.out": lambda w: None,
    "gemv.out": lambda w: w.array(3),
    "spmv.out": lambda w: w.array(2),
    "spmm.out": lambda w: w.array((2, 3)),
    "gemm.out": World.square,
    "gemm_epilogue.out": World.square,
    "spgemm.b": World.sparse_square,
    "Device.can_access_peer.other": lambda w: cuda.devices()[-1],
    "Device.peer_enabled.other": lambda w: cuda.devices()[-1],
    "Stream.wait.other": World.event,
    "out": World.host,
    "overwrite": lambda w: False,
    "owner": lambda w: None,
    "pointer": lambda w: 4096,
    "pool": lambda w: cuda.MemoryPool(),
    "positive": lambda w: False,
    "precision": lambda w: 0.01,
    "prefetch.array": World.managed,
    "priority": lambda w: 0,
    "rate": lambda w: 4.0,
    "read": lambda w: "element",
    "read_only": lambda w: True,
    "registers_per_thread": lambda w: 32,
    "release_threshold": lambda w: 0,
    "result": lambda w: _success(),
    "rfft.x": World.array,
    "seed": lambda w: 1,
    "sddmm.a": lambda w: w.array((2, 4)),
    "sddmm.b": lambda w: w.array((4, 3)),
    "sddmm.out": World.sparse,
    "shape": lambda w: (2, 3),
    "DeviceArray.reshape.shape": lambda w: (3, 2),
    "Module.symbol.shape": lambda w: (2, 2),
    "memcpy2d.shape": lambda w: (1, 2),
    "shared_bytes": lambda w: 64,
    "shared_bytes_per_block": lambda w: 1024,
    "size": lambda w: 8,
    "slice_size": lambda w: 32,
    "source": lambda w: SOURCE,
    "spdot.x": lambda w: libraries.SparseVector(8, w.array(2, np.int32), w.array(2)),
    "spdot.y": lambda w: w.array(8),
    "spgemm.a": World.sparse,
    "spmm.a": World.sparse,
    "spmv.a": World.sparse,
    "spmv.x": lambda w: w.array(3),
    "src": World.array,
    "src_start": lambda w: (0, 0),
    "start": World.event,
    "std": lambda w: "c++17",
    "stream": lambda w: cuda.Stream(),
    "streams": lambda w: None,
    "strides": lambda w: None,
    "threads_per_block": lambda w: 128,
    "timing": lambda w: True,
    "unit": lambda w: False,
    "value": lambda w: 5,
    "values": lambda w: w.array(2),
    "verbose": lambda w: True,
    "warm_up_seconds": lambda w: 0.0,
    "write_combined": lambda w: False,
    "x": World.array,
    "as_device_array.x": World.array,
    "dot.x": lambda w: w.array(3),
    "dot.y": lambda w: w.array(3),
    "y": World.array,
    "n": lambda w: 3,
    "DeviceArray.copy_from.host": World.host,
    "Generator.host": lambda w: False,
    "register_host.array": World.host,
    "RegisteredMemory.array": World.host,
    "device_pointer.array": lambda w: cuda.pinned_empty(3, mapped=True),
    "Texture.array": World.pitched,
    "to_bfloat16.x": World.host,
    "from_bfloat16.x": lambda w: libraries.to_bfloat16(w.host()),
    "from_dlpack.x": World.array,
    "Program.name": lambda w: "kernel.cu",
    "nvtx_range.name": lambda w: "solve",
}


def _success() -> tuple[Any, int]:
    from cuda.bindings.driver import CUresult

    return CUresult.CUDA_SUCCESS, 1


# What methods are called on, by the class's name; what has a `close` is also tried closed.
OBJECTS: Mapping[str, Callable[[World], Any]] = {
    "BoundLaunch": lambda w: w.launch().bind(1.0, cuda.zeros(3, np.float32), cuda.zeros(3, np.float32), 3),
    "Device": lambda w: w.device,
    "DeviceArray": World.array,
    "Event": World.event,
    "ExecutableGraph": lambda w: w.graph().instantiate(),
    "Graph": World.graph,
    "Kernel": lambda w: w.kernel,
    "Launch": World.launch,
    "MemoryPool": lambda w: cuda.MemoryPool(),
    "Module": lambda w: cuda.compile(SOURCE),
    "Pointer": lambda w: cuda.Pointer(5),
    "Profile": lambda w: cuda.profile(),
    "Program": lambda w: cuda.Program(SOURCE),
    "RegisteredMemory": lambda w: cuda.register_host(np.zeros(5000)),
    "SparseMatrix": World.sparse,
    "SparseVector": lambda w: libraries.SparseVector(8, w.array(2, np.int32), w.array(2)),
    "Stream": lambda w: cuda.Stream(),
    "Texture": lambda w: cuda.Texture(w.pitched()),
    "Timer": lambda w: cuda.Timer(),
    "nvtx_range": lambda w: cuda.nvtx_range("solve"),
    "Measurement": lambda w: Measurement((1.0, 2.0)),
    "MeasureOptions": lambda w: MeasureOptions(),
}
