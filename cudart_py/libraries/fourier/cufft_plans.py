"""cuFFT plans: the transforms for each dtype, and the plan for one layout."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import arguments
from ...context.capture import captures
from ...context.current import activated
from ...context.device import Device
from ...context.lifetimes import Handle  # releases plans at the right time
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from .. import views
from ..dtypes import complex32, name_of
from ..failures import failure
from ..handles import keep
from . import elements, layout

INT_MAX = 2**31 - 1
# Temporary arrays in a work area begin at multiples of this number of bytes.
ALIGNMENT = 256


class Transform(NamedTuple):
    """A transform in cuFFT's terms: its dtypes, its plan type, its function, and cudaDataTypes for half precision."""

    source: np.dtype[Any]
    target: np.dtype[Any]
    type: str
    function: str
    codes: tuple[int, int, int] | None = None


_C2C = (
    Transform(np.dtype(np.complex64), np.dtype(np.complex64), "C2C", "exec_c2c"),
    Transform(np.dtype(np.complex128), np.dtype(np.complex128), "Z2Z", "exec_z2z"),
    Transform(complex32, complex32, "", "xt_exec", (6, 6, 6)),
)


_R2C = (
    Transform(np.dtype(np.float32), np.dtype(np.complex64), "R2C", "exec_r2c"),
    Transform(np.dtype(np.float64), np.dtype(np.complex128), "D2Z", "exec_d2z"),
    Transform(np.dtype(np.float16), complex32, "", "xt_exec", (2, 6, 6)),
)


_C2R = (
    Transform(np.dtype(np.complex64), np.dtype(np.float32), "C2R", "exec_c2r"),
    Transform(np.dtype(np.complex128), np.dtype(np.float64), "Z2D", "exec_z2d"),
    Transform(complex32, np.dtype(np.float16), "", "xt_exec", (6, 2, 6)),
)


_FAMILIES = {"fft": _C2C, "ifft": _C2C, "rfft": _R2C, "irfft": _C2R}
NORMS = ("backward", "ortho", "forward")


class CufftPlan(Handle):
    """A cuFFT plan for one layout, and the passes over the elements before and after it, if there are any."""

    __slots__ = (
        "after",
        "area",
        "before",
        "bound",
        "device",
        "directed",
        "function",
        "functions",
        "in_place",
        "native",
        "offsets",
        "output",
        "rank",
        "spans",
        "staged",
        "staging",
        "work_bytes",
    )

    def __init__(
        self, device: Device, transform: Transform, lengths: tuple[int, ...], arrangement: layout.Arrangement
    ) -> None:
        source, target, self.offsets, _ = arrangement
        self._value, self._owned = None, True
        self.device, self.functions = device, library("cufft")
        self.bound = self.area = 0
        self.rank = len(lengths)
        functions = self.functions
        self.function = getattr(functions, transform.function)
        # These functions have a direction argument.
        self.directed = transform.function in ("exec_c2c", "exec_z2z", "xt_exec")
        self.spans = 0, 0
        self.output: tuple[tuple[int, ...], np.dtype[Any]] = (), transform.target
        self.before: elements.Pass | None = None
        self.after: elements.Pass | None = None
        # The operand, "x" or "out", for which there is a temporary array in the work area, and where it begins there.
        self.staged, self.staging = "", 0
        if transform.source == transform.target:
            self.in_place = source == target
        else:
            real, halved = (source, target) if transform.source.kind == "f" else (target, source)
            self.in_place = layout.fits_in_place(real, halved)
        # Without embedding, cuFFT knows that the elements are contiguous.
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

    def queue(self, stream: Stream, source: int, target: int, direction: int, work: DeviceArray | None) -> None:
        """Queue the transform in a stream, with a work area (cufftExecC2C and related functions)."""
        functions = self.functions
        if self.bound != stream.handle:
            functions.set_stream(self.native, stream.handle)
            self.bound = stream.handle
        if work is not None and self.work_bytes:
            if work.pointer != self.area:
                functions.set_work_area(self.native, work.pointer)
                self.area = work.pointer
            if captures:
                keep(stream, "cuFFT", work)
        staging = self.area + self.staging
        result = staging if self.staged == "out" else target
        if self.before is not None:
            first = staging if self.staged == "x" else target
            self.before.queue(stream, source, first)
            source = first
        for ahead, ahead_out in self.offsets:
            if self.directed:
                self.function(self.native, source + ahead, result + ahead_out, direction)
            else:
                self.function(self.native, source + ahead, result + ahead_out)
        if self.after is not None:
            self.after.queue(stream, result, target)
        if captures:
            keep(stream, "cuFFT", self)

    def _release(self, value: Any) -> None:
        with activated(self.device):
            self.functions.destroy(value)


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


