"""Calls of transforms: arguments that have been checked, queued at once or recorded in a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...base import arguments
from ...context.capture import captures
from ...context.current import activated
from ...context.device import Device
from ...copies import memcpy
from ...memory.array import DeviceArray
from ...memory.creation import empty, empty_like
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import allocate_workspace, keep, scratch, thread_cache
from ..plans import Plan
from . import layout
from .callbacks import NO_CALLBACKS, Callbacks
from .cufft_plans import INT_MAX
from .layout import Axes
from .planning import (
    NORMS,
    NewArray,
    PreparedTransform,
    check_lengths,
    direction_of,
    find_transform,
    halved,
    make_plan,
)

MOST_PLANS = 64
# The size in bytes of the largest elements.
WIDEST = 16


class _Checked(NamedTuple):
    """A transform with checked arguments, and its output."""

    name: str
    stream: Stream
    device: Device
    plan: PreparedTransform
    out: DeviceArray
    copies: bool  # the input must be copied first, because cuFFT overwrites it


class TransformPlan(Plan[DeviceArray]):
    """A prepared transform: `plan()` queues it for its own operands, and `plan(x, out)` for others of the same layout.

    The documentation of `Plan` applies. A transform of other operands is queued directly, not as a graph, and by one
    thread at a time.
    """

    @property
    def fused(self) -> bool:
        """Whether the kernels of the transform call the callbacks; otherwise, kernels before and after them do."""
        return self._plan.fused

    def __init__(self, checked: _Checked, x: DeviceArray) -> None:
        name, stream, device, plan, out, copies = checked
        super().__init__(name, stream, device, out)
        self._plan, self._x = plan, x
        with activated(device):
            # If cuFFT would overwrite an input that must be kept, each call copies it first.
            self._copy = empty_like(x, stream=stream) if copies else None
            self._work = allocate_workspace(plan.work_bytes, stream)
            self._record()

    def __call__(self, x: DeviceArray | None = None, out: DeviceArray | None = None) -> DeviceArray:
        """Queue the transform in the plan's stream and return its output.

        `x` and `out` must have the shape, strides and dtype of the arrays that the plan was made for, and if those were
        one array, so must these be. An output that is not given is `result` or, in place, `x`. Raises TypeError or
        ValueError, naming the operand, before anything is queued.
        """
        if x is None and out is None:
            return super().__call__()
        call = f"{self._name}.plan()"
        self._require_open()
        in_place = self._x.pointer == self._result.pointer
        x = self._x if x is None else x
        out = (x if self._x is self._result else self._result) if out is None else out
        addresses = views.check_place(call, self._device, x=x, out=out)
        self._plan.callbacks.check_operands(call, self._device)
        for name, operand, original in (("x", x, self._x), ("out", out, self._result)):
            views.require_dtype(call, name, operand, original.dtype, "like the plan's")
            arguments.same_shape(call, name, operand, original.shape, "like the plan's")
            if operand.strides != original.strides:
                rule = f"have strides {original.strides}, like the plan's"
                raise arguments.unusable(call, name, rule, operand.strides, "make a plan for it")
        if not _check_alignment(call, self._name, x, out, addresses) and not self._plan.staging:
            name, index = ("x", 0) if self._name == "rfft" else ("out", 1)
            rule = f"begin at a multiple of {2 * (x, out)[index].itemsize} bytes, like the plan's"
            raise arguments.unusable(call, name, rule, f"at {addresses[index]:#x}", "make a plan for it")
        if _check_overlap(call, self._plan, *addresses) == in_place:
            raise arguments.unusable(call, "out", f"{'' if in_place else 'not '}begin where 'x' does, like the plan's")
        with activated(self._device):
            self._queue_for(self._stream, x, out)
        return out

    def _prepare(self) -> None:
        self._plan.unbind()

    def _queue(self, stream: Stream) -> None:
        self._queue_for(stream, self._x, self._result)

    def _queue_for(self, stream: Stream, x: DeviceArray, out: DeviceArray) -> None:
        source = x
        if self._copy is not None:
            memcpy(self._copy, x, stream=stream)
            source = self._copy
        try:
            self._plan.queue(stream, source.pointer, out.pointer, direction_of(self._name), self._work)
        except Exception as error:
            raise failure(f"cufftExec for {self._name}", error) from error
        keep(stream, self._name, x, out, source)


def _checked(
    call: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axis: int | None,
    axes: Axes,
    norm: str | None,
    callbacks: Callbacks,
    stream: Stream | None,
    length: int | None,
    plans: dict[Any, Any],
    *,
    overwrite: bool,
) -> _Checked:
    """Check the arguments of a transform. Operands with a layout that was seen before reuse its plan in `plans`."""
    name = call.removesuffix(".plan")
    where, device = views.device_of(call, stream)
    if length is not None:
        length = arguments.integer(call, "length", length, 1, INT_MAX)
    if overwrite.__class__ is not bool:
        overwrite = arguments.flag(call, "overwrite", overwrite)
    # The most common arguments take no further calls, because a call should cost little more than cuFFT's.
    argument: str = "axes"
    numbers: Any = axes
    if axis is not None or (axes.__class__ is not int and axes is not None):
        argument, numbers = layout.chosen_axes(call, axis, axes)
    if norm is None:  # NumPy's spelling of the default
        norm = "backward"
    if norm.__class__ is not str or norm not in NORMS:
        arguments.choice(call, "norm", norm, (*NORMS, None))
    if out is None:
        addresses, layout_out = views.check_place(call, device, x=x), None
    else:
        if isinstance(out, int):  # NumPy's `n`
            remedy = "pass it as length=" if name == "irfft" else "for another length n, copy 'x' into zeros(n)"
            raise arguments.wrong_type(call, "out", "a DeviceArray", out, remedy)
        addresses = views.check_place(call, device, x=x, out=out)
        layout_out = out.shape, out.strides, out.dtype
    aligned = not (addresses[0] | addresses[-1]) % WIDEST or _check_alignment(call, name, x, out, addresses)
    if callbacks is not NO_CALLBACKS:
        callbacks.check_operands(call, device)
    key = (name, device.ordinal, numbers, norm, callbacks, length, aligned, x.shape, x.strides, x.dtype, layout_out)
    plan: PreparedTransform | None = plans.get(key)
    if plan is None:
        along = layout.as_axes(call, numbers, x.shape, argument)
        if name in ("rfft", "irfft") and not isinstance(numbers, int | None):
            _check_order(call, numbers, along, x.ndim)
        if length is not None:
            _check_length(call, length, x, out, along)
        target = _new_output(call, name, x, along, length) if out is None else out
        plan = make_plan(call, name, device, x, target, (argument, numbers), norm, callbacks, aligned=aligned)
        if len(plans) >= MOST_PLANS:
            del plans[next(iter(plans))]
        plans[key] = plan
    copies = not overwrite and name == "irfft" and plan.rank > 1
    if out is not None:
        copies = _check_overlap(call, plan, *addresses) and copies
    if copies:
        arguments.contiguous(
            call, "x", x, "it is copied first, as the transform overwrites it: pass overwrite=True to allow that"
        )
    if out is None:
        with activated(device):
            out = empty(*plan.output, stream=where)
    return _Checked(name, where, device, plan, out, copies)


def _check_order(call: str, axes: Sequence[int], ascending: tuple[int, ...], ndim: int) -> None:
    """Raise ValueError unless the last of `axes`, along which NumPy halves the result, is the one that cuFFT halves."""
    if axes[-1] % ndim != ascending[-1]:
        rule = f"end with axis {ascending[-1]}, along which cuFFT halves the result"
        raise arguments.unusable(call, "axes", rule, arguments.describe(axes), "transform a transposed copy of 'x'")


def _check_alignment(call: str, name: str, x: DeviceArray, out: DeviceArray | None, addresses: list[int]) -> bool:
    """Return whether the real array of `rfft` or `irfft` begins where a complex element could.

    Raises ValueError for a complex array that does not begin at a multiple of the size of its elements.
    """
    aligned = True
    for index, operand in enumerate((x,) if out is None else (x, out)):
        real, address = operand.dtype.kind == "f", addresses[index]
        if address % ((2 if real else 1) * operand.itemsize):
            if not real:
                rule = f"begin at a multiple of {operand.itemsize} bytes, the size of its elements"
                operand_name = ("x", "out")[index]
                remedy = arguments.copy_of(operand_name)
                raise arguments.unusable(call, operand_name, rule, f"at {address:#x}", remedy)
            aligned = name not in ("rfft", "irfft")
    return aligned


def _check_overlap(call: str, plan: PreparedTransform, x: int, out: int) -> bool:
    """Return whether the operands start at different addresses; raise ValueError if they overlap in part."""
    span, span_out = plan.spans
    if x < out + span_out and out < x + span and not (x == out and plan.in_place):
        rule = "not overlap 'x', unless both begin at the same address and have rows of the same length"
        raise arguments.unusable(call, "out", rule)
    return x != out


def transform(
    call: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axis: int | None,
    axes: Axes,
    norm: str | None,
    callbacks: Callbacks,
    stream: Stream | None,
    length: int | None = None,
    *,
    overwrite: bool = True,
) -> DeviceArray:
    """Queue a transform."""
    plans = thread_cache("cufft")
    checked = _checked(call, x, out, axis, axes, norm, callbacks, stream, length, plans, overwrite=overwrite)
    name, where, device, plan, out, copies = checked
    with activated(device):
        if copies:
            copy = empty_like(x, stream=where)
            memcpy(copy, x, stream=where)
            x = copy
        try:
            plan.queue(where, x._address, out._address, direction_of(name), _scratch(plan, where))
        except Exception as error:
            raise failure(f"cufftExec for {name}", error) from error
    if captures:
        keep(where, name, x, out)
    return out


def _scratch(plan: PreparedTransform, stream: Stream) -> DeviceArray | None:
    return scratch(plan.device).get(plan.work_bytes, stream) if plan.work_bytes else None


def planned(
    call: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axis: int | None,
    axes: Axes,
    norm: str | None,
    callbacks: Callbacks,
    stream: Stream | None,
    length: int | None = None,
    *,
    overwrite: bool = True,
) -> TransformPlan:
    """Return a plan for a transform. Its cuFFT plan is its own, so that it stays bound to the plan's stream."""
    # The plans of direct calls would not do: those calls would bind a shared plan to other streams.
    checked = _checked(call, x, out, axis, axes, norm, callbacks, stream, length, {}, overwrite=overwrite)
    return TransformPlan(checked, x)


