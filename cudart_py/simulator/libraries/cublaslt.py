"""cuBLASLt in software, with the names and parameters of `nvmath.bindings.cublasLt`: products with an epilogue."""

from __future__ import annotations

from typing import Any

import numpy as np
from nvmath import bindings
from nvmath.bindings.cublas import ComputeType, Status
from nvmath.bindings.cublasLt import (
    Epilogue,
    MatmulDescAttribute,
    get_matmul_desc_attribute_dtype,
    get_matmul_preference_attribute_dtype,
)

from .common.calls import queue
from .common.functions import LibraryError, Objects, entry, missing
from .common.numbers import DTYPES, Numbers, from_host, narrowed, rounded_to_tf32, to_host, widened
from .common.operands import Operand, columns, vector

_call = entry(Status.EXECUTION_FAILED)
_BIASED = (Epilogue.BIAS, Epilogue.RELU_BIAS, Epilogue.GELU_BIAS)

# Handles, which have no state; attributes of products; layouts (cudaDataType, rows, columns, leading dimension);
# preferences.
_handles: Objects[str] = Objects(Status.NOT_INITIALIZED)
_products: Objects[dict[int, int]] = Objects(Status.INVALID_VALUE)
_layouts: Objects[tuple[int, int, int, int]] = Objects(Status.INVALID_VALUE)
_preferences: Objects[dict[int, int]] = Objects(Status.INVALID_VALUE)
# The attributes for the two types that are arguments when the descriptor of a product is created.
_COMPUTE, _SCALE = int(MatmulDescAttribute.COMPUTE_TYPE), int(MatmulDescAttribute.SCALE_TYPE)


def __getattr__(name: str) -> Any:
    return missing(bindings.cublasLt, Status.NOT_SUPPORTED, name)


def create() -> int:
    """Return a new handle (cublasLtCreate)."""
    return _handles.add("cublasLt")


def destroy(light_handle: int) -> None:
    """Destroy a handle (cublasLtDestroy)."""
    _handles.remove(light_handle)


def matmul_desc_create(compute_type: int, scale_type: int) -> int:
    """Return a new descriptor of a product (cublasLtMatmulDescCreate)."""
    return _products.add({_COMPUTE: int(compute_type), _SCALE: int(scale_type)})


def matmul_desc_destroy(matmul_desc: int) -> None:
    """Destroy a descriptor of a product (cublasLtMatmulDescDestroy)."""
    _products.remove(matmul_desc)


def matmul_desc_set_attribute(matmul_desc: int, attr: int, buf: int, size_in_bytes: int) -> None:
    """Set an attribute of a product (cublasLtMatmulDescSetAttribute)."""
    dtype = np.dtype(get_matmul_desc_attribute_dtype(attr))
    if dtype.itemsize != size_in_bytes:
        raise LibraryError(Status.INVALID_VALUE, f"the attribute {attr} has {dtype.itemsize} bytes")
    _products.find(matmul_desc)[int(attr)] = int(from_host(buf, dtype))


def matrix_layout_create(type: int, rows: int, cols: int, ld: int) -> int:
    """Return a new layout of a matrix in column-major order (cublasLtMatrixLayoutCreate)."""
    return _layouts.add((int(type), int(rows), int(cols), int(ld)))


def matrix_layout_destroy(mat_layout: int) -> None:
    """Destroy a layout (cublasLtMatrixLayoutDestroy)."""
    _layouts.remove(mat_layout)


def matmul_preference_create() -> int:
    """Return new preferences for the choice of an algorithm (cublasLtMatmulPreferenceCreate)."""
    return _preferences.add({})


def matmul_preference_destroy(pref: int) -> None:
    """Destroy preferences (cublasLtMatmulPreferenceDestroy)."""
    _preferences.remove(pref)


def matmul_preference_set_attribute(pref: int, attr: int, buf: int, size_in_bytes: int) -> None:
    """Set a preference, which has no effect here (cublasLtMatmulPreferenceSetAttribute)."""
    dtype = np.dtype(get_matmul_preference_attribute_dtype(attr))
    if dtype.itemsize != size_in_bytes:
        raise LibraryError(Status.INVALID_VALUE, f"the preference {attr} has {dtype.itemsize} bytes")
    _preferences.find(pref)[int(attr)] = int(from_host(buf, dtype))


def matmul_algo_get_heuristic(
    light_handle: int, operation_desc: int, adesc: int, bdesc: int, cdesc: int, ddesc: int, preference: int,
    requested_algo_count: int, heuristic_results_array: int, return_algo_count: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Report one algorithm, which needs no workspace (cublasLtMatmulAlgoGetHeuristic)."""
    _handles.find(light_handle)
    _products.find(operation_desc)
    _preferences.find(preference)
    to_host(return_algo_count, np.int32, 1)


@_call
def matmul(
    light_handle: int, compute_desc: int, alpha: int, a: int, adesc: int, b: int, bdesc: int, beta: int, c: int,
    cdesc: int, d: int, ddesc: int, algo: int, workspace: int, workspace_size_in_bytes: int, stream: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue d = epilogue(alpha a b + beta c) (cublasLtMatmul)."""
    _handles.find(light_handle)
    attributes = _products.find(compute_desc)
    epilogue = attributes.get(int(MatmulDescAttribute.EPILOGUE), int(Epilogue.DEFAULT))
    if epilogue not in (Epilogue.DEFAULT, *_BIASED):
        raise LibraryError(Status.NOT_SUPPORTED, f"the simulator does not support the epilogue {epilogue}")
    scale = DTYPES[attributes[_SCALE]]
    factor, rest = from_host(alpha, scale), from_host(beta, scale)
    left, right, added, out = (
        _matrix(address, layout) for address, layout in ((a, adesc), (b, bdesc), (c, cdesc), (d, ddesc))
    )
    reads = [left, right, *((added,) if rest else ())]
    bias: Operand | None = None
    if epilogue in _BIASED:
        bias = vector(attributes.get(int(MatmulDescAttribute.BIAS_POINTER), 0), out.shape[0], out.dtype)
        reads.append(bias)
    with_tf32 = attributes[_COMPUTE] == ComputeType.COMPUTE_32F_FAST_TF32

    def multiply() -> None:
        first, second = widened(left.elements), widened(right.elements)
        if with_tf32:
            first, second = rounded_to_tf32(first), rounded_to_tf32(second)
        with np.errstate(all="ignore"):  # infinities and NaNs propagate, as on the device
            result = factor * (first @ second)
            if rest:
                result = result + rest * widened(added.elements)
            if bias is not None:
                result = result + widened(bias.elements)[:, None]
            out.elements[...] = narrowed(_activated(result, epilogue), out.dtype)

    work = vector(int(workspace), int(workspace_size_in_bytes), np.uint8)
    queue(stream, "cublasLtMatmul", multiply, reads=reads, writes=[out], workspaces=[work])


def _matrix(address: int, layout: int) -> Operand:
    code, rows, count, leading = _layouts.find(layout)
    return columns(int(address), rows, count, leading, DTYPES[code])


def _activated(x: Numbers, epilogue: int) -> Numbers:
    """Return max(x, 0), the tanh approximation of GELU, or x itself, depending on the epilogue."""
    if epilogue == Epilogue.RELU_BIAS:
        return np.maximum(x, 0)
    if epilogue == Epilogue.GELU_BIAS:
        inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3)
        return np.asarray(x / 2 * (1 + np.tanh(inner)))
    return x
