"""The good values of the fuzzer, one for each parameter of every public call, and the objects of the methods."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

import cudart_py as cuda
from cudart_py import green_contexts, libraries
from cudart_py.benchmark import Measurement, MeasureOptions

from .world import NVVM_IR, SOURCE, World

QUICK = MeasureOptions(min_samples=1, max_samples=1, min_seconds=0, max_seconds=0, warm_up_seconds=0)


def _success() -> tuple[Any, int]:
    from cuda.bindings.driver import CUresult

    return CUresult.CUDA_SUCCESS, 1


def _recorded_launch() -> cuda.profiling.LaunchProfile:
    """Return the profile of a launch whose only warp loaded 32 contiguous elements at line 1."""
    access = cuda.profiling.WarpAccess("k.cu", 1, "load", "global", 4, np.arange(32) * 4)
    step = cuda.profiling.WarpStep("k.cu", 1, 1, np.ones(32, np.bool_))
    record = cuda.profiling.WarpRecord(0, (access,), (), (step,), True)
    return cuda.profiling.LaunchProfile("k", (1, 1, 1), (32, 1, 1), {}, (), {}, record)


def _diagonal() -> libraries.SparseMatrix:
    return libraries.SparseMatrix.from_host(sparse.csr_array(np.eye(3, dtype=np.float32)))


# Parameters that share a good value, named as in `GOOD`.
_SAME: Mapping[Callable[[World], Any], str] = {
    World.array: "array dst other src x y spmm.out",
    World.square: "a b gemm.out gemm_epilogue.out gemm_gradient.out gemm_sums.out matmul.out middle LuFactors.solve.b",
    World.off_diagonal: "solve_tridiagonal.lower upper",
    World.host: "host copy_from.source register_host.array RegisteredMemory.array to_bfloat16.x to_float8.x "
    "to_host.out",
    lambda w: cuda.managed_empty(8, np.float32): "advise.array managed_attributes.array prefetch.array",
    World.event: "event start Stream.wait.other",
    World.sparse: "spgemm.a spmm.a spmv.a sddmm.out sparse_convert.a sparse_sort.a sparse_to_dense.a "
    "sparse_transpose.a",
    lambda w: w.sparse(3): "spgemm.b",
    lambda w: libraries.SparseMatrix.from_host(sparse.eye_array(3, dtype=np.float32, format="csr")): "spsm.a spsv.a",
    lambda w: w.array(
        3
    ): "bias axpy.x axpy.y dot.x dot.y gemv.out gemv.x __call__.x __call__.y scal.x spmv.x spsv.b spsv.out "
    "launch.x launch.y bias_gradient gemm_sums.sums ger.y symv.out SparseSolver.refactorize.values",
    lambda w: w.array(2): "values spmv.out",
    lambda w: w.array((2, 3), np.complex64): "fft.x ifft.x irfft.x",
    lambda w: w.array((2, 3, 4)): "memcpy3d.dst memcpy3d.src",
    World.sparse_vector: "gemvi.x spdot.x",
    lambda w: cuda.devices()[-1]: "can_access_peer.other disable_peer.other enable_peer.other peer_enabled.other",
    lambda w: None: "trace",
    lambda w: 0: "occurrence priority record_warp release_threshold",
    lambda w: 1: "line seed Stream.condition.default refinements",
    lambda w: 2: "batch min_samples Stream.switch.count DeviceArray.preview.count Texture.dimensions",
    lambda w: 2.0: "Kernel.launch.a Launch.__call__.a Launch.bind.a",
    lambda w: 32: "block registers_per_thread slice_size",
    lambda w: 64: "limit shared_bytes TensorMap.swizzle",
    lambda w: 1 << 20: "keep nbytes",
    lambda w: False: "Generator.host measure.graph",
    lambda w: QUICK: "measure.options measure_host.options",
    lambda w: True: "enabled fast_math mapped non_blocking read_only verbose",
    lambda w: w.graph().nodes[0]: "before node",
    lambda w: 0.5: "fraction hit_ratio",
    lambda w: 3: "bins n GrowableArray.resize.length offset",
    lambda w: (2, 1): "grid TensorMap.element_strides",
    lambda w: []: "include libraries",
    lambda w: _recorded_launch(): "access_diagram.launch divergence_diagram.launch",
    lambda w: 8: "capacity size",
    lambda w: 128: "threads_per_block TensorMap.l2_promotion",
    lambda w: w.array(1): "scaled_gemm.scale_a scaled_gemm.scale_b",
    lambda w: w.array((2, 4)): "sddmm.a TensorMap.array replace_address.array",
}
# A key is a "parameter", which serves every call that has no key of its own; a "call.parameter", which serves a
# function or all methods of that name; or a "Class.method.parameter". The keys of the first kind
# are listed first; the most specific key wins.
GOOD: Mapping[str, Callable[[World], Any]] = {
    **{name: make for make, names in _SAME.items() for name in names.split()},
    "activation": lambda w: "relu",
    "algorithm": lambda w: "search",
    "gemm_gradient.aux": lambda w: libraries.empty_aux((3, 3), np.float32, "relu").fill(0),
    "of": lambda w: "a",
    "advice": lambda w: "set_read_mostly",
    "after": lambda w: (),
    "allocation": lambda w: cuda.graphs.NodeAllocation(3, np.float32),
    "alpha": lambda w: 1.0,
    "arch": lambda w: w.device.compute_capability,
    "arguments": lambda w: (1.0, cuda.zeros(3, np.float32), cuda.zeros(3, np.float32), 3),
    "bytes": lambda w: 12,
    "carveout": lambda w: 50,
    "cluster_scheduling": lambda w: "spread",
    "color": lambda w: "green",
    "compute_capability": lambda w: (9, 0),
    "condition": World.condition,
    "define": lambda w: {"N": 4},
    "device": lambda w: w.device,
    "domain": lambda w: "ours",
    "dtype": lambda w: np.float32,
    "flops": lambda w: 2.5,
    "fn": lambda w: lambda *_: None,
    "format": lambda w: "csr",
    "function": lambda w: lambda: None,
    "graph": World.graph,
    "handle": lambda w: cuda.MemoryPool.current(w.device).handle,
    "image": lambda w: w.image,
    "images": lambda w: [w.compiled],
    "headers": lambda w: {"value.h": "#define VALUE 4"},
    "indices": lambda w: w.array(2, np.int32),
    "key": lambda w: (slice(0, 1), ...),
    "launch": lambda w: w.launch,
    "length": lambda w: 4,
    "location": lambda w: "host",
    "max_samples": lambda w: 10,
    "max_size": lambda w: 1 << 25,
    "memory_domain": lambda w: "remote",
    "name": lambda w: "touch_nothing",
    "names": lambda w: ["touch_nothing"],
    "offsets": lambda w: w.array(3, np.int32),
    "op": lambda w: "N",
    "operation": lambda w: "load",
    "op_b": lambda w: "T",
    "options": lambda w: ["--extra-device-vectorization"],
    "GrowableArray.append.values": lambda w: np.ones(3, np.float32),
    "arrays": lambda w: [cuda.managed_empty(8, np.float32)],
    "pairs": lambda w: [(w.array(3), np.ones(3, np.float32))],
    "pointer": lambda w: 4096,
    "pool": lambda w: cuda.MemoryPool(),
    "managed_empty.pool": lambda w: cuda.MemoryPool(kind="managed"),
    "pinned_empty.pool": lambda w: cuda.MemoryPool(kind="pinned"),
    "precision": lambda w: 0.01,
    "rate": lambda w: 4.0,
    "result": lambda w: _success(),
    "shape": lambda w: (2, 3),
    "shared_bytes_per_block": lambda w: 1024,
    "source": lambda w: SOURCE,
    "space": lambda w: "global",
    "std": lambda w: "c++17",
    "stream": lambda w: cuda.Stream(),
    "thing": lambda w: cuda.ipc.empty(3) if "ipc" in cuda.capabilities() else w.array(3),
    "value": lambda w: 5,
    "warm_up_seconds": lambda w: 0.0,
    "work": World.bound,
    "sanitizer.mode": lambda w: "warn",
    "debugger.breakpoints": lambda w: ("scale.cu:3 block 1 if n > 2",),
    "debugger.commands": lambda w: ["info warps", "continue"],
    "compile_nvvm.options": lambda w: ["-opt=3"],
    "compile_nvvm.source": lambda w: NVVM_IR,
    "Device.attribute.name": lambda w: "warp_size",
    "Device.from_pci_bus_id.pci_bus_id": lambda w: w.device.properties.pci_bus_id,
    "Device.from_uuid.uuid": lambda w: str(w.device.properties.uuid),
    "device_pointer.array": lambda w: cuda.pinned_empty(3, mapped=True),
    "DeviceArray.reshape.shape": lambda w: (3, 2),
    **{
        f"{call}.array": lambda w: w.pinned_word()  # no accepted value makes a call wait
        for call in ("Stream.write_value", "Stream.wait_value", "WriteValue", "WaitValue")
    },
    **{f"{call}.condition": lambda w: "nor" for call in ("Stream.wait_value", "WaitValue")},
    "NodeMemoryOperations.operations": lambda w: [cuda.batches.WriteValue(w.pinned_word(), 1)],
    "batches.memory_operations.operations": lambda w: [cuda.batches.WriteValue(w.pinned_word(), 1)],
    "multiprocessors": lambda w: green_contexts.multiprocessors(),
    "Multiprocessors.split.counts": lambda w: 16,
    "DeviceArray.transpose.axes": lambda w: (1, 0),
    **{f"Generator.{name}.out": World.array for name in ("uniform", "normal", "log_normal", "exponential")},
    **{f"Generator.{name}.out": lambda w: w.array(dtype=np.uint32) for name in ("bits", "poisson")},
    **{f"Graph.{name}.after": lambda w: w.graph().nodes[0] for name in ("add_edge", "remove_edge")},
    "empty_aux.shape": lambda w: (3, 3),
    **{f"gemm_batched.{name}": lambda w: [w.square(), w.square()] for name in ("a", "b", "out")},
    **{f"{call}.x": lambda w: w.array(3) for call in ("asum", "ger", "iamax", "nrm2", "symv")},
    **{f"{call}.out": lambda w: w.array(1) for call in ("asum", "nrm2")},
    **{f"{call}.out": World.square for call in ("symm", "syrk")},
    "side": lambda w: "right",
    **{f"{call}.a": lambda w: cuda.to_device(np.eye(3, dtype=np.float32)) for call in ("inv", "lu_factor", "solve")},
    "solve.precision": lambda w: "float16",
    "gemm_sums.a": lambda w: w.square().T,
    "SparseSolver.a": lambda w: _diagonal(),
    "SparseSolver.kind": lambda w: "positive",
    "triangle": lambda w: "upper",
    "from_float8.x": lambda w: libraries.to_float8(w.host()),
    "to_float8.dtype": lambda w: libraries.float8_e5m2,
    "scaled_gemm.a": lambda w: cuda.to_device(libraries.to_float8(np.eye(16))),
    "scaled_gemm.b": lambda w: cuda.to_device(libraries.to_float8(np.eye(16))).T,
    "scaled_gemm.out": lambda w: cuda.empty((16, 16), libraries.bfloat16),
    "scaled_gemm.bias": lambda w: cuda.to_device(libraries.to_bfloat16(np.ones(16))),
    "scaled_gemm.dtype": lambda w: libraries.bfloat16,
    "from_bfloat16.x": lambda w: libraries.to_bfloat16(w.host()),
    "gemvi.a": lambda w: w.array((3, 8)),
    "memcpy2d.shape": lambda w: (1, 2),
    "memcpy3d.shape": lambda w: (1, 2, 3),
    "Module.symbol.name": lambda w: "numbers",
    "Module.symbol.shape": lambda w: (2, 2),
    "nvtx_range.name": lambda w: "solve",
    "sddmm.b": lambda w: w.array((4, 3)),
    "solve_triangular.a": lambda w: cuda.to_device(np.eye(3, dtype=np.float32)),
    "SparseMatrix.from_host.matrix": lambda w: sparse.csr_array(np.eye(3, dtype=np.float32)),
    "spdot.y": lambda w: w.array(8),
    "Surface.array": World.cuda_array,
    "Texture.array": World.pitched,
    "TensorMap.box": lambda w: (2, 4),
    "TensorMap.element": lambda w: "tfloat32",
    "TensorMap.fill": lambda w: "nan",
}

# The objects that methods are called on, by class name. Those that have a `close` are also tried closed.
OBJECTS: Mapping[str, Callable[[World], Any]] = {
    "BoundLaunch": World.bound,
    "CudaArray": World.cuda_array,
    "Device": lambda w: w.device,
    "DeviceArray": World.array,
    "Event": World.event,
    "ExecutableGraph": lambda w: w.graph().instantiate(),
    "Generator": lambda w: libraries.Generator(),
    "Graph": World.graph,
    "GraphMemory": lambda w: cuda.graphs.GraphMemory(),
    "WaitValue": lambda w: cuda.batches.WaitValue(w.pinned_word(), 0),
    "WriteValue": lambda w: cuda.batches.WriteValue(w.pinned_word(), 0),
    "GreenContext": lambda w: green_contexts.GreenContext(green_contexts.multiprocessors()),
    "Multiprocessors": lambda w: green_contexts.multiprocessors(),
    "GrowableArray": lambda w: cuda.virtual.GrowableArray(8, np.float32),
    "Kernel": lambda w: w.kernel,
    "Launch": lambda w: w.launch,
    "LuFactors": lambda w: libraries.lu_factor(cuda.to_device(np.eye(3, dtype=np.float32))),
    "LazyModule": lambda w: cuda.LazyModule(SOURCE),
    "NodeAllocation": lambda w: cuda.graphs.NodeAllocation(3, np.float32),
    "MemoryPool": lambda w: cuda.MemoryPool(),
    "Module": lambda w: cuda.compile(SOURCE),
    "NodeMemoryOperations": lambda w: cuda.graphs.NodeMemoryOperations([cuda.batches.WriteValue(w.pinned_word(), 1)]),
    "NodeRecord": lambda w: cuda.graphs.NodeRecord(w.event()),
    "NodeWait": lambda w: cuda.graphs.NodeWait(w.event()),
    "Profile": lambda w: cuda.profile(),
    "RegisteredMemory": lambda w: cuda.register_host(np.zeros(5000)),
    "SparseMatrix": World.sparse,
    "SparseSolver": lambda w: libraries.SparseSolver(_diagonal()),
    "Stream": lambda w: cuda.Stream(),
    "Surface": lambda w: cuda.textures.Surface(w.cuda_array()),
    "TensorMap": lambda w: cuda.tensor_maps.TensorMap(w.array((2, 4)), (2, 4)),
    "Texture": lambda w: cuda.textures.Texture(w.pitched()),
    "Timer": lambda w: cuda.Timer(),
    "Measurement": lambda w: Measurement((1.0, 2.0)),
}