def _new_output(call: str, name: str, x: DeviceArray, axes: tuple[int, ...], length: int | None) -> NewArray:
    transform = find_transform(call, name, x.dtype)
    last = axes[-1]
    shape = list(x.shape)
    if name == "rfft":
        shape[last] = halved(shape[last])
    elif name == "irfft":
        shape[last] = 2 * (shape[last] - 1) if length is None else length
    remedy = "pass length=1" if name == "irfft" and x.shape[last] == 1 else ""
    check_lengths(call, x, (shape[last], *x.shape), remedy)
    return NewArray(tuple(shape), transform.target)


def _check_length(call: str, length: int, x: DeviceArray, out: DeviceArray | None, axes: tuple[int, ...]) -> None:
    """Raise ValueError for a length that does not match `x` or `out`."""
    last = axes[-1]
    if x.shape[last] != halved(length):
        either = f"{2 * x.shape[last] - 2} or {2 * x.shape[last] - 1}"
        which = f", whose last transformed axis is {last}" if x.ndim > 1 else ""
        rule = f"be {either} for 'x' of shape {x.shape}{which}"
        count = halved(length)
        remedy = f"for a length of {length}, pass " + (
            f"the first {count} elements of 'x'"
            if count < x.shape[last]
            else f"a copy of 'x' in zeros of length {count}"
        )
        raise arguments.unusable(call, "length", rule, length, remedy)
    if out is not None and out.ndim == x.ndim and out.shape[last] != length:
        raise arguments.unusable(call, "length", f"be {out.shape[last]} for 'out' of shape {out.shape}", length)
