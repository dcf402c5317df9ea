"""Fourier transforms: cuFFT on DeviceArrays, of 1 to 3 axes, in batches, in place or out of place."""

from __future__ import annotations

from typing import Any

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
from ..dtypes import complex32
from ..failures import failure
from ..handles import keep, scratch, thread_cache
from ..plans import Plan, plannable
from . import layout
from .cufft_plans import CufftPlan, check_lengths, find_transform, halved, make_plan
from .layout import Axes

__all__ = ["complex32", "fft", "ifft", "irfft", "rfft"]

# Of an int, in which cuFFT counts.
_LONGEST = 2**31 - 1
FORWARD, INVERSE = -1, 1
MOST_PLANS = 64


class _TransformPlan(Plan[DeviceArray]):
    """A transform that is queued again and again, with the same operands in the same stream."""

    def __init__(
        self,
        name: str,
        plan: CufftPlan,
        stream: Stream,
        device: Device,
        operands: tuple[DeviceArray, DeviceArray],
        *,
        overwrites: bool,
    ) -> None:
        x, out = operands
        super().__init__(name, stream, device, out)
        self._plan, self._x = plan, x
        with activated(device):
            # Where cuFFT would overwrite an input that must be kept, each call copies it first.
            self._copy = None if overwrites else empty_like(_require_gapless(x), stream=stream)
            self._work = empty(max(plan.work_bytes, 1), np.uint8, stream=stream)
            self._record()

    def _prepare(self) -> None:
        # The stream of an earlier recording is gone, and another one may have its handle.
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
    name: str, device: Device, x: DeviceArray, out: DeviceArray, axes: Axes, plans: dict[Any, Any]
) -> tuple[CufftPlan, int, int]:
    """Return cuFFT's plan for operands and their addresses; they are looked at closely when they come first."""
    source, target = views.check_place(device, x=x, out=out)
    key = (name, device.ordinal, axes, x.shape, x.strides, x.dtype, out.shape, out.strides, out.dtype)
    plan: CufftPlan | None = plans.get(key)
    if plan is None:
        plan = make_plan(name, device, x, out, axes)
        if len(plans) >= MOST_PLANS:
            del plans[next(iter(plans))]
        plans[key] = plan
    span, span_out = plan.spans
    if source < target + span_out and target < source + span and not (source == target and plan.in_place):
        raise ValueError("out overlaps x in a way that is not in place: same address, and rows of the same length")
    return plan, source, target


def _overwrites(name: str, plan: CufftPlan, x: DeviceArray, out: DeviceArray) -> bool:
    """Return whether cuFFT overwrites its input, though the result goes to another array."""
    return name == "irfft" and plan.rank > 1 and x.pointer != out.pointer


def _direction(name: str) -> int:
    return FORWARD if name in ("fft", "rfft") else INVERSE


def _operands(
    name: str, x: DeviceArray, out: DeviceArray | None, axes: Axes, stream: Stream | None, length: int | None
) -> tuple[Stream, Device, Axes, DeviceArray]:
    """Return the stream, its device, the axes as whole numbers, and the output, made where none is given."""
    where, device = views.device_of(stream)
    if axes.__class__ is not int and axes is not None:
        axes = layout.whole_axes(axes)
    if length is not None:
        length = _check_length(length, x, out, axes)
    if out is None:
        out = _make_out(name, x, axes, where, device, length)
    return where, device, axes, out


def _transform(
    name: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axes: Axes,
    stream: Stream | None,
    length: int | None = None,
    *,
    overwrite: bool = True,
) -> DeviceArray:
    where, device, axes, out = _operands(name, x, out, axes, stream, length)
    plan, source, target = _checked(name, device, x, out, axes, thread_cache("cufft"))
    with activated(device):
        if not overwrite and _overwrites(name, plan, x, out):
            copy = empty_like(_require_gapless(x), stream=where)
            memcpy(copy, x, stream=where)
            x, source = copy, copy.pointer
        try:
            plan.queue(where, source, target, _direction(name), _scratch(plan, where))
        except Exception as error:
            raise failure(f"cufftExec for {name}", error) from error
    if captures:
        keep(where, name, x, out)
    return out


def _scratch(plan: CufftPlan, stream: Stream) -> DeviceArray | None:
    return scratch(plan.device).get(plan.work_bytes, stream) if plan.work_bytes else None


def _planned(
    name: str,
    x: DeviceArray,
    out: DeviceArray | None,
    axes: Axes,
    stream: Stream | None,
    length: int | None = None,
    *,
    overwrite: bool = True,
) -> Plan[DeviceArray]:
    where, device, axes, out = _operands(name, x, out, axes, stream, length)
    plan, _, _ = _checked(
        name, device, x, out, axes, {}
    )  # not among those of direct calls, which turn to other streams
    return _TransformPlan(
        name, plan, where, device, (x, out), overwrites=overwrite or not _overwrites(name, plan, x, out)
    )


