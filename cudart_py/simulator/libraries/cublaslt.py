"""cuBLASLt in software, with the names and parameters of `nvmath.bindings.cublasLt`: products with an epilogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from nvmath import bindings
from nvmath.bindings.cublas import Operation, Status
from nvmath.bindings.cublasLt import (
    Epilogue,
    MatmulDescAttribute,
    MatrixLayoutAttribute,
    get_matmul_desc_attribute_dtype,
    get_matmul_preference_attribute_dtype,
    get_matrix_layout_attribute_dtype,
)

from .common.calls import queue
from .common.functions import LibraryError, Objects, entry, missing
from .common.numbers import DTYPES, Numbers, from_host, narrowed, to_host, widened
from .common.operands import Operand, array, vector
from .common.products import EIGHT_BIT_FLOATS, multiplied, scale_dtype, supported, turned
from .dense.epilogues import Epilogues
from .dense.scales import Scale, scale_of

_call = entry(Status.EXECUTION_FAILED)


@dataclass
class _Layout:
    """Matrices in column-major order: their cudaDataType, sizes, leading dimension, number, and distance."""

    code: int
    rows: int
    columns: int
    leading: int
    batch: int = 1
    stride: int = 0

    def at(self, address: int) -> Operand:
        """Return the matrices at an address; a distance of 0 means that all of them are the same matrix."""
        count = self.batch if self.stride else min(self.batch, 1)
        shape, strides = (count, self.rows, self.columns), (self.stride, 1, self.leading)
        return array(int(address), shape, DTYPES[self.code], strides)


# Handles, which have no state; attributes of products; layouts; preferences.
_handles: Objects[str] = Objects(Status.NOT_INITIALIZED)
_products: Objects[dict[int, int]] = Objects(Status.INVALID_VALUE)
_layouts: Objects[_Layout] = Objects(Status.INVALID_VALUE)
_preferences: Objects[dict[int, int]] = Objects(Status.INVALID_VALUE)
# The attributes for the two types that are arguments when the descriptor of a product is created.
_COMPUTE, _SCALE = int(MatmulDescAttribute.COMPUTE_TYPE), int(MatmulDescAttribute.SCALE_TYPE)
_FIELDS = {int(MatrixLayoutAttribute.BATCH_COUNT): "batch", int(MatrixLayoutAttribute.STRIDED_BATCH_OFFSET): "stride"}


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


def _value(attribute: int, dtype: Any, buf: int, size_in_bytes: int) -> int:
    kind = np.dtype(dtype)
    if kind.itemsize != size_in_bytes:
        raise LibraryError(Status.INVALID_VALUE, f"the attribute {attribute} has {kind.itemsize} bytes")
    return int(from_host(buf, kind))


def matmul_desc_set_attribute(matmul_desc: int, attr: int, buf: int, size_in_bytes: int) -> None:
    """Set an attribute of a product (cublasLtMatmulDescSetAttribute)."""
    value = _value(attr, get_matmul_desc_attribute_dtype(attr), buf, size_in_bytes)
    _products.find(matmul_desc)[int(attr)] = value


def matrix_layout_create(type: int, rows: int, cols: int, ld: int) -> int:
    """Return a new layout of a matrix in column-major order (cublasLtMatrixLayoutCreate)."""
    return _layouts.add(_Layout(int(type), int(rows), int(cols), int(ld)))


def matrix_layout_set_attribute(mat_layout: int, attr: int, buf: int, size_in_bytes: int) -> None:
    """Set the number of matrices or the distance between them (cublasLtMatrixLayoutSetAttribute)."""
    value = _value(attr, get_matrix_layout_attribute_dtype(attr), buf, size_in_bytes)
    if int(attr) not in _FIELDS:
        raise LibraryError(Status.NOT_SUPPORTED, f"the simulator does not support the layout attribute {attr}")
    setattr(_layouts.find(mat_layout), _FIELDS[int(attr)], value)


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
    value = _value(attr, get_matmul_preference_attribute_dtype(attr), buf, size_in_bytes)
    _preferences.find(pref)[int(attr)] = value


def matmul_algo_get_heuristic(
    light_handle: int, operation_desc: int, adesc: int, bdesc: int, cdesc: int, ddesc: int, preference: int,
    requested_algo_count: int, heuristic_results_array: int, return_algo_count: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Report one algorithm, which needs no workspace (cublasLtMatmulAlgoGetHeuristic)."""
    _handles.find(light_handle)
    _check(_products.find(operation_desc), *map(_layouts.find, (adesc, bdesc, cdesc, ddesc)))
    _preferences.find(preference)
    to_host(return_algo_count, np.int32, 1)


