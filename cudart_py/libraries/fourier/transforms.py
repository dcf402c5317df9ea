"""Fourier transforms of DeviceArrays with cuFFT: along 1 to 3 axes, in batches, in place or out of place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import arguments
from ...context.capture import captures
from ...context.current import activated
from ...context.device import Device
from ...copies import memcpy
from ...memory.array import DeviceArray
from ...memory.creation import empty, empty_like
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import keep, scratch, thread_cache
from ..plans import Plan, plannable
from . import layout
from .cufft_plans import CufftPlan, NewArray, check_lengths, find_transform, halved, make_plan
from .layout import Axes

# The largest C int, in which cuFFT stores lengths.
_LONGEST = 2**31 - 1
FORWARD, INVERSE = -1, 1
MOST_PLANS = 64


class _Checked(NamedTuple):
    """A transform with checked arguments, and its output."""

    name: str
    stream: Stream
    device: Device
    plan: CufftPlan
    out: DeviceArray
    copies: bool  # the input must be copied first, because cuFFT overwrites it


class _TransformPlan(Plan[DeviceArray]):
    """A transform that is queued repeatedly, with the same operands in the same stream."""

    def __init__(
        self,
        name: str,
        plan: CufftPlan,
        stream: Stream,
        device: Device,
        operands: tuple[DeviceArray, DeviceArray],
        *,
        copies: bool,
    ) -> None:
        x, out = operands
        super().__init__(name, stream, device, out)
        self._plan, self._x = plan, x
        with activated(device):
            # If cuFFT would overwrite an input that must be kept, each call copies it first.
            self._copy = empty_like(x, stream=stream) if copies else None
            self._work = empty(max(plan.work_bytes, 1), np.uint8, stream=stream)
            self._record()

    def _prepare(self) -> None:
        # The stream of an earlier recording no longer exists, and a new stream may have the same handle.
        self._plan.bound = 0

    def _queue(self, stream: Stream) -> None:
        x = self._x
        if self._copy is not None:
            memcpy(self._copy, x, stream=stream)
            x = self._copy
        try:
            self._plan.queue(stream, x.pointer, self._result.pointer, _direction(self._name), self._work)
        except Exception as error:
            raise failure(f"cufftExec for {self._name}", error) from error
        keep(stream, self._name, self._x, self._result, x)


def _checked(
    call: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axes: Axes,
    stream: Stream | None,
    length: int | None,
    plans: dict[Any, Any],
    *,
    overwrite: bool,
) -> _Checked:
    """Check the arguments of a transform. Operands with a layout that was seen before reuse its plan in `plans`."""
    name = call.removesuffix(".plan")
    where, device = views.device_of(call, stream)
    if axes.__class__ is not int and axes is not None:
        axes = layout.whole_axes(call, axes)
    if out is None:
        addresses, given = views.check_place(call, device, x=x), None
    else:
        addresses = views.check_place(call, device, x=x, out=out)
        given = out.shape, out.strides, out.dtype
    key = (name, device.ordinal, axes, length, x.shape, x.strides, x.dtype, given)
    plan: CufftPlan | None = plans.get(key)
    if plan is None:
        if length is not None:
            _check_length(call, length, x, out, axes)
        target = _new_output(call, name, x, axes, length) if out is None else out
        plan = make_plan(call, name, device, x, target, axes)
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


def _check_overlap(call: str, plan: CufftPlan, x: int, out: int) -> bool:
    """Return whether the operands start at different addresses; raise ValueError if they overlap in part."""
    span, span_out = plan.spans
    if x < out + span_out and out < x + span and not (x == out and plan.in_place):
        rule = "not overlap 'x', unless both begin at the same address and have rows of the same length"
        raise arguments.unusable(call, "out", rule)
    return x != out


def _direction(name: str) -> int:
    return FORWARD if name in ("fft", "rfft") else INVERSE


def _transform(
    call: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axes: Axes,
    stream: Stream | None,
    length: int | None = None,
    *,
    overwrite: bool = True,
) -> DeviceArray:
    checked = _checked(call, x, out, axes, stream, length, thread_cache("cufft"), overwrite=overwrite)
    name, where, device, plan, out, copies = checked
    with activated(device):
        if copies:
            copy = empty_like(x, stream=where)
            memcpy(copy, x, stream=where)
            x = copy
        try:
            plan.queue(where, x._address, out._address, _direction(name), _scratch(plan, where))
        except Exception as error:
            raise failure(f"cufftExec for {name}", error) from error
    if captures:
        keep(where, name, x, out)
    return out


def _scratch(plan: CufftPlan, stream: Stream) -> DeviceArray | None:
    return scratch(plan.device).get(plan.work_bytes, stream) if plan.work_bytes else None


def _planned(
    call: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axes: Axes,
    stream: Stream | None,
    length: int | None = None,
    *,
    overwrite: bool = True,
) -> Plan[DeviceArray]:
    # Not from the cache of direct calls: those would bind a shared plan to other streams.
    name, where, device, plan, out, copies = _checked(call, x, out, axes, stream, length, {}, overwrite=overwrite)
    return _TransformPlan(name, plan, where, device, (x, out), copies=copies)


def _new_output(call: str, name: str, x: DeviceArray, axes: Axes, length: int | None) -> NewArray:
    transform = find_transform(call, name, x.dtype)
    last = layout.as_axes(call, axes, x.shape)[-1]
    shape = list(x.shape)
    if name == "rfft":
        shape[last] = halved(shape[last])
    elif name == "irfft":
        shape[last] = 2 * (shape[last] - 1) if length is None else length
    remedy = "pass length=1" if name == "irfft" and x.shape[last] == 1 else ""
    check_lengths(call, x, (shape[last], *x.shape), remedy)
    return NewArray(tuple(shape), transform.target)


def _check_length(call: str, length: int, x: DeviceArray, out: DeviceArray | None, axes: Axes) -> None:
    """Raise ValueError for a length that does not match `x` or `out`."""
    last = layout.as_axes(call, axes, x.shape)[-1]
    if x.shape[last] != halved(length):
        either = f"{2 * x.shape[last] - 2} or {2 * x.shape[last] - 1}"
        rule = f"be {either} for 'x' of shape {x.shape} with axes={axes}"
        raise arguments.unusable(call, "length", rule, length)
    if out is not None and out.ndim == x.ndim and out.shape[last] != length:
        raise arguments.unusable(call, "length", f"be {out.shape[last]} for 'out' of shape {out.shape}", length)


def _plan_fft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> Plan[DeviceArray]:
    """Return a plan for `fft` without queueing anything."""
    return _planned("fft.plan", x, out, axes, stream)


@plannable(_plan_fft)
def fft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> DeviceArray:
    """Queue the discrete Fourier transform of `x` and return it in `out`, by default a new array.

    `axes` are 1 to 3 consecutive axes, by default the last, or None for all; the other axes form a batch
    (cufftPlanMany). The dtype is complex64, complex128 or `complex32` (half precision, for lengths that are powers of
    two). `out` may be `x` itself. The result is not scaled.

    `fft.plan(...)` takes the same arguments and returns a `Plan` for a transform that is repeated. `ifft`, `rfft` and
    `irfft` can be planned in the same way. Raises TypeError or ValueError, naming the operand, before anything is
    queued.
    """
    return _transform("fft", x, out, axes, stream)


def _plan_ifft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> Plan[DeviceArray]:
    """Return a plan for `ifft` without queueing anything."""
    return _planned("ifft.plan", x, out, axes, stream)


@plannable(_plan_ifft)
def ifft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> DeviceArray:
    """Queue the inverse transform, like `fft`. The result is not divided by the number of elements.

    To scale a vector of n elements, call `scal(1 / n, y)`.
    """
    return _transform("ifft", x, out, axes, stream)


def _plan_rfft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> Plan[DeviceArray]:
    """Return a plan for `rfft` without queueing anything."""
    return _planned("rfft.plan", x, out, axes, stream)


@plannable(_plan_rfft)
def rfft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> DeviceArray:
    """Queue the transform of real numbers, like `fft`: the first n // 2 + 1 of n results along the last of `axes`.

    For a transform in place, pad each row so that its result fits: `x = padded[..., :n]`,
    `out = padded.view(np.complex64)`.
    """
    return _transform("rfft", x, out, axes, stream)


def _inverse_options(call: str, length: Any, overwrite: Any) -> tuple[int | None, bool]:
    """Check and return the options that only `irfft` has."""
    whole = None if length is None else arguments.integer(call, "length", length, 1, _LONGEST)
    return whole, arguments.flag(call, "overwrite", overwrite)


def _plan_irfft(
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    axes: Axes = -1,
    length: int | None = None,
    overwrite: bool = False,
    stream: Stream | None = None,
) -> Plan[DeviceArray]:
    """Return a plan for `irfft` without queueing anything."""
    length, overwrite = _inverse_options("irfft.plan", length, overwrite)
    return _planned("irfft.plan", x, out, axes, stream, length, overwrite=overwrite)


@plannable(_plan_irfft)
def irfft(
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    axes: Axes = -1,
    length: int | None = None,
    overwrite: bool = False,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the inverse of `rfft`, unscaled: `length` real results along the last of `axes`.

    `x` must be the spectrum of real elements. In particular, with one axis, the imaginary part of the first element
    must be zero, and so must that of the last one if the length is even. The simulator ignores these two, as NumPy
    does.

    `length` is by default the even length that matches `x`. With several axes, cuFFT overwrites `x`, so it is copied
    first unless `overwrite` is True. Raises ValueError if `length` does not match `x` or `out`.
    """
    length, overwrite = _inverse_options("irfft", length, overwrite)
    return _transform("irfft", x, out, axes, stream, length, overwrite=overwrite)
