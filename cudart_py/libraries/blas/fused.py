"""Matrix products with an epilogue (a bias and an activation) in one pass, with cuBLASLt."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import arguments
from ...context.current import activated
from ...context.lifetimes import Handle  # releases descriptors at the right time
from ...errors import NotSupportedError
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..dtypes import Kind
from ..failures import failure
from ..handles import LibraryHandle, keep, library_handle, scratch, thread_cache, workspace_size
from .scalars import compute_type, factor

TYPES = ("float16", "bfloat16", "float32")
EPILOGUES: dict[str | None, str] = {None: "BIAS", "relu": "RELU_BIAS", "gelu": "GELU_BIAS"}
MOST_PLANS = 64


class _Plan(Handle):
    """The cuBLASLt descriptors of one product and the algorithm chosen for it."""

    __slots__ = (
        "algorithm",
        "algorithm_address",
        "bias",
        "descriptors",
        "device",
        "functions",
        "held",
        "workspace_bytes",
    )

    def __init__(
        self,
        handle: LibraryHandle,
        kind: Kind,
        shapes: tuple[views.Matrix, views.Matrix, views.Matrix],
        alignments: tuple[int, int, int],
        epilogue: str,
        compute: int,
    ) -> None:
        self._value, self._owned = None, True
        self.bias = 0
        self.device, self.functions = handle.device, handle.functions
        functions, attributes = self.functions, handle.functions.MatmulDescAttribute
        self.held = factor(1.0, kind), factor(0.0, kind)
        # cuBLAS is column-major, so it sees the transpose of every matrix: out^T = b^T a^T. The rows of out^T, which
        # have one bias each, are the columns of out.
        self.descriptors = [functions.matmul_desc_create(compute, kind.scalar_code)]
        self._value = self.descriptors[0]
        self._set(attributes.EPILOGUE, int(functions.Epilogue[epilogue]))
        a, b, out = shapes
        for matrix in (b, a, out):
            self.descriptors.append(
                functions.matrix_layout_create(kind.code, matrix.columns, matrix.rows, matrix.leading)
            )
        self.algorithm = self._choose(handle, alignments)
        self.algorithm_address = self.algorithm.ctypes.data
        self.workspace_bytes = int(self.algorithm["workspace_size"][0])

    def _set(self, attribute: Any, value: int) -> None:
        kind = self.functions.get_matmul_desc_attribute_dtype(int(attribute))
        memory = np.array([value], kind)
        self.functions.matmul_desc_set_attribute(self.descriptors[0], int(attribute), memory.ctypes.data, memory.nbytes)

    def turn_to(self, bias: int) -> None:
        """Set the address of the bias (cublasLtMatmulDescSetAttribute)."""
        if bias != self.bias:
            self._set(self.functions.MatmulDescAttribute.BIAS_POINTER, bias)
            self.bias = bias

    def _choose(self, handle: LibraryHandle, alignments: tuple[int, int, int]) -> NDArray[Any]:
        functions, wish = self.functions, self.functions.MatmulPreferenceAttribute
        a, b, out = alignments
        # Without a stated alignment, cuBLASLt assumes that pointers are aligned to 256 bytes. The address of a window
        # of a larger matrix may not be.
        wishes = {
            wish.MAX_WORKSPACE_BYTES: workspace_size(self.device),
            wish.MIN_ALIGNMENT_A_BYTES: b,
            wish.MIN_ALIGNMENT_B_BYTES: a,
            wish.MIN_ALIGNMENT_C_BYTES: out,
            wish.MIN_ALIGNMENT_D_BYTES: out,
        }
        preference = functions.matmul_preference_create()
        try:
            for attribute, value in wishes.items():
                memory = np.array([value], functions.get_matmul_preference_attribute_dtype(int(attribute)))
                functions.matmul_preference_set_attribute(preference, int(attribute), memory.ctypes.data, memory.nbytes)
            found = np.zeros(1, functions.matmul_heuristic_result_dtype)
            count = np.zeros(1, np.int32)
            product, first, second, out = self.descriptors
            functions.matmul_algo_get_heuristic(
                handle.native, product, first, second, out, out, preference, 1, found.ctypes.data, count.ctypes.data
            )
        finally:
            functions.matmul_preference_destroy(preference)
        if not count[0]:
            raise NotSupportedError("cublasLtMatmulAlgoGetHeuristic: no algorithm for this product and epilogue")
        return found

    def _release(self, value: Any) -> None:
        with activated(self.device):
            product, *layouts = self.descriptors
            for layout in layouts:
                self.functions.matrix_layout_destroy(layout)
            self.functions.matmul_desc_destroy(product)


def gemm_epilogue(
    a: DeviceArray,
    b: DeviceArray,
    bias: DeviceArray,
    out: DeviceArray | None = None,
    *,
    activation: str | None = None,
    compute: str | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = activation(a b + bias) in one pass and return `out`, by default a new array (cublasLtMatmul).

    `bias` has one element per column of `out`. `activation` is None, "relu" or "gelu" (the approximation with the
    hyperbolic tangent). All arrays have the same dtype: float16, bfloat16 or float32. Sums are computed in single
    precision. `compute` is as for `gemm`. Raises TypeError or ValueError, naming the operand, before anything is
    queued.
    """
    call = "gemm_epilogue"
    where, device = views.device_of(call, stream)
    views.check_place(call, device, a=a, b=b, bias=bias)
    kind = views.kind(call, "a", a, TYPES)
    views.require_dtype(call, "b", b, a.dtype, "like 'a'")
    views.require_dtype(call, "bias", bias, a.dtype, "like 'a'")
    left, right = views.matrix(call, "a", a), views.matrix(call, "b", b)
    views.check_product(call, ("b", right.rows), ("a", left.columns))
    if not left.columns:
        raise arguments.unusable(call, "a", "have at least one column, for a product to add the bias to", a.shape)
    arguments.same_shape(call, "bias", bias, (right.columns,), "for 'b' of as many columns")
    arguments.contiguous(call, "bias", bias)
    arguments.choice(call, "activation", activation, EPILOGUES)
    numbers, _ = compute_type(call, kind, compute)
    if out is None:
        with activated(device):
            out = empty((left.rows, right.columns), a.dtype, stream=where)
    views.check_place(call, device, out=out)
    views.require_dtype(call, "out", out, a.dtype, "like 'a'")
    arguments.same_shape(call, "out", out, (left.rows, right.columns), "for the product of 'a' and 'b'")
    result = views.matrix(call, "out", out)
    views.check_apart(
        call,
        "out",
        out.pointer,
        result.span,
        a=(a.pointer, left.span),
        b=(b.pointer, right.span),
        bias=(bias.pointer, bias.nbytes),
    )
    if not out.size:
        return out
    alignments = _alignment(a), _alignment(b), _alignment(out)
    key = (device.ordinal, kind.name, left, right, result, alignments, activation, numbers)
    with activated(device):
        try:
            plan = _plan(key, library_handle("cublasLt", where, device), kind, (left, right, result))
            workspace = scratch(device).get(plan.workspace_bytes, where)
            _queue(plan, where, (a, b, bias, out), workspace)
        except Exception as error:
            raise failure("cublasLtMatmul", error) from error
    keep(where, "gemm_epilogue", a, b, bias, out, workspace, plan)
    return out


