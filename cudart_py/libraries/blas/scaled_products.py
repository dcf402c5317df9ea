"""Products of matrices of 8-bit floats, with scales for whole matrices, rows or blocks, with cuBLASLt."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...base import arguments
from ...context.current import activated
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..dtypes import KINDS, bfloat16, kind_of, name_of
from .lt_products import ALGORITHMS, LtCall, Problem, part
from .products import check_along_k
from .scalars import compute_type, factor, operation

TYPES = ("float8_e4m3", "float8_e5m2")
RESULTS = ("bfloat16", "float16", "float32", "float8_e4m3")
# Elements along k that share a scale, and the alignment that cuBLASLt's kernels for 8-bit floats need, in bytes.
BLOCK, ALIGNMENT = 128, 16
# The scales of 128 x 128 blocks are stored in lines along k of a multiple of this number.
LINE = 4


class _Scale(NamedTuple):
    """A checked scale: the name of its cublasLtMatmulMatrixScale_t and its array, None for a matrix without one."""

    mode: str
    array: DeviceArray | None


def scaled_gemm(
    a: DeviceArray,
    b: DeviceArray,
    scale_a: DeviceArray | None = None,
    scale_b: DeviceArray | None = None,
    out: DeviceArray | None = None,
    *,
    dtype: DTypeLike = bfloat16,
    bias: DeviceArray | None = None,
    scale_out: DeviceArray | None = None,
    amax: DeviceArray | None = None,
    fast_accumulation: bool = False,
    algorithm: str = "heuristic",
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue out = (scale_a a) (scale_b b) + bias for matrices of 8-bit floats, and return `out` (cublasLtMatmul).

    `a` and `b` have the dtype `float8_e4m3` or `float8_e5m2`, but not both the latter. The tensor cores read them along
    the summed index k, so the rows of `a` and the columns of `b` must be contiguous: pass `w.T`, where `w` has the
    shape (n, k). They must begin a multiple of 16 bytes apart. `out` has the dtype `dtype`: `bfloat16`, float16,
    float32 or `float8_e4m3`. For `float8_e4m3`, the product is multiplied by `scale_out`, an array of one float32
    element. `amax`, another such array, receives the largest absolute value before this scaling. `bias` has one element
    per column of `out`. Its dtype is float16 if that of `out` is, and `bfloat16` otherwise.

    The scales are float32 arrays on the device, for `a` of shape (m, k) and `b` of shape (k, n), and are both of the
    same kind, except that the two kinds of blocks may be combined:

    | kind | shape of `scale_a` | shape of `scale_b` |
    |---|---|---|
    | the whole matrix, or None for 1 | (1,) | (1,) |
    | each row of `a` and column of `b` | (m,) | (n,) |
    | blocks of 128 elements along k | (m, k / 128), with contiguous columns | (k / 128, n) |
    | blocks of 128 x 128 elements | (m / 128, k / 128) | (k / 128, n / 128), with contiguous columns |

    Numbers of blocks are rounded up. Only one of the factors can have blocks of 128 x 128 elements. Their scales are
    stored in lines along k that begin as many elements apart as the next multiple of 4. Scales of rows and blocks need
    compute capability 9.0 and CUDA 12.9.

    Sums are computed in single precision. `fast_accumulation` lets the tensor cores add with fewer bits, which is
    faster on compute capability 9.0. `algorithm` is as for `gemm_epilogue`. Raises TypeError or ValueError, naming the
    operand, before anything is queued, and NotSupportedError for a product that the GPU or cuBLASLt does not have.
    """
    call = "scaled_gemm"
    arguments.choice(call, "algorithm", algorithm, ALGORITHMS)
    fast_accumulation = arguments.flag(call, "fast_accumulation", fast_accumulation)
    where, device = views.device_of(call, stream)
    others = {"scale_a": scale_a, "scale_b": scale_b, "bias": bias, "out": out, "scale_out": scale_out, "amax": amax}
    views.check_place(call, device, a=a, b=b, **{name: other for name, other in others.items() if other is not None})
    kinds = views.kind(call, "a", a, TYPES), views.kind(call, "b", b, TYPES)
    if kinds[0].name == kinds[1].name == "float8_e5m2":
        raise arguments.wrong_dtype(call, "b", "float8_e4m3, since 'a' is of float8_e5m2", "float8_e5m2")
    left, a_by_columns = views.oriented(call, "a", a)
    right, b_by_columns = views.oriented(call, "b", b, by_columns=True)
    views.check_product(call, ("b", b.shape[0]), ("a", a.shape[1]))
    check_along_k(call, a=(left, not a_by_columns), b=(right, b_by_columns), step=ALIGNMENT)
    for name, array in (("a", a), ("b", b)):
        if array.pointer % ALIGNMENT:
            raise arguments.unusable(call, name, f"begin at a multiple of {ALIGNMENT} bytes", f"at {array.pointer:#x}")
    shape = a.shape[0], b.shape[1]
    if not a.shape[1]:
        raise arguments.unusable(call, "a", "have at least one column", a.shape)
    scales = _scale(call, "scale_a", scale_a, a.shape), _scale(call, "scale_b", scale_b, b.shape[::-1], transposed=True)
    _check_pair(call, *scales)
    result_dtype = arguments.dtype(call, "dtype", dtype)
    result_dtype = result_dtype if out is None else out.dtype
    kind = kind_of(result_dtype)
    if kind is None or kind.name not in RESULTS:
        name = "dtype" if out is None else "out"
        raise arguments.wrong_dtype(call, name, views.one_of(RESULTS), name_of(result_dtype))
    result = views.contiguous_matrix(shape, result_dtype.itemsize)
    if out is not None:
        arguments.same_shape(call, "out", out, shape, "for the product of 'a' and 'b'")
        result = views.matrix(call, "out", out)
    if result.leading * result_dtype.itemsize % ALIGNMENT and shape[0] > 1:
        raise arguments.unusable(
            call, "b" if out is None else "out", f"have rows of 'out' that begin a multiple of {ALIGNMENT} bytes apart",
            result.leading * result_dtype.itemsize,
            "pad the columns of 'b', or pass a slice of a padded array as 'out'",
        )  # fmt: skip  # grouped by meaning
    for name, number in (("scale_out", scale_out), ("amax", amax)):
        if number is not None:
            if kind.name != "float8_e4m3":
                raise arguments.wrong_value(call, name, f"None for an output of dtype {kind.name}", number)
            views.require_dtype(call, name, number, np.dtype(np.float32), "like every scale")
            arguments.same_shape(call, name, number, (1,), "for one number")
    if bias is not None:
        half = result_dtype if kind.name == "float16" else bfloat16
        views.require_dtype(call, "bias", bias, half, f"for an output of dtype {kind.name}")
        arguments.same_shape(call, "bias", bias, shape[1:], "for 'b' of as many columns")
        arguments.contiguous(call, "bias", bias)
    operands = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "bias": bias, "scale_out": scale_out}
    read = {name: views.extent_of(array) for name, array in operands.items() if array is not None}
    for name, written in (("out", out), ("amax", amax)):
        if written is not None:
            views.check_apart(call, name, *views.extent_of(written), **read)
            read[name] = views.extent_of(written)
    if out is None:
        with activated(device):
            out = empty(shape, result_dtype, stream=where)
    if not out.size:
        return out
    compute, _ = compute_type(call, KINDS[np.dtype(np.float32)], None)
    settings, pointers = _settings(scales, bias, fast=fast_accumulation)
    if scale_out is not None:
        pointers["D_SCALE_POINTER"] = scale_out
    if amax is not None:
        pointers["AMAX_D_POINTER"] = amax
    problem = Problem(
        (part(kinds[0], left, a), part(kinds[1], right, b), part(kind, result, out)),
        (operation(call, "a", "N"), operation(call, "b", "T")),
        compute,
        KINDS[np.dtype(np.float32)].code,
        settings,
        # The matrix that beta = 0 multiplies cannot have 8-bit floats.
        added=KINDS[bfloat16].code if kind.name == "float8_e4m3" else None,
    )
    factors = factor(1.0, kinds[0]), factor(0.0, kinds[0])
    LtCall(call, where, device, problem, factors, (a, b, out), pointers).run(search=algorithm == "search")
    return out


