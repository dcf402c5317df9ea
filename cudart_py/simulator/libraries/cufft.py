"""cuFFT in software, with the names and parameters of `nvmath.bindings.cufft`: batched transforms, using SciPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from nvmath.bindings import cufft as bindings
from nvmath.bindings.cufft import Result, Type
from scipy import fft

from .common.calls import queue
from .common.functions import LibraryError, Objects, entry, missing
from .common.numbers import COMPLEX_HALF, DTYPES, Numbers, narrowed, widened
from .common.operands import Operand, array, vector

_call = entry(Result.EXEC_FAILED)
# The input and output dtypes of a transform, keyed by cufftType.
_TYPES: dict[int, tuple[np.dtype[Any], np.dtype[Any]]] = {
    Type.C2C: (np.dtype(np.complex64), np.dtype(np.complex64)),
    Type.Z2Z: (np.dtype(np.complex128), np.dtype(np.complex128)),
    Type.R2C: (np.dtype(np.float32), np.dtype(np.complex64)),
    Type.D2Z: (np.dtype(np.float64), np.dtype(np.complex128)),
    Type.C2R: (np.dtype(np.complex64), np.dtype(np.float32)),
    Type.Z2D: (np.dtype(np.complex128), np.dtype(np.float64)),
}
_FORWARD, _INVERSE = -1, 1
_MOST_WITHOUT_WORK = 64


class _Side(NamedTuple):
    """The layout of the input or output of a batch of transforms, in elements, as in cufftPlanMany."""

    dtype: np.dtype[Any]
    embed: tuple[int, ...]
    stride: int
    distance: int

    def at(self, address: int, shape: tuple[int, ...], batch: int) -> Operand:
        """Return the operand with this layout at an address."""
        strides = [self.stride]
        for size in reversed(self.embed[1:]):
            strides.insert(0, strides[0] * size)
        return array(int(address), (batch, *shape), self.dtype, (self.distance, *strides))


@dataclass
class _Plan:
    """The state of a plan: its stream and work area and, after `make_plan_many`, its transforms."""

    stream: int = 0
    area: int = 0
    allocates: bool = True
    work_bytes: int = 0
    lengths: tuple[int, ...] = ()
    batch: int = 0
    source: _Side | None = None
    target: _Side | None = None


_plans: Objects[_Plan] = Objects(Result.INVALID_PLAN)


def __getattr__(name: str) -> Any:
    return missing(bindings, Result.NOT_SUPPORTED, name)


def create() -> int:
    """Return a new plan, which must then be set up by `make_plan_many` or `xt_make_plan_many` (cufftCreate)."""
    return _plans.add(_Plan())


def destroy(plan: int) -> None:
    """Destroy a plan (cufftDestroy)."""
    _plans.remove(plan)


def set_auto_allocation(plan: int, auto_allocate: int) -> None:
    """Set whether the plan allocates its work area or the program provides one (cufftSetAutoAllocation)."""
    _plans.find(plan).allocates = bool(auto_allocate)


def set_stream(plan: int, stream: int) -> None:
    """Set the stream of later transforms (cufftSetStream)."""
    _plans.find(plan).stream = int(stream)


def set_work_area(plan: int, work_area: int) -> None:
    """Set the work area of later transforms (cufftSetWorkArea)."""
    _plans.find(plan).area = int(work_area)


@_call
def make_plan_many(
    plan: int, rank: int, n: Any, inembed: Any, istride: int, idist: int, onembed: Any, ostride: int, odist: int,
    type: int, batch: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Set up a batch of transforms and return the size of its work area in bytes (cufftMakePlanMany)."""
    if int(type) not in _TYPES:
        raise LibraryError(Result.INVALID_TYPE)
    return _make(plan, n, (inembed, istride, idist), (onembed, ostride, odist), _TYPES[int(type)], batch)


# The function with 64-bit sizes is the same, because Python's integers are unbounded.
make_plan_many64 = make_plan_many


@_call
def xt_make_plan_many(
    plan: int, rank: int, n: Any, inembed: Any, istride: int, idist: int, inputtype: int, onembed: Any, ostride: int,
    odist: int, outputtype: int, batch: int, executiontype: int,
) -> int:  # fmt: skip  # grouped by meaning
    """Set up transforms whose types are cudaDataTypes, including half precision (cufftXtMakePlanMany)."""
    dtypes = DTYPES.get(int(inputtype)), DTYPES.get(int(outputtype))
    if dtypes[0] is None or dtypes[1] is None or not (_is_complex(dtypes[0]) or _is_complex(dtypes[1])):
        raise LibraryError(Result.INVALID_TYPE)
    return _make(plan, n, (inembed, istride, idist), (onembed, ostride, odist), (dtypes[0], dtypes[1]), batch)