def _check(attributes: dict[int, int], a: _Layout, b: _Layout, c: _Layout, d: _Layout) -> None:
    """Raise NOT_SUPPORTED for types and operations that cuBLASLt does not support either."""
    first, second, added, out = (DTYPES.get(layout.code) for layout in (a, b, c, d))
    compute = attributes[_COMPUTE]
    floats = first in EIGHT_BIT_FLOATS
    operations = attributes.get(int(MatmulDescAttribute.TRANSA), 0), attributes.get(int(MatmulDescAttribute.TRANSB), 0)
    if not supported(first, second, out, compute) or (added != out and out not in EIGHT_BIT_FLOATS):
        raise LibraryError(Status.NOT_SUPPORTED, "cuBLASLt has no product of these types in this precision")
    epilogue = attributes.get(int(MatmulDescAttribute.EPILOGUE), int(Epilogue.DEFAULT))
    along_k = {int(Epilogue.BGRADA): operations[0] != Operation.N, int(Epilogue.BGRADB): operations[1] == Operation.N}
    if along_k.get(epilogue):
        raise LibraryError(Status.NOT_SUPPORTED, "the sums of a factor need its elements along k not to be adjacent")
    for letter in "AB":
        mode = attributes.get(int(MatmulDescAttribute[f"{letter}_SCALE_MODE"]), 0)
        if mode and not attributes.get(int(MatmulDescAttribute[f"{letter}_SCALE_POINTER"])):
            raise LibraryError(Status.INVALID_VALUE, f"the scales of the matrix {letter} have no address")
    if floats and operations != (Operation.T, Operation.N):
        raise LibraryError(Status.NOT_SUPPORTED, "products of 8-bit floats need a transposed a and a b as it is")


@_call
def matmul(
    light_handle: int, compute_desc: int, alpha: int, a: int, adesc: int, b: int, bdesc: int, beta: int, c: int,
    cdesc: int, d: int, ddesc: int, algo: int, workspace: int, workspace_size_in_bytes: int, stream: int,
) -> None:  # fmt: skip  # grouped by meaning
    """Queue d = epilogue(alpha op(a) op(b) + beta c) (cublasLtMatmul)."""
    _handles.find(light_handle)
    attributes = _products.find(compute_desc)
    layouts = [_layouts.find(layout) for layout in (adesc, bdesc, cdesc, ddesc)]
    _check(attributes, *layouts)
    left, right, added, out = (layout.at(address) for layout, address in zip(layouts, (a, b, c, d), strict=True))
    compute, scale = attributes[_COMPUTE], scale_dtype(left.dtype, attributes[_COMPUTE])
    if DTYPES[attributes[_SCALE]] != scale:
        raise LibraryError(Status.NOT_SUPPORTED, f"alpha and beta must have the dtype {scale}")
    factor, rest = from_host(alpha, scale), from_host(beta, scale)
    operations = [
        attributes.get(int(attribute), int(Operation.N))
        for attribute in (MatmulDescAttribute.TRANSA, MatmulDescAttribute.TRANSB)
    ]
    scales = [scale_of(attributes, name, operand) for name, operand in (("A", left), ("B", right), ("D", out))]
    epilogue = Epilogues(attributes, out)

    def multiply() -> None:
        for index in range(out.shape[0]):
            first, second = (
                _factor(operand.elements[index % max(operand.shape[0], 1)], operation, found)
                for operand, operation, found in zip((left, right), operations, scales, strict=False)
            )
            result = factor * multiplied(first, second, compute)
            if rest:
                result = result + rest * widened(added.elements[index % max(added.shape[0], 1)])
            result = epilogue.applied(result, first, second)
            out.elements[index] = narrowed(scales[2].stored(result), out.dtype)

    reads = [left, right, *((added,) if rest else ()), *epilogue.reads]
    reads += [operand for found in scales for operand in found.reads]
    writes = [out, *epilogue.writes, *scales[2].writes]
    work = vector(int(workspace), int(workspace_size_in_bytes), np.uint8)
    queue(stream, "cublasLtMatmul", multiply, reads=reads, writes=writes, workspaces=[work])


def _factor(matrix: Numbers, operation: int, scale: Scale) -> Numbers:
    """Return op(matrix), with the scales applied to an 8-bit float."""
    return turned(scale.loaded(matrix), operation)
