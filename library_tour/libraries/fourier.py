"""Fourier transforms: cuFFT on DeviceArrays, of 1 to 3 axes, in batches, in place or out of place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py import arguments
from cudart_py._lifetime import Handle  # plans are given back at the right time
from cudart_py.capture import captures
from cudart_py.device import activated, is_current

from . import fft_layout, views
from .bindings import binding, failure
from .dtypes import complex32, name_of
from .handles import keep, scratch, thread_cache

__all__ = ["complex32", "fft", "ifft", "irfft", "rfft"]

# Of an int, in which cuFFT counts.
_LONGEST = 2**31 - 1

Axes = int | Sequence[int] | None

FORWARD, INVERSE = -1, 1
INT_MAX = 2**31 - 1
MOST_PLANS = 64


class _Transform(NamedTuple):
    """What cuFFT calls a transform: of which dtypes, its plan type, its function, and cudaDataTypes for the halves."""

    source: np.dtype[Any]
    target: np.dtype[Any]
    type: str
    function: str
    codes: tuple[int, int, int] | None = None


_C2C = (
    _Transform(np.dtype(np.complex64), np.dtype(np.complex64), "C2C", "exec_c2c"),
    _Transform(np.dtype(np.complex128), np.dtype(np.complex128), "Z2Z", "exec_z2z"),
    _Transform(complex32, complex32, "", "xt_exec", (6, 6, 6)),
)
_R2C = (
    _Transform(np.dtype(np.float32), np.dtype(np.complex64), "R2C", "exec_r2c"),
    _Transform(np.dtype(np.float64), np.dtype(np.complex128), "D2Z", "exec_d2z"),
    _Transform(np.dtype(np.float16), complex32, "", "xt_exec", (2, 6, 6)),
)
_C2R = (
    _Transform(np.dtype(np.complex64), np.dtype(np.float32), "C2R", "exec_c2r"),
    _Transform(np.dtype(np.complex128), np.dtype(np.float64), "Z2D", "exec_z2d"),
    _Transform(complex32, np.dtype(np.float16), "", "xt_exec", (6, 2, 6)),
)
_FAMILIES = {"fft": _C2C, "ifft": _C2C, "rfft": _R2C, "irfft": _C2R}


def fft(
    x: cuda.DeviceArray, out: cuda.DeviceArray | None = None, *, axes: Axes = -1, stream: cuda.Stream | None = None
) -> cuda.DeviceArray:
    """Queue the discrete Fourier transform of `x` and return it in `out`, a new array unless given.

    `axes` are 1 to 3 axes that follow one another, by default the last, None for all; the other axes count
    transforms (cufftPlanMany). Complex numbers: complex64, complex128, or pairs of halves (`complex32`, for
    lengths that are powers of two). `out` may be `x` itself. Nothing is scaled. Raises TypeError and ValueError
    naming the operand; nothing is queued then.
    """
    return _transform("fft", x, out, axes, stream, None)


def ifft(
    x: cuda.DeviceArray, out: cuda.DeviceArray | None = None, *, axes: Axes = -1, stream: cuda.Stream | None = None
) -> cuda.DeviceArray:
    """Queue the inverse transform, as `fft`. It is not divided by the number of elements: cuFFT leaves that to you."""
    return _transform("ifft", x, out, axes, stream, None)


def rfft(
    x: cuda.DeviceArray, out: cuda.DeviceArray | None = None, *, axes: Axes = -1, stream: cuda.Stream | None = None
) -> cuda.DeviceArray:
    """Queue the transform of real numbers: of n along the last of `axes` the first n // 2 + 1, as `fft`.

    In place, each row must have room for its result: `x = padded[..., :n]`, `out = padded.view(np.complex64)`.
    """
    return _transform("rfft", x, out, axes, stream, None)


def irfft(
    x: cuda.DeviceArray,
    out: cuda.DeviceArray | None = None,
    *,
    axes: Axes = -1,
    length: int | None = None,
    overwrite: bool = False,
    stream: cuda.Stream | None = None,
) -> cuda.DeviceArray:
    """Queue the inverse of `rfft`, unscaled: `length` real numbers along the last of `axes`, by default an even number.

    With several axes cuFFT spoils `x`; it is copied first unless `overwrite` allows that. Raises ValueError where
    `length` is not that of `out`.
    """
    views.check_flags(overwrite=overwrite)
    return _transform("irfft", x, out, axes, stream, length, overwrite=overwrite)


class _Plan(Handle):
    """A plan of cuFFT for one layout."""

    __slots__ = (
        "area",
        "bound",
        "device",
        "directed",
        "function",
        "functions",
        "in_place",
        "native",
        "rank",
        "spans",
        "work_bytes",
    )

    def __init__(
        self,
        device: cuda.Device,
        transform: _Transform,
        lengths: tuple[int, ...],
        source: fft_layout.Layout,
        target: fft_layout.Layout,
    ) -> None:
        self._value, self._owned = None, True
        self.device, self.functions = device, binding("cufft")
        self.bound = self.area = 0
        self.rank = len(lengths)
        functions = self.functions
        self.function = getattr(functions, transform.function)
        # Only transforms of complex numbers go both ways.
        self.directed = transform.function in ("exec_c2c", "exec_z2z", "xt_exec")
        self.spans = 0, 0
        if transform.source == transform.target:
            self.in_place = source == target
        else:
            real, halved = (source, target) if transform.source.kind == "f" else (target, source)
            self.in_place = fft_layout.fits_in_place(real, halved)
        # Without embedding cuFFT takes elements one behind the other, and knows it.
        plain = source.plain and target.plain
        embed_in, embed_out = (0, 0) if plain else (source.embed, target.embed)
        ways = (embed_in, source.stride, source.distance), (embed_out, target.stride, target.distance)
        with activated(device):
            self.native = functions.create()
            self._value = self.native
            functions.set_auto_allocation(self.native, 0)
            if transform.codes:
                code, code_out, inside = transform.codes
                self.work_bytes = functions.xt_make_plan_many(
                    self.native, self.rank, lengths, *ways[0], code, *ways[1], code_out, source.batch, inside
                )
            else:
                extent = max(*source.embed, *target.embed, source.distance, target.distance)
                wide = extent * max(source.batch, source.stride, target.stride) > INT_MAX
                make = functions.make_plan_many64 if wide else functions.make_plan_many
                kind = int(functions.Type[transform.type])
                self.work_bytes = make(self.native, self.rank, lengths, *ways[0], *ways[1], kind, source.batch)

    def queue(self, stream: cuda.Stream, source: int, target: int, direction: int) -> None:
        """Run the transform in a stream (cufftExecC2C and its kin)."""
        functions = self.functions
        if self.bound != stream._value:
            functions.set_stream(self.native, stream.handle)
            self.bound = stream.handle
        if self.work_bytes:
            work = scratch(self.device).get(self.work_bytes, stream)
            if work.pointer != self.area:
                functions.set_work_area(self.native, work.pointer)
                self.area = work.pointer
            if captures:
                keep(stream, "cuFFT", work)
        if self.directed:
            self.function(self.native, source, target, direction)
        else:
            self.function(self.native, source, target)
        if captures:
            keep(stream, "cuFFT", self)

    def _release(self, value: Any) -> None:
        with activated(self.device):
            self.functions.destroy(value)


def _transform(
    name: str,
    x: cuda.DeviceArray,
    out: cuda.DeviceArray | None,
    axes: Axes,
    stream: cuda.Stream | None,
    length: int | None,
    *,
    overwrite: bool = True,
) -> cuda.DeviceArray:
    where = cuda.legacy_default if stream is None else stream
    if axes.__class__ is not int and axes is not None:
        axes = fft_layout.whole_axes(axes)
    if length is not None:
        length = _check_length(length, x, out, axes)
    if out is None:
        out = _make_out(name, x, axes, stream, length)
    try:
        device = where.device
        key = (name, device.ordinal, axes, x.shape, x.strides, x.dtype, out.shape, out.strides, out.dtype)
        plan: _Plan | None = thread_cache("cufft").get(key)
        if plan is None or not (x.device is device and out.device is device):
            views.check_place(device, x=x, out=out)
            plan = plan or _remember(key, _make_plan(name, device, x, out, axes))
        source, target = x.pointer, out.pointer
    except (AttributeError, TypeError, ValueError):
        where, device = views.device_of(stream)
        views.check_place(device, x=x, out=out)
        raise
    span, span_out = plan.spans
    if source < target + span_out and target < source + span and not (source == target and plan.in_place):
        raise ValueError("out overlaps x in a way that is not in place: same address, and rows of the same length")
    if name == "irfft" and plan.rank > 1 and not overwrite and source != target:
        x = _copy(x, where)
        source = x.pointer
    direction = FORWARD if name in ("fft", "rfft") else INVERSE
    try:
        if is_current(device):
            plan.queue(where, source, target, direction)
        else:
            with activated(device):
                plan.queue(where, source, target, direction)
    except Exception as error:
        raise failure(f"cufftExec for {name}", error) from error
    if captures:
        keep(where, name, x, out)
    return out


def _span(array: cuda.DeviceArray) -> int:
    return sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True)) + array.itemsize


def _copy(x: cuda.DeviceArray, stream: cuda.Stream) -> cuda.DeviceArray:
    if not x.is_contiguous:
        raise ValueError("x would be spoiled, and has gaps that a copy cannot skip: overwrite=True allows to spoil it")
    copy = cuda.empty_like(x, stream=stream)
    cuda.memcpy(copy, x, stream=stream)
    return copy


def _half(length: int) -> int:
    return length // 2 + 1


def _find(name: str, dtype: np.dtype[Any]) -> _Transform:
    for transform in _FAMILIES[name]:
        if transform.source == dtype:
            return transform
    known = ", ".join(name_of(transform.source) for transform in _FAMILIES[name])
    raise TypeError(f"x has dtype {name_of(dtype)}; {name} takes {known}")


def _make_out(
    name: str, x: cuda.DeviceArray, axes: Axes, stream: cuda.Stream | None, length: int | None
) -> cuda.DeviceArray:
    where, device = views.device_of(stream)
    views.check_place(device, x=x)
    transform = _find(name, x.dtype)
    last = fft_layout.as_axes(axes, x.ndim)[-1]
    shape = list(x.shape)
    if name == "rfft":
        shape[last] = _half(shape[last])
    elif name == "irfft":
        shape[last] = 2 * (shape[last] - 1) if length is None else length
    _check_lengths(x, (shape[last], *x.shape))
    with activated(device):
        return cuda.empty(tuple(shape), transform.target, stream=where)


def _check_length(length: Any, x: Any, out: Any, axes: Axes) -> int:
    """Return the length that is asked for as an int; ValueError where `out` has another."""
    whole = arguments.integer("irfft", "length", length, 1, _LONGEST)
    if isinstance(x, cuda.DeviceArray) and x.ndim:
        given = x.shape[fft_layout.as_axes(axes, x.ndim)[-1]]
        if given != whole // 2 + 1:
            raise ValueError(
                f"argument 'length' is {whole}, of {whole // 2 + 1} complex numbers, and x of "
                f"shape {x.shape} has {given}"
            )
    if isinstance(out, cuda.DeviceArray) and isinstance(x, cuda.DeviceArray) and out.ndim == x.ndim:
        found = out.shape[fft_layout.as_axes(axes, x.ndim)[-1]]
        if found != whole:
            raise ValueError(f"length={whole}, and out of shape {out.shape} has {found} numbers along that axis")
    return whole


def _check_lengths(x: cuda.DeviceArray, lengths: Sequence[int]) -> None:
    if min(lengths) < 1:
        raise ValueError(f"x has shape {x.shape}: there is no transform of length {min(lengths)}")


def _make_plan(name: str, device: cuda.Device, x: cuda.DeviceArray, out: cuda.DeviceArray, axes: Axes) -> _Plan:
    transform = _find(name, x.dtype)
    if out.dtype != transform.target:
        raise TypeError(
            f"out has dtype {name_of(out.dtype)}; {name} of {name_of(x.dtype)} makes it {name_of(transform.target)}"
        )
    along = fft_layout.as_axes(axes, x.ndim)
    if out.ndim != x.ndim:
        raise ValueError(f"out has shape {out.shape}, and x {x.shape}: they have the same number of dimensions")
    expected, last = list(x.shape), along[-1]
    real = x.shape if name == "rfft" else out.shape
    if name == "rfft":
        expected[last] = _half(x.shape[last])
    elif name == "irfft":
        expected[last] = out.shape[last]
        if x.shape[last] != _half(out.shape[last]):
            expected[last] = _half(out.shape[last])
            raise ValueError(f"x has shape {x.shape}; out of shape {out.shape} makes it {tuple(expected)}")
    views.require_shape("out", out, tuple(expected), f"{name} of x {x.shape}")
    _check_lengths(x, (*x.shape, *real))
    source = fft_layout.describe("x", x.shape, x.strides, x.itemsize, along)
    target = fft_layout.describe("out", out.shape, out.strides, out.itemsize, along)
    lengths = tuple(real[axis] for axis in along)
    if transform.codes and any(length & (length - 1) for length in lengths):
        raise ValueError(f"x has shape {x.shape}: transforms of halves have lengths that are powers of two")
    try:
        plan = _Plan(device, transform, lengths, source, target)
    except Exception as error:
        raise failure(f"cufftMakePlanMany for {name}", error) from error
    plan.spans = _span(x), _span(out)
    return plan


def _remember(key: tuple[Any, ...], plan: _Plan) -> _Plan:
    plans = thread_cache("cufft")
    if len(plans) >= MOST_PLANS:
        del plans[next(iter(plans))]
    plans[key] = plan
    return plan