def _require_gapless(x: DeviceArray) -> DeviceArray:
    if not x.is_contiguous:
        raise ValueError(
            "the transform would overwrite x, and x has gaps, so that it cannot be copied first: pass overwrite=True "
            "to allow that"
        )
    return x


def _make_out(name: str, x: DeviceArray, axes: Axes, where: Stream, device: Device, length: int | None) -> DeviceArray:
    views.check_place(device, x=x)
    transform = find_transform(name, x.dtype)
    last = layout.as_axes(axes, x.ndim)[-1]
    shape = list(x.shape)
    if name == "rfft":
        shape[last] = halved(shape[last])
    elif name == "irfft":
        shape[last] = 2 * (shape[last] - 1) if length is None else length
    check_lengths(x, (shape[last], *x.shape))
    with activated(device):
        return empty(tuple(shape), transform.target, stream=where)


def _check_length(length: Any, x: Any, out: Any, axes: Axes) -> int:
    """Return the length that is asked for as an int; ValueError where `out` has another."""
    whole = arguments.integer("irfft", "length", length, 1, _LONGEST)
    if isinstance(x, DeviceArray) and x.ndim:
        given = x.shape[layout.as_axes(axes, x.ndim)[-1]]
        if given != whole // 2 + 1:
            raise ValueError(
                f"argument 'length' is {whole}, of {whole // 2 + 1} complex numbers, and x of "
                f"shape {x.shape} has {given}"
            )
    if isinstance(out, DeviceArray) and isinstance(x, DeviceArray) and out.ndim == x.ndim:
        found = out.shape[layout.as_axes(axes, x.ndim)[-1]]
        if found != whole:
            raise ValueError(f"length={whole}, and out of shape {out.shape} has {found} numbers along that axis")
    return whole


def _plan_fft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> Plan[DeviceArray]:
    """Return a plan of `fft`, which queues nothing yet."""
    return _planned("fft", x, out, axes, stream)


@plannable(_plan_fft)
def fft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> DeviceArray:
    """Queue the discrete Fourier transform of `x` and return it in `out`, a new array unless given.

    `axes` are 1 to 3 axes that follow one another, by default the last, None for all; the other axes count
    transforms (cufftPlanMany). Complex numbers: complex64, complex128, or pairs of halves (`complex32`, for
    lengths that are powers of two). `out` may be `x` itself. Nothing is scaled.

    `fft.plan(...)` takes the same arguments and returns a `Plan` of a transform that comes again, as do the other three
    functions. Raises TypeError and ValueError naming the operand; nothing is queued then.
    """
    return _transform("fft", x, out, axes, stream)


def _plan_ifft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> Plan[DeviceArray]:
    """Return a plan of `ifft`, which queues nothing yet."""
    return _planned("ifft", x, out, axes, stream)


@plannable(_plan_ifft)
def ifft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> DeviceArray:
    """Queue the inverse transform, as `fft`. It is not divided by the number of elements: cuFFT leaves that to you."""
    return _transform("ifft", x, out, axes, stream)


def _plan_rfft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> Plan[DeviceArray]:
    """Return a plan of `rfft`, which queues nothing yet."""
    return _planned("rfft", x, out, axes, stream)


@plannable(_plan_rfft)
def rfft(
    x: DeviceArray, out: DeviceArray | None = None, *, axes: Axes = -1, stream: Stream | None = None
) -> DeviceArray:
    """Queue the transform of real numbers: of n along the last of `axes` the first n // 2 + 1, as `fft`.

    In place, each row must have room for its result: `x = padded[..., :n]`, `out = padded.view(np.complex64)`.
    """
    return _transform("rfft", x, out, axes, stream)


def _plan_irfft(
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    axes: Axes = -1,
    length: int | None = None,
    overwrite: bool = False,
    stream: Stream | None = None,
) -> Plan[DeviceArray]:
    """Return a plan of `irfft`, which queues nothing yet."""
    views.check_flags(overwrite=overwrite)
    return _planned("irfft", x, out, axes, stream, length, overwrite=overwrite)


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
    """Queue the inverse of `rfft`, unscaled: `length` real numbers along the last of `axes`, by default an even number.

    With several axes cuFFT overwrites `x`; it is copied first unless `overwrite` allows that. Raises ValueError where
    `length` is not that of `out`.
    """
    views.check_flags(overwrite=overwrite)
    return _transform("irfft", x, out, axes, stream, length, overwrite=overwrite)
