"""cuFFT plans: the transforms for each dtype, and the plan for one layout."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...context.capture import captures
from ...context.current import activated
from ...context.device import Device
from ...context.lifetimes import Handle  # releases plans at the right time
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from ..dtypes import complex32
from ..handles import keep
from . import elements, layout
from .callbacks import Callbacks

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


C2C = (
    Transform(np.dtype(np.complex64), np.dtype(np.complex64), "C2C", "exec_c2c"),
    Transform(np.dtype(np.complex128), np.dtype(np.complex128), "Z2Z", "exec_z2z"),
    Transform(complex32, complex32, "", "xt_exec", (6, 6, 6)),
)


R2C = (
    Transform(np.dtype(np.float32), np.dtype(np.complex64), "R2C", "exec_r2c"),
    Transform(np.dtype(np.float64), np.dtype(np.complex128), "D2Z", "exec_d2z"),
    Transform(np.dtype(np.float16), complex32, "", "xt_exec", (2, 6, 6)),
)


C2R = (
    Transform(np.dtype(np.complex64), np.dtype(np.float32), "C2R", "exec_c2r"),
    Transform(np.dtype(np.complex128), np.dtype(np.float64), "Z2D", "exec_z2d"),
    Transform(complex32, np.dtype(np.float16), "", "xt_exec", (6, 2, 6)),
)


def works_in_place(transform: Transform, source: layout.Layout, target: layout.Layout) -> bool:
    """Return whether a transform between two layouts can work in place."""
    if transform.source == transform.target:
        return source == target
    real, halved = (source, target) if transform.source.kind == "f" else (target, source)
    return layout.fits_in_place(real, halved)


class CufftPlan(Handle):
    """A cuFFT plan for one layout, and the passes over the elements before and after it, if there are any."""

    __slots__ = (
        "after",
        "area",
        "before",
        "bound",
        "callbacks",
        "device",
        "directed",
        "function",
        "functions",
        "fused",
        "in_place",
        "native",
        "offsets",
        "output",
        "rank",
        "spans",
        "staging",
        "work_bytes",
    )

    def __init__(
        self,
        device: Device,
        transform: Transform,
        lengths: tuple[int, ...],
        arrangement: layout.Arrangement,
        callbacks: Callbacks,
        *,
        fused: bool,
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
        # Where temporary arrays for "x" and "out" begin in the work area, if there are any.
        self.staging: dict[str, int] = {}
        # `fused` says that cuFFT's kernels call the callbacks.
        self.callbacks, self.fused = callbacks, fused
        # Whether the input may be the output, which a plan with temporary arrays does not know itself.
        self.in_place = works_in_place(transform, source, target)
        # Without embedding, cuFFT knows that the elements are contiguous.
        plain = source.plain and target.plain
        embed_in, embed_out = (0, 0) if plain else (source.embed, target.embed)
        ways = (embed_in, source.stride, source.distance), (embed_out, target.stride, target.distance)
        with activated(device):
            self.native = functions.create()
            self._value = self.native
            functions.set_auto_allocation(self.native, 0)
            kept = callbacks.set(functions, self.native, device, transform[:2]) if fused else []
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
            del kept

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
        result = self.area + self.staging["out"] if "out" in self.staging else target
        if self.before is not None:
            first = self.area + self.staging["x"] if "x" in self.staging else target
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
            keep(stream, "cuFFT", self, *(each.data for each in self.callbacks if each is not None))

    def unbind(self) -> None:
        """Forget the stream of the last call, which no longer exists: a new stream may have the same handle."""
        self.bound = 0

    def _release(self, value: Any) -> None:
        with activated(self.device):
            self.functions.destroy(value)
