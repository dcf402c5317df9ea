"""New plans for transforms: checks of the arrays, and the passes over elements before and after cuFFT's calls."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base import arguments
from ...context.current import activated
from ...context.device import Device
from ...errors import CompileError, CudaError, LinkError
from ...memory.array import DeviceArray
from .. import views
from ..dtypes import name_of
from ..failures import failure
from . import elements, layout
from .callbacks import Callbacks
from .cufft_plans import ALIGNMENT, C2C, C2R, R2C, CufftPlan, Transform, works_in_place
from .row_kernels import RowPlan, row_function

PreparedTransform = CufftPlan | RowPlan

_FAMILIES = {"fft": C2C, "ifft": C2C, "rfft": R2C, "irfft": C2R}
NORMS = ("backward", "ortho", "forward")
FORWARD, INVERSE = -1, 1


class NewArray(NamedTuple):
    """A contiguous output that is allocated only after all arguments have been checked."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes between neighbouring elements along each axis."""
        steps = itertools.accumulate(self.shape[:0:-1], operator.mul, initial=self.dtype.itemsize)
        return tuple(steps)[::-1]


def _span(array: DeviceArray | NewArray) -> int:
    steps = zip(array.shape, array.strides, strict=True)
    return sum((size - 1) * step for size, step in steps) + array.dtype.itemsize


def direction_of(name: str) -> int:
    """Return cuFFT's number for the direction of a transform."""
    return FORWARD if name in ("fft", "rfft") else INVERSE


def halved(length: int) -> int:
    """Return the number of complex elements in the transform of `length` real elements."""
    return length // 2 + 1


def find_transform(call: str, name: str, dtype: np.dtype[Any]) -> Transform:
    """Return the transform of function `name` for a dtype; raise TypeError if the function does not accept it.

    For real elements, `fft` and `ifft` use the transform of complex elements of the same precision.
    """
    family = _FAMILIES[name]
    for transform, of_reals in zip(family, R2C, strict=True):
        if dtype == transform.source or (family is C2C and dtype == of_reals.source):
            return transform
    names = [name_of(transform.source) for transform in (*family, *(R2C if family is C2C else ()))]
    raise arguments.wrong_dtype(call, "x", views.one_of(names), name_of(dtype), _remedy(name, dtype))


def _remedy(name: str, dtype: np.dtype[Any]) -> str:
    """Return the remedy for elements of a dtype that a transform does not accept."""
    if name == "rfft" and dtype.kind == "c":
        return "fft transforms complex elements"
    if name == "irfft" and dtype.kind == "f":
        return "ifft transforms real elements"
    return "to_device(x.to_host().astype(np.float64)) converts it" if name != "irfft" and dtype.kind in "biuf" else ""


def factor_of(name: str, norm: str, lengths: Sequence[int]) -> float:
    """Return the factor of the result of a transform, by NumPy's convention."""
    count = math.prod(lengths)
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "forward") == (name in ("fft", "rfft")) else 1.0


def check_lengths(call: str, x: DeviceArray, lengths: Sequence[int], remedy: str = "") -> None:
    """Raise ValueError for a transform without elements."""
    if min(lengths) < 1:
        rule = "have a shape with at least one element per transform"
        raise arguments.unusable(call, "x", rule, x.shape, remedy)


