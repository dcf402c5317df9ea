"""The fastest algorithm that cuBLASLt recommends for a product, through nvmath's bindings alone."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import driver

import cudart_py as cuda

WORKSPACE = 32 << 20
MOST, ROUNDS, RUNS = 32, 5, 5


class Types(NamedTuple):
    """The types of a product: cudaDataType of the factors and the result, compute type, and type of the factors."""

    factors: int
    result: int
    compute: str
    scale: int
    scale_dtype: Any


FP8 = Types(28, 14, "COMPUTE_32F", 0, np.float32)
INT8 = Types(3, 10, "COMPUTE_32I", 10, np.int32)
EMULATED = Types(1, 1, "COMPUTE_64F_EMULATED_FIXEDPOINT", 1, np.float64)
FP16 = Types(2, 2, "COMPUTE_32F", 0, np.float32)


def _set(functions: Any, setter: Any, dtype_of: Any, thing: int, attribute: Any, value: int) -> None:
    memory = np.array([value], dtype_of(int(attribute)))
    setter(thing, int(attribute), memory.ctypes.data, memory.nbytes)


def fastest(
    lt: Any, types: Types, a: cuda.DeviceArray, b: cuda.DeviceArray, out: cuda.DeviceArray, *, along_k: bool, fast: bool
) -> Callable[[], None]:
    """Return a call of cublasLtMatmul for out = a b with square matrices and the fastest of the algorithms.

    With `along_k`, `b` has contiguous columns, as products of 8-bit elements need it.
    """
    from nvmath.bindings import cublas  # imported late: it may be missing

    n = out.shape[0]
    handle = lt.create()
    product = lt.matmul_desc_create(int(cublas.ComputeType[types.compute]), types.scale)
    attributes = {lt.MatmulDescAttribute.TRANSA: int(along_k)}
    if fast:
        attributes[lt.MatmulDescAttribute.FAST_ACCUM] = 1
    for attribute, value in attributes.items():
        _set(lt, lt.matmul_desc_set_attribute, lt.get_matmul_desc_attribute_dtype, product, attribute, value)
    factor, result = (lt.matrix_layout_create(code, n, n, n) for code in (types.factors, types.result))
    preference = lt.matmul_preference_create()
    size = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
    _set(
        lt, lt.matmul_preference_set_attribute, lt.get_matmul_preference_attribute_dtype, preference, size, WORKSPACE
    )  # fmt: skip  # grouped by meaning
    found, count = np.zeros(MOST, lt.matmul_heuristic_result_dtype), np.zeros(1, np.int32)
    lt.matmul_algo_get_heuristic(
        handle, product, factor, factor, result, result, preference, MOST, found.ctypes.data, count.ctypes.data
    )
    workspace = cuda.empty(WORKSPACE, np.uint8)
    one, zero = np.ones(1, types.scale_dtype), np.zeros(1, types.scale_dtype)

    def call(place: int) -> Callable[[], None]:
        algorithm = found[place : place + 1]
        nbytes = int(algorithm["workspace_size"][0])

        def work() -> None:
            lt.matmul(
                handle, product, one.ctypes.data, b.pointer, factor, a.pointer, factor, zero.ctypes.data, out.pointer,
                result, out.pointer, result, algorithm.ctypes.data, workspace.pointer, nbytes, 0,
            )  # fmt: skip  # grouped by meaning

        return work

    works = [call(place) for place in range(count[0])]
    return min(works, key=_seconds)


def _seconds(work: Callable[[], None]) -> float:
    times = []
    for _ in range(ROUNDS):
        driver.cuCtxSynchronize()
        begun = time.perf_counter()
        for _ in range(RUNS):
            work()
        driver.cuCtxSynchronize()
        times.append(time.perf_counter() - begun)
    return min(times)