def _is_complex(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c" or dtype == COMPLEX_HALF


def _make(
    plan: int,
    n: Any,
    source: tuple[Any, int, int],
    target: tuple[Any, int, int],
    dtypes: tuple[np.dtype[Any], np.dtype[Any]],
    batch: int,
) -> int:
    found = _plans.find(plan)
    lengths = tuple(int(length) for length in n)
    if not 1 <= len(lengths) <= 3 or min(lengths) < 1 or batch < 1:
        raise LibraryError(Result.INVALID_SIZE, f"{batch} transforms of lengths {lengths}")
    found.lengths, found.batch = lengths, int(batch)
    found.source = _side(_shape(lengths, dtypes[0], dtypes[1]), source, dtypes[0])
    found.target = _side(_shape(lengths, dtypes[1], dtypes[0]), target, dtypes[1])
    # Like an H200's cuFFT, short transforms need no work area.
    size = math.prod(lengths)
    found.work_bytes = 0 if size <= _MOST_WITHOUT_WORK else batch * size * max(dtype.itemsize for dtype in dtypes)
    return found.work_bytes


def _shape(lengths: tuple[int, ...], dtype: np.dtype[Any], other: np.dtype[Any]) -> tuple[int, ...]:
    """Return the shape of the input or output; the spectrum of n real elements has only n // 2 + 1 complex elements."""
    if _is_complex(dtype) and not _is_complex(other):
        return (*lengths[:-1], lengths[-1] // 2 + 1)
    return lengths


def _side(shape: tuple[int, ...], layout: tuple[Any, int, int], dtype: np.dtype[Any]) -> _Side:
    embed, stride, distance = layout
    if not embed:  # a null pointer: all elements are contiguous, whatever the stride says
        return _Side(dtype, shape, 1, math.prod(shape))
    return _Side(dtype, tuple(int(size) for size in embed), int(stride), int(distance))


def _queue(name: str, plan: int, source: int, target: int, direction: int) -> None:
    found = _plans.find(plan)
    if found.source is None or found.target is None:
        raise LibraryError(Result.INVALID_PLAN, "the plan has not been made")
    if found.work_bytes and not (found.allocates or found.area):
        raise LibraryError(Result.NO_WORKSPACE, "the plan has no work area")
    if found.area and int(target) == found.area:  # an H200's cuFFT fails then, even if it needs no work area
        raise LibraryError(Result.EXEC_FAILED, "the output is the work area")
    lengths, dtype, dtype_out = found.lengths, found.source.dtype, found.target.dtype
    complex_bytes = max(dtype.itemsize, dtype_out.itemsize)
    if int(source) % complex_bytes or int(target) % complex_bytes:
        raise LibraryError(Result.INVALID_VALUE, f"arrays must begin at multiples of {complex_bytes} bytes")
    x = found.source.at(source, _shape(lengths, dtype, dtype_out), found.batch)
    out = found.target.at(target, _shape(lengths, dtype_out, dtype), found.batch)
    axes = tuple(range(1, len(lengths) + 1))

    def transform() -> None:
        numbers = widened(x.elements)
        out.elements[...] = narrowed(_transformed(numbers, lengths, axes, dtype_out, direction), dtype_out)

    # Multi-dimensional complex-to-real transforms overwrite their input, as the documentation warns.
    overwritten = [x] if not _is_complex(dtype_out) and len(lengths) > 1 else []
    own = found.work_bytes and not found.allocates
    area = [vector(found.area, found.work_bytes, np.uint8)] if own else []
    queue(found.stream, name, transform, reads=[x], writes=[out, *overwritten], workspaces=area)


def _transformed(
    x: Numbers, lengths: tuple[int, ...], axes: tuple[int, ...], dtype_out: np.dtype[Any], direction: int
) -> Numbers:
    """Return the unscaled transforms along all axes except the first."""
    if x.dtype.kind != "c":
        return np.asarray(fft.rfftn(x, axes=axes))
    if not _is_complex(dtype_out):
        return np.asarray(fft.irfftn(x, lengths, axes=axes, norm="forward"))
    if direction == _FORWARD:
        return np.asarray(fft.fftn(x, axes=axes))
    return np.asarray(fft.ifftn(x, axes=axes, norm="forward"))


@_call
def exec_c2c(plan: int, idata: int, odata: int, direction: int) -> None:
    """Queue complex-to-complex transforms in single precision (cufftExecC2C)."""
    _queue("cufftExecC2C", plan, idata, odata, direction)


@_call
def exec_z2z(plan: int, idata: int, odata: int, direction: int) -> None:
    """Queue complex-to-complex transforms in double precision (cufftExecZ2Z)."""
    _queue("cufftExecZ2Z", plan, idata, odata, direction)


@_call
def exec_r2c(plan: int, idata: int, odata: int) -> None:
    """Queue real-to-complex transforms in single precision (cufftExecR2C)."""
    _queue("cufftExecR2C", plan, idata, odata, _FORWARD)


@_call
def exec_d2z(plan: int, idata: int, odata: int) -> None:
    """Queue real-to-complex transforms in double precision (cufftExecD2Z)."""
    _queue("cufftExecD2Z", plan, idata, odata, _FORWARD)


@_call
def exec_c2r(plan: int, idata: int, odata: int) -> None:
    """Queue complex-to-real transforms in single precision (cufftExecC2R)."""
    _queue("cufftExecC2R", plan, idata, odata, _INVERSE)


@_call
def exec_z2d(plan: int, idata: int, odata: int) -> None:
    """Queue complex-to-real transforms in double precision (cufftExecZ2D)."""
    _queue("cufftExecZ2D", plan, idata, odata, _INVERSE)


@_call
def xt_exec(plan: int, input: int, output: int, direction: int) -> None:
    """Queue transforms of the types for which the plan was set up (cufftXtExec)."""
    _queue("cufftXtExec", plan, input, output, direction)