def _plan(
    key: tuple[Any, ...], handle: LibraryHandle, kind: Kind, shapes: tuple[views.Matrix, views.Matrix, views.Matrix]
) -> _Plan:
    plans = thread_cache("cublasLt")
    plan: _Plan | None = plans.get(key)
    if plan is None:
        if len(plans) >= MOST_PLANS:
            del plans[next(iter(plans))]
        *_, alignments, activation, compute = key
        plan = plans[key] = _Plan(handle, kind, shapes, alignments, EPILOGUES[activation], compute)
    return plan


def _alignment(array: DeviceArray) -> int:
    """Return the largest power of two, at most 256, to which an array's address is aligned."""
    return min(array.pointer & -array.pointer, 256)


def _queue(plan: _Plan, stream: Stream, arrays: tuple[DeviceArray, ...], workspace: DeviceArray) -> None:
    a, b, bias, out = arrays
    functions = plan.functions
    plan.turn_to(bias.pointer)
    product, layout_b, layout_a, layout = plan.descriptors
    alpha, beta = plan.held
    handle = library_handle("cublasLt", stream, plan.device)
    functions.matmul(
        handle.native, product, alpha.address, b.pointer, layout_b, a.pointer, layout_a, beta.address,
        out.pointer, layout, out.pointer, layout, plan.algorithm_address, workspace.pointer, plan.workspace_bytes,
        stream.handle,
    )  # fmt: skip  # grouped by meaning