def make_plan(
    call: str,
    name: str,
    device: Device,
    x: DeviceArray,
    out: DeviceArray | NewArray,
    axes: tuple[str, int | tuple[int, ...] | None],
    norm: str,
    callbacks: Callbacks,
    *,
    aligned: bool,
) -> PreparedTransform:
    """Return a new plan for two arrays; raise TypeError or ValueError naming the operand if they do not match.

    `axes` are given with the name of the argument that they came from. `aligned` says whether the real elements, if
    there are any, begin where complex ones could.
    """
    transform = find_transform(call, name, x.dtype)
    along = layout.as_axes(call, axes[1], x.shape, axes[0])
    lengths = _check_arrays(call, name, transform, x, out, axes, along)
    target = layout.Operand("out", out.shape, out.strides, out.dtype.itemsize)
    # Real elements are first converted to complex ones in `out`, where the transform then works in place.
    converts = x.dtype != transform.source
    source = target if converts else layout.Operand("x", x.shape, x.strides, x.itemsize)
    factor = factor_of(name, norm, lengths)
    callbacks.check(call, (x.dtype, out.dtype))
    if converts and callbacks.load is not None:
        raise arguments.unusable(call, "load", f"be None for 'x' of {name_of(x.dtype)}, which has other elements")
    if factor != 1 and callbacks.store is not None:
        rule = f"be None with norm={norm!r}, by which the result is scaled"
        raise arguments.unusable(call, "store", rule, remedy="let the callback scale it")
    arrangement = layout.arrange(call, source, target, along)
    staged = _misaligned(name, arrangement, x, out, aligned=aligned)
    checked = _CheckedTransform(call, device, transform, lengths, arrangement, callbacks, factor)
    plan: PreparedTransform | None = None
    if callbacks.fuse is not False and not (staged or converts or len(arrangement.offsets) > 1):
        plan = _row_plan(name, checked)
        if plan is None and (callbacks.fuse or not callbacks.slow_in_cufft(transform[:2], lengths)):
            plan = _fused_by_cufft(checked, out)
    if plan is None:
        try:
            plan = _with_passes(checked, x, out, {"x": source, "out": target}, staged, along, converts=converts)
        except CudaError:
            raise
        except Exception as error:
            raise failure(f"cufftMakePlanMany for {name}", error) from error
    plan.in_place = not converts and works_in_place(transform, arrangement.source, arrangement.target)
    plan.spans = _span(x), _span(out)
    plan.output = out.shape, out.dtype
    return plan


def _check_arrays(
    call: str,
    name: str,
    transform: Transform,
    x: DeviceArray,
    out: DeviceArray | NewArray,
    axes: tuple[str, int | tuple[int, ...] | None],
    along: tuple[int, ...],
) -> tuple[int, ...]:
    """Check the dtypes and shapes of the arrays of a transform along some axes; return its lengths."""
    views.require_dtype(call, "out", out, transform.target, f"for 'x' of {name_of(x.dtype)}")
    expected, last = list(x.shape), along[-1]
    reason = f"for 'x' of shape {x.shape} with {axes[0]}={axes[1]}"
    if len(out.shape) != len(x.shape):
        raise arguments.unusable(call, "out", f"have {len(x.shape)} dimensions {reason}", f"the shape {out.shape}")
    real = x.shape if name == "rfft" else out.shape
    if name == "rfft":
        expected[last] = halved(x.shape[last])
    elif name == "irfft":
        expected[last] = out.shape[last]
        if x.shape[last] != halved(out.shape[last]):
            either = f"{2 * x.shape[last] - 2} or {2 * x.shape[last] - 1}"
            rule = f"have {either} elements along axis {last} {reason}"
            raise arguments.unusable(call, "out", rule, out.shape[last])
    arguments.same_shape(call, "out", out, tuple(expected), reason)
    check_lengths(call, x, (*x.shape, *real))
    lengths = tuple(real[axis] for axis in along)
    if transform.codes and any(length & (length - 1) for length in lengths):
        rule = "have transform lengths that are powers of two, since its elements are in half precision"
        raise arguments.unusable(call, "x", rule, lengths)
    return lengths


class _CheckedTransform(NamedTuple):
    """A transform whose arguments have been checked."""

    call: str
    device: Device
    transform: Transform
    lengths: tuple[int, ...]
    arrangement: layout.Arrangement
    callbacks: Callbacks
    factor: float


