"""cuFFT in software: plans of many transforms, done by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvmath.bindings import cufft
from scipy import fft

from library_tour.libraries.fourier import complex32
from tests.libraries import memory

COMPLEX, REAL = "complex", "real"
KINDS = {
    cufft.Type.C2C: (np.complex64, np.complex64),
    cufft.Type.Z2Z: (np.complex128, np.complex128),
    cufft.Type.R2C: (np.float32, np.complex64),
    cufft.Type.D2Z: (np.float64, np.complex128),
    cufft.Type.C2R: (np.complex64, np.float32),
    cufft.Type.Z2D: (np.complex128, np.float64),
}
HALVES = {2: np.dtype(np.float16), 6: complex32}


class Cufft:
    """One library: its plans, and its calls' names."""

    Type = cufft.Type

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.plans: dict[int, tuple[Any, ...]] = {}
        self.areas: dict[int, int] = {}

    def create(self) -> int:
        self.calls.append("create")
        return len(self.calls)

    def destroy(self, plan: int) -> None:
        self.plans.pop(plan, None)

    def set_auto_allocation(self, plan: int, automatic: int) -> None:
        assert not automatic

    def set_stream(self, plan: int, stream: int) -> None:
        self.calls.append("set_stream")

    def set_work_area(self, plan: int, area: int) -> None:
        self.areas[plan] = area

    def make_plan_many(self, plan, rank, n, embed_in, step_in, distance_in, embed_out, step_out, distance_out, type_,
                       count) -> int:  # fmt: skip  # grouped by meaning
        self.calls.append("make_plan_many")
        source, target = KINDS[type_]
        self.plans[plan] = (
            n, (embed_in, step_in, distance_in), (embed_out, step_out, distance_out), np.dtype(source),
            np.dtype(target), count,
        )  # fmt: skip  # grouped by meaning
        return 4096

    def xt_make_plan_many(self, plan, rank, n, embed_in, step_in, distance_in, type_in, embed_out, step_out,
                          distance_out, type_out, count, inside) -> int:  # fmt: skip  # grouped by meaning
        self.plans[plan] = (
            n, (embed_in, step_in, distance_in), (embed_out, step_out, distance_out), HALVES[type_in],
            HALVES[type_out], count,
        )  # fmt: skip  # grouped by meaning
        return 0

    def exec_c2c(self, plan: int, source: int, target: int, direction: int) -> None:
        self._run(plan, source, target, direction)

    def exec_r2c(self, plan: int, source: int, target: int) -> None:
        self._run(plan, source, target, -1)

    def exec_c2r(self, plan: int, source: int, target: int) -> None:
        self._run(plan, source, target, 1)

    exec_z2z = xt_exec = exec_c2c
    exec_d2z, exec_z2d = exec_r2c, exec_c2r

    def _run(self, plan: int, source: int, target: int, direction: int) -> None:
        self.calls.append("exec")
        n, layout_in, layout_out, kind_in, kind_out, count = self.plans[plan]
        assert plan in self.areas or kind_in.itemsize < 8
        axes = tuple(range(1, len(n) + 1))
        halved = (*n[:-1], n[-1] // 2 + 1)
        is_real = [kind.kind == "f" for kind in (kind_in, kind_out)]
        x = widened(view(source, n if is_real[0] == is_real[1] or is_real[0] else halved, layout_in, kind_in, count))
        if is_real[0]:
            result = fft.rfftn(x, axes=axes)
        elif is_real[1]:
            result = fft.irfftn(x, n, axes=axes, norm="forward")
        else:
            result = fft.fftn(x, axes=axes) if direction == -1 else fft.ifftn(x, axes=axes, norm="forward")
        out = view(target, halved if is_real[0] else n, layout_out, kind_out, count)
        if kind_out == complex32:
            out["real"], out["imag"] = result.real, result.imag
        else:
            out[...] = result


def view(address: int, shape: tuple[int, ...], layout: tuple[Any, int, int], kind: Any, count: int) -> NDArray[Any]:
    embed, step, distance = layout
    if not embed:  # all one behind the other
        embed, step, distance = shape, 1, int(np.prod(shape))
    strides = [step]
    for size in reversed(embed[1:]):
        strides.insert(0, strides[0] * size)
    return memory.array(address, (count, *shape), kind, (distance, *strides))


def widened(x: NDArray[Any]) -> NDArray[Any]:
    if x.dtype == complex32:
        return x["real"].astype(np.float32) + 1j * x["imag"].astype(np.float32)
    return x.astype(np.float32) if x.dtype == np.float16 else x.copy()
