"""Matrix products with an epilogue in the same pass: a bias, an activation, or their gradients, with cuBLASLt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..dtypes import Kind, name_of
from .lt_products import ALGORITHMS, LtCall, Problem, part
from .scalars import compute_type, factor, operation

TYPES = ("float16", "bfloat16", "float32", "float64")
ACTIVATIONS = (None, "relu", "gelu")
# The columns of a matrix of bits begin a multiple of this number of bits apart, and others of this number of elements.
_MASK_BITS, _AUX_ELEMENTS = 128, 8


class _Operands(NamedTuple):
    """The checked factors of a product, its output if it is given, and the addresses and sizes of all of them."""

    device: Device
    stream: Stream
    kind: Kind
    views: tuple[views.Matrix, views.Matrix, views.Matrix]
    operations: tuple[int, int]
    compute: int
    scale: Kind
    arrays: tuple[DeviceArray, DeviceArray, DeviceArray | None]
    spans: dict[str, tuple[int, int]]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the output."""
        a, b, _ = self.arrays
        return a.shape[0], b.shape[1]


def gemm_epilogue(
    a: DeviceArray,
    b: DeviceArray,
    bias: DeviceArray | None = None,
    out: DeviceArray | None = None,
    *,
    activation: str | None = None,
    aux: DeviceArray | None = None,
    compute: str | None = None,
    algorithm: str = "heuristic",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = activation(a b + bias) in one pass and return `out`, by default a new array (cublasLtMatmul).

    - `bias` has one element per column of `out`.
    - `activation` is None, "relu" or "gelu" (the approximation with the hyperbolic tangent).
    - `aux`, from `empty_aux`, also receives what the gradient of the activation needs: for "gelu" the values before the
      activation, and for "relu" one bit per element, which says whether it is positive. Pass it to `gemm_gradient`.
    - `algorithm="search"` measures the algorithms that cuBLASLt recommends, in the first call with these layouts, and
      uses the fastest one in this call and in all later calls of the thread. The first call waits for the device, and
      cannot be captured.

    The rows or the columns of `a` and `b` must be contiguous. All arrays have the same dtype: float16, bfloat16,
    float32 or float64. Sums of the half-precision types are computed in single precision. `compute` is as for `gemm`.
    Raises TypeError or ValueError, naming the operand, before anything is queued.
    """
    call = "gemm_epilogue"
    arguments.choice(call, "activation", activation, ACTIVATIONS)
    arguments.choice(call, "algorithm", algorithm, ALGORITHMS)
    words = [*([activation.upper()] if activation else []), *(["AUX"] if aux is not None else [])]
    name = "_".join([*words, *(["BIAS"] if bias is not None else [])]) or "DEFAULT"
    operands = _checked(call, a, b, out, compute, stream, {"bias": bias, "aux": aux})
    pointers: dict[str, DeviceArray] = {}
    settings: list[tuple[str, int]] = []
    columns = operands.shape[1]
    if bias is not None:
        _check_vector(call, "bias", bias, operands, columns, "for 'b' of as many columns")
        pointers["BIAS_POINTER"] = bias
    if aux is not None:
        if activation is None:
            raise arguments.wrong_value(call, "aux", "None without an activation", aux)
        settings.append(("EPILOGUE_AUX_LD", _check_aux(call, aux, operands, activation)))
        pointers["EPILOGUE_AUX_POINTER"] = aux
    return _run(call, operands, name, settings, pointers, algorithm)


def gemm_gradient(
    a: DeviceArray,
    b: DeviceArray,
    activation: str,
    aux: DeviceArray,
    out: DeviceArray | None = None,
    *,
    bias_gradient: DeviceArray | None = None,
    compute: str | None = None,
    algorithm: str = "heuristic",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue a product of the backward pass, out = (a b) activation'(z), and return `out` (cublasLtMatmul).

    `activation` is "relu" or "gelu", and `aux` is the array that `gemm_epilogue` filled in the forward pass. If given,
    `bias_gradient` receives the sum of each column of `out`, which is the gradient of the layer's bias. Dtypes,
    layouts, `compute` and `algorithm` are those of `gemm_epilogue`. Raises TypeError or ValueError, naming the operand,
    before anything is queued.
    """
    call = "gemm_gradient"
    arguments.choice(call, "activation", activation, ACTIVATIONS[1:])
    arguments.choice(call, "algorithm", algorithm, ALGORITHMS)
    operands = _checked(call, a, b, out, compute, stream, {"bias_gradient": bias_gradient})
    views.check_place(call, operands.device, aux=aux)
    pointers = {"EPILOGUE_AUX_POINTER": aux}
    settings = [("EPILOGUE_AUX_LD", _check_aux(call, aux, operands, activation))]
    if bias_gradient is not None:
        _check_vector(call, "bias_gradient", bias_gradient, operands, operands.shape[1], "for 'b' of as many columns")
        pointers["BIAS_POINTER"] = bias_gradient
    name = f"D{activation.upper()}{'' if bias_gradient is None else '_BGRAD'}"
    return _run(call, operands, name, settings, pointers, algorithm)


def gemm_sums(
    a: DeviceArray,
    b: DeviceArray,
    sums: DeviceArray,
    out: DeviceArray | None = None,
    *,
    of: str = "b",
    compute: str | None = None,
    algorithm: str = "heuristic",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = a b, and the sums of one factor over the summed index, and return `out`.

    `sums` receives, with `of="b"`, the sum of each column of `b`, and with `of="a"`, the sum of each row of `a`. In the
    product x^T dz, which is the gradient of a weight, the sums of the columns of dz are the gradient of the bias
    (cublasLtMatmul with CUBLASLT_EPILOGUE_BGRADA and BGRADB). The elements along the summed index must not be adjacent:
    for the sums of `b`, its rows must be contiguous, and for those of `a`, its columns, as in x.T. Dtypes, layouts,
    `compute` and `algorithm` are those of `gemm_epilogue`. Raises TypeError or ValueError, naming the operand, before
    anything is queued.
    """
    call = "gemm_sums"
    arguments.choice(call, "of", of, ("a", "b"))
    arguments.choice(call, "algorithm", algorithm, ALGORITHMS)
    operands = _checked(call, a, b, out, compute, stream, {}, by_columns=of == "a")
    views.check_place(call, operands.device, sums=sums)
    none = operation(call, "of", "N")
    if of == "b" and operands.operations[1] != none:
        raise arguments.unusable(call, "b", "have contiguous rows with of='b'", "contiguous columns", "pass b.copy()")
    if of == "a" and operands.operations[0] == none:
        raise arguments.unusable(call, "a", "have contiguous columns with of='a'", "contiguous rows", "pass x.T")
    _check_vector(call, "sums", sums, operands, operands.shape["ab".index(of)], f"for the sums of {of!r}")
    # cuBLAS is column-major, so its first factor is our second.
    return _run(call, operands, "BGRADA" if of == "b" else "BGRADB", [], {"BIAS_POINTER": sums}, algorithm)


def empty_aux(
    shape: tuple[int, int], dtype: DTypeLike, activation: str, *, stream: Stream | None = None
) -> DeviceArray:
    """Allocate the array `aux` of `gemm_epilogue` and `gemm_gradient`, for a product of a shape and dtype.

    For "relu", it has one bit per element, in rows of uint8 elements that are padded to 128 bits. For "gelu", it has
    the shape and the dtype of the product, in rows that are padded to a multiple of 8 elements.
    """
    call = "empty_aux"
    rows, columns = arguments.integers(call, "shape", shape, 2, least=0)
    kind = arguments.dtype(call, "dtype", dtype)
    arguments.choice(call, "activation", activation, ACTIVATIONS[1:])
    where, device = views.device_of(call, stream)
    with activated(device):
        if activation == "relu":
            return empty((rows, _padded(columns, _MASK_BITS) // 8), np.uint8, stream=where)
        return empty((rows, _padded(columns, _AUX_ELEMENTS)), kind, stream=where)[:, :columns]


def _padded(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _checked(
    call: str,
    a: DeviceArray,
    b: DeviceArray,
    out: DeviceArray | None,
    compute: str | None,
    stream: Stream | None,
    others: dict[str, DeviceArray | None],
    *,
    by_columns: bool = False,
) -> _Operands:
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a, b=b, **{name: other for name, other in others.items() if other is not None})
    kind = views.kind(call, "a", a, TYPES)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    left, a_by_columns = views.oriented(call, "a", a, by_columns=by_columns)
    right, b_by_columns = views.oriented(call, "b", b)
    shape = a.shape[0], b.shape[1]
    views.check_product(call, ("b", b.shape[0]), ("a", a.shape[1]))
    if not a.shape[1]:
        raise arguments.unusable(call, "a", "have at least one column, for a product with an epilogue", a.shape)
    numbers, scale = compute_type(call, kind, compute)
    spans = {"a": (a.pointer, left.span), "b": (b.pointer, right.span)}
    result = views.contiguous_matrix(shape, a.itemsize)
    if out is not None:
        views.check_place(call, device, out=out)
        views.require_dtype(call, "out", out, a.dtype, "like 'a'")
        arguments.same_shape(call, "out", out, shape, "for the product of 'a' and 'b'")
        result = views.matrix(call, "out", out)
        views.check_apart(call, "out", out.pointer, result.span, **spans)
        spans["out"] = out.pointer, result.span
    operations = operation(call, "a", "NT"[a_by_columns]), operation(call, "b", "NT"[b_by_columns])
    return _Operands(device, where, kind, (left, right, result), operations, numbers, scale, (a, b, out), spans)


def _check_vector(call: str, name: str, vector: DeviceArray, operands: _Operands, length: int, reason: str) -> None:
    views.require_dtype(call, name, vector, operands.arrays[0].dtype, "like 'a'")
    arguments.same_shape(call, name, vector, (length,), reason)
    arguments.contiguous(call, name, vector)
    views.check_apart(call, name, vector.pointer, vector.nbytes, **operands.spans)


def _check_aux(call: str, aux: DeviceArray, operands: _Operands, activation: str) -> int:
    """Check the auxiliary array of an activation and return its leading dimension, in bits or elements."""
    rows, columns = operands.shape
    remedy = f"empty_aux({(rows, columns)}, {name_of(operands.arrays[0].dtype)}, {activation!r}) makes one"
    is_mask = activation == "relu"
    dtype = np.dtype(np.uint8) if is_mask else operands.arrays[0].dtype
    if aux.dtype != dtype:
        raise arguments.wrong_dtype(call, "aux", f"{name_of(dtype)} for {activation!r}", name_of(aux.dtype), remedy)
    width = _padded(columns, _MASK_BITS) // 8 if is_mask else columns
    if aux.shape != (rows, width):
        raise arguments.unusable(call, "aux", f"have shape {(rows, width)} for {activation!r}", aux.shape, remedy)
    view = views.matrix(call, "aux", aux)
    leading = view.leading * 8 if is_mask else view.leading
    multiple = _MASK_BITS if is_mask else _AUX_ELEMENTS
    if rows > 1 and leading % multiple:
        what = "bits" if is_mask else "elements"
        raise arguments.unusable(
            call, "aux", f"have rows that begin a multiple of {multiple} {what} apart", leading, remedy
        )
    views.check_apart(call, "aux", aux.pointer, view.span, **operands.spans)
    return _padded(leading, multiple)


def _run(
    call: str,
    operands: _Operands,
    epilogue: str,
    settings: list[tuple[str, int]],
    pointers: dict[str, DeviceArray],
    algorithm: str,
) -> DeviceArray:
    a, b, out = operands.arrays
    if out is None:
        with activated(operands.device):
            out = empty(operands.shape, a.dtype, stream=operands.stream)
    if out.size:
        left, right, result = operands.views
        parts = part(operands.kind, left, a), part(operands.kind, right, b), part(operands.kind, result, out)
        code = int(library("cublasLt").Epilogue[epilogue])
        settings = [("EPILOGUE", code), *settings]
        problem = Problem(parts, operands.operations, operands.compute, operands.scale.scalar_code, tuple(settings))
        factors = factor(1.0, operands.scale), factor(0.0, operands.scale)
        product = LtCall(call, operands.stream, operands.device, problem, factors, (a, b, out), pointers)
        product.run(search=algorithm == "search")
    return out