def _row_plan(name: str, checked: _CheckedTransform) -> RowPlan | None:
    """Return a plan in which one kernel calls the callbacks and transforms, or None where there is no such kernel.

    If the callbacks have a mistake, other plans report it.
    """
    _, device, transform, lengths, arrangement, callbacks, factor = checked
    source, target = arrangement.source, arrangement.target
    if transform.type != "C2C" or len(lengths) > 1 or source.stride != 1 or target.stride != 1:
        return None
    function = row_function(lengths[0], direction_of(name), device.compute_capability)
    if function is None:
        return None
    try:
        with activated(device):
            return RowPlan(device, function, (source, target), callbacks, factor)
    except (CompileError, LinkError):
        return None


def _fused_by_cufft(checked: _CheckedTransform, out: DeviceArray | NewArray) -> CufftPlan | None:
    """Return a plan in which cuFFT calls the callbacks, or None if it cannot.

    It has callbacks only for some lengths, and only if it can link them. If they have a mistake, the plan without
    fusion reports it, since it compiles them in kernels of their own.
    """
    call, device, transform, lengths, arrangement, callbacks, factor = checked
    try:
        plan = CufftPlan(device, transform, lengths, arrangement, callbacks, fused=True)
    except Exception:  # a status of cuFFT or the linker, or NVRTC's error
        return None
    if factor != 1:
        strides = out.strides, out.strides
        with activated(device):
            plan.after = elements.movement(call, device, out.shape, strides, out.dtype, factor)
    return plan


def _with_passes(
    checked: _CheckedTransform,
    x: DeviceArray,
    out: DeviceArray | NewArray,
    operands: dict[str, layout.Operand],
    misaligned: set[str],
    axes: tuple[int, ...],
    *,
    converts: bool,
) -> CufftPlan:
    """Return a plan with passes over the elements before and after the transform, where they are needed.

    The results of the first and the operands of the second are in temporary arrays, except for conversion and scaling.
    """
    call, device, transform, lengths, arrangement, (load, store), factor = checked
    staged = misaligned | ({"x"} if load is not None else set()) | ({"out"} if store is not None else set())
    for each in staged:
        strides = layout.padded_strides(operands[each].shape, operands[each].itemsize, arrangement.order)
        operands[each] = operands[each]._replace(strides=strides)
    if staged:
        arrangement = layout.arrange(call, operands["x"], operands["out"], axes)
    into, back = (x.strides, operands["x"].strides), (operands["out"].strides, out.strides)
    plan = CufftPlan(device, transform, lengths, arrangement, checked.callbacks, fused=False)
    with activated(device):
        if converts:
            plan.before = elements.conversion(call, device, x.shape, (x.strides, out.strides), x.dtype)
        elif load is not None:
            plan.before = elements.calling(call, load, x.shape, into, x.dtype, loads=True)
        elif "x" in staged:
            plan.before = elements.movement(call, device, x.shape, into, x.dtype)
        if store is not None:
            plan.after = elements.calling(call, store, out.shape, back, out.dtype, loads=False)
        elif factor != 1 or "out" in staged:
            plan.after = elements.movement(call, device, out.shape, back, out.dtype, factor)
    for each in sorted(staged):
        _, shape, strides, itemsize = operands[each]
        # cuFFT fails to execute if the output begins where the work area does, even if it needs no work area.
        plan.staging[each] = (plan.work_bytes // ALIGNMENT + 1) * ALIGNMENT
        extent = max(size * step for size, step in zip(shape, strides, strict=True)) + itemsize
        plan.work_bytes = plan.staging[each] + extent
    return plan


def _misaligned(
    name: str, arrangement: layout.Arrangement, x: DeviceArray, out: DeviceArray | NewArray, *, aligned: bool
) -> set[str]:
    """Return the name of the operand, if any, that needs a temporary array for its real elements.

    In each call of cuFFT, the first real element must be where a complex one could be.
    """
    if name not in ("rfft", "irfft"):
        return set()
    real, index = (x, 0) if name == "rfft" else (out, 1)
    if aligned and not any(start % (2 * real.dtype.itemsize) for start in arrangement.starts[index]):
        return set()
    return {("x", "out")[index]}