def halved(length: int) -> int:
    """Return the number of complex elements in the transform of `length` real elements."""
    return length // 2 + 1


def find_transform(call: str, name: str, dtype: np.dtype[Any]) -> Transform:
    """Return the transform of function `name` for a dtype; raise TypeError if the function does not accept it.

    For real elements, `fft` and `ifft` use the transform of complex elements of the same precision.
    """
    family = _FAMILIES[name]
    for transform, of_reals in zip(family, _R2C, strict=True):
        if dtype == transform.source or (family is _C2C and dtype == of_reals.source):
            return transform
    known = [name_of(transform.source) for transform in (*family, *(_R2C if family is _C2C else ()))]
    raise arguments.wrong_dtype(call, "x", views.one_of(known), name_of(dtype))


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
    *,
    aligned: bool,
) -> CufftPlan:
    """Return a new plan for two arrays; raise TypeError or ValueError naming the operand if they do not match.

    `axes` are given with the name of the argument that they came from. `aligned` says whether the real elements, if
    there are any, begin where complex ones could.
    """
    transform = find_transform(call, name, x.dtype)
    views.require_dtype(call, "out", out, transform.target, f"for 'x' of {name_of(x.dtype)}")
    argument, numbers = axes
    along = layout.as_axes(call, numbers, x.shape, argument)
    arguments.dimensions(call, "out", out, len(x.shape))
    expected, last = list(x.shape), along[-1]
    reason = f"for 'x' of shape {x.shape} with {argument}={numbers}"
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
    target = layout.Operand("out", out.shape, out.strides, out.dtype.itemsize)
    # Real elements are first converted to complex ones in `out`, where the transform then works in place.
    converts = x.dtype != transform.source
    source = target if converts else layout.Operand("x", x.shape, x.strides, x.itemsize)
    arrangement = layout.arrange(call, source, target, along)
    staged = _staged_operand(name, arrangement, x, out, aligned=aligned)
    operands = {"x": source, "out": target}
    if staged:
        strides = layout.padded_strides(operands[staged].shape, operands[staged].itemsize, arrangement.order)
        operands[staged] = operands[staged]._replace(strides=strides)
        arrangement = layout.arrange(call, operands["x"], operands["out"], along)
    before = after = None
    factor = factor_of(name, norm, lengths)
    with activated(device):
        if converts:
            before = elements.conversion(call, device, x.shape, (x.strides, out.strides), x.dtype)
        elif staged == "x":
            before = elements.movement(call, device, x.shape, (x.strides, operands["x"].strides), x.dtype)
        if factor != 1 or staged == "out":
            steps = operands["out"].strides, out.strides
            after = elements.movement(call, device, out.shape, steps, out.dtype, factor)
    try:
        plan = CufftPlan(device, transform, lengths, arrangement)
    except Exception as error:
        raise failure(f"cufftMakePlanMany for {name}", error) from error
    plan.before, plan.after = before, after
    if staged:
        _, shape, strides, itemsize = operands[staged]
        plan.staged, plan.staging = staged, -(-plan.work_bytes // ALIGNMENT) * ALIGNMENT
        plan.work_bytes = plan.staging + max(size * step for size, step in zip(shape, strides, strict=True)) + itemsize
    plan.in_place = plan.in_place and not converts and not staged
    plan.spans = _span(x), _span(out)
    plan.output = out.shape, out.dtype
    return plan


def _staged_operand(
    name: str, arrangement: layout.Arrangement, x: DeviceArray, out: DeviceArray | NewArray, *, aligned: bool
) -> str:
    """Return the name of the operand that needs a temporary array, or "".

    In each call of cuFFT, the first real element must be where a complex one could be.
    """
    if name not in ("rfft", "irfft"):
        return ""
    real, place = (x, 0) if name == "rfft" else (out, 1)
    if aligned and not any(start % (2 * real.dtype.itemsize) for start in arrangement.starts[place]):
        return ""
    return ("x", "out")[place]