def _settings(
    scales: tuple[_Scale, _Scale], bias: DeviceArray | None, *, fast: bool
) -> tuple[tuple[tuple[str, int], ...], dict[str, DeviceArray]]:
    """Return the attributes of the product, and the arrays that others point to."""
    enums = library("cublasLt")
    settings = [("FAST_ACCUM", int(fast))]
    pointers: dict[str, DeviceArray] = {}
    # cuBLAS is column-major, so its first factor is our second.
    for letter, scale in zip("BA", scales, strict=True):
        if scale.array is not None:
            settings.append((f"{letter}_SCALE_MODE", int(enums.MatmulMatrixScale[scale.mode])))
            pointers[f"{letter}_SCALE_POINTER"] = scale.array
    if bias is not None:
        kind = kind_of(bias.dtype)
        settings.append(("EPILOGUE", int(enums.Epilogue.BIAS)))
        if kind is not None:
            settings.append(("BIAS_DATA_TYPE", kind.code))
        pointers["BIAS_POINTER"] = bias
    return tuple(settings), pointers


def _scale(
    call: str, name: str, scale: DeviceArray | None, shape: tuple[int, ...], *, transposed: bool = False
) -> _Scale:
    """Return a checked scale of a matrix with `shape` (lines, k); `transposed` says that its array is transposed."""
    if scale is None:
        return _Scale("SCALAR_32F", None)
    views.require_dtype(call, name, scale, np.dtype(np.float32), "like every scale")
    lines, depth = shape
    blocks = -(-depth // BLOCK)
    rows_of_blocks = scale.T if transposed else scale
    if scale.shape in ((1,), ()):
        return _Scale("SCALAR_32F", scale)
    if scale.shape == (lines,):
        arguments.contiguous(call, name, scale)
        return _Scale("OUTER_VEC_32F", scale)
    if rows_of_blocks.shape == (lines, blocks):
        if not rows_of_blocks.T.is_contiguous:
            raise _unordered(call, name, "contiguous rows" if transposed else "contiguous columns", scale)
        return _Scale("VEC128_32F", scale)
    if rows_of_blocks.shape == (-(-lines // BLOCK), blocks):
        step = -(-blocks // LINE) * LINE * scale.itemsize
        if (blocks > 1 and rows_of_blocks.strides[1] != scale.itemsize) or (
            rows_of_blocks.shape[0] > 1 and rows_of_blocks.strides[0] != step
        ):
            which = f"contiguous {'columns' if transposed else 'rows'} that begin {step} bytes apart"
            raise _unordered(call, name, which, scale)
        return _Scale("BLK128x128_32F", scale)
    allowed: tuple[Any, ...] = ((1,), (lines,), (lines, blocks), (-(-lines // BLOCK), blocks))
    shapes = (str(each[::-1] if transposed else each) for each in allowed)
    raise arguments.unusable(call, name, f"have shape {views.one_of(shapes)}", scale.shape)


def _unordered(call: str, name: str, rule: str, scale: DeviceArray) -> ValueError:
    return arguments.unusable(call, name, f"have {rule}", f"of shape {scale.shape} with strides {scale.strides}")


def _check_pair(call: str, first: _Scale, second: _Scale) -> None:
    """Raise ValueError for scales that cuBLASLt does not combine."""
    blocks = {"VEC128_32F", "BLK128x128_32F"}
    modes = {first.mode, second.mode}
    if modes == {"BLK128x128_32F"}:
        raise arguments.unusable(
            call, "scale_b", "have blocks of 128 elements, since 'scale_a' has blocks of 128 x 128"
        )
    if len(modes) > 1 and modes != blocks:
        raise arguments.unusable(
            call, "scale_b", "be of the same kind as 'scale_a': of the whole matrix, of rows and columns, or of blocks"
        )
