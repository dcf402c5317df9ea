"""Fourier transforms of DeviceArrays with cuFFT: along 1 to 3 axes, in batches, in place or out of place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from ..plans import plannable
from .callbacks import Callback, callbacks_of
from .calls import TransformPlan, planned, transform
from .layout import Axes


def _planner(name: str) -> Callable[..., TransformPlan]:
    """Return the function that makes plans for a transform, from its arguments by keyword."""

    def make(x: DeviceArray, out: DeviceArray | None, load: Any, store: Any, **options: Any) -> TransformPlan:
        return planned(f"{name}.plan", x, out, callbacks=callbacks_of(load, store), **options)

    make.__doc__ = f"Return a plan for `{name}` without queueing anything."
    return make


@plannable(_planner("fft"))
@answers_keywords("fft")
def fft(
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    axis: int | None = None,
    axes: Axes = -1,
    norm: str | None = "backward",
    load: Callback | None = None,
    store: Callback | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the discrete Fourier transform of `x` and return it in `out`, by default a new array.

    `axis` is the axis to transform. To transform several, pass a tuple of 1 to 3 adjacent axes as `axes`, or None for
    all. By default, the last axis is transformed. The other axes form a batch (cufftPlanMany). If its transforms are
    not evenly spaced in memory, as with the middle one of three axes, cuFFT is called several times.

    The dtype is complex64, complex128 or `complex32` (half precision, for lengths that are powers of two). Real
    elements of the same precisions are first copied to the complex `out`; `rfft` does half the work. `out` may be `x`
    itself if that is complex.

    `norm` scales results as in NumPy. With "backward" or None, `ifft` divides by the number n of elements of a
    transform; with "forward", `fft` does; with "ortho", both divide by its square root. cuFFT itself scales nothing,
    and a division is one more pass over the result. To avoid it, pass `norm="forward"` to `ifft`, and divide elsewhere.

    `load` and `store` are device functions that cuFFT calls for each element, which saves passes over the arrays: see
    `Callback`. Where cuFFT cannot call them, kernels before and after the transform do: on the simulator, for lengths
    with large prime factors, and for transforms that take several calls. With `store`, nothing is scaled: `ifft` and
    `irfft` then need `norm="forward"`, and the callback divides.

    `fft.plan(...)` takes the same arguments and returns a `TransformPlan` for a transform that is repeated. `ifft`,
    `rfft` and `irfft` can be planned in the same way. Raises TypeError or ValueError, naming the operand, before
    anything is queued.
    """
    return transform("fft", x, out, axis, axes, norm, callbacks_of(load, store), stream)


@plannable(_planner("ifft"))
@answers_keywords("ifft")
def ifft(
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    axis: int | None = None,
    axes: Axes = -1,
    norm: str | None = "backward",
    load: Callback | None = None,
    store: Callback | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the inverse of `fft`, with the same arguments. By default, the result is divided by the number of elements.

    With `norm="forward"`, it is not divided, as in cuFFT.
    """
    return transform("ifft", x, out, axis, axes, norm, callbacks_of(load, store), stream)


@plannable(_planner("rfft"))
@answers_keywords("rfft")
def rfft(
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    axis: int | None = None,
    axes: Axes = -1,
    norm: str | None = "backward",
    load: Callback | None = None,
    store: Callback | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the transform of real numbers, like `fft`: the first n // 2 + 1 of n results along the last of `axes`.

    That must be the highest axis; the order of the others does not matter.
    For a transform in place, pad each row so that its result fits: `x = padded[..., :n]`,
    `out = padded.view(np.complex64)`.
    """
    return transform("rfft", x, out, axis, axes, norm, callbacks_of(load, store), stream)


@plannable(_planner("irfft"))
@answers_keywords("irfft")
def irfft(
    x: DeviceArray,
    out: DeviceArray | None = None,
    *,
    axis: int | None = None,
    axes: Axes = -1,
    norm: str | None = "backward",
    load: Callback | None = None,
    store: Callback | None = None,
    length: int | None = None,
    overwrite: bool = False,
    stream: Stream | None = None,
) -> DeviceArray:
    """Queue the inverse of `rfft`: `length` real results along the last of `axes`. `norm` scales them as in `ifft`.

    `x` must be the spectrum of real elements. In particular, with one axis, the imaginary part of the first element
    must be zero, and so must that of the last one if the length is even. The simulator ignores these two, as NumPy
    does.

    `length` is by default the even length that matches `x`. With several axes, cuFFT overwrites `x`, so it is copied
    first unless `overwrite` is True. Raises ValueError if `length` does not match `x` or `out`.
    """
    return transform("irfft", x, out, axis, axes, norm, callbacks_of(load, store), stream, length, overwrite=overwrite)
