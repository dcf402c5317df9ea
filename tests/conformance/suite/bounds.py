"""How far a result may be from the recorded one.

Results that IEEE 754 or integer arithmetic decides are exact. NaNs count as equal whatever their bits: PTX
leaves most payloads open. For an approximate instruction the PTX manual bounds the error against the true
value, so two implementations within its bound are within twice the bound of each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bound:
    """The largest error of one implementation: the sum of units in the last place, a relative and an absolute part.

    `flushed` also takes a zero for a subnormal number.
    """

    ulp: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    flushed: bool = False

    def allows(self, expected: NDArray[Any], got: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell for each element whether `got` may stand for `expected`; both are flat and of one dtype."""
        bits = f"u{expected.dtype.itemsize}"
        same: NDArray[np.bool_] = expected.view(bits) == got.view(bits)
        if expected.dtype.kind != "f":
            return same
        same |= np.isnan(expected) & np.isnan(got)
        if self == EXACT:
            return same
        with np.errstate(all="ignore"):
            e, g = expected.astype(np.float64), got.astype(np.float64)
            unit = np.spacing(np.abs(expected)).astype(np.float64)
            allowed: NDArray[np.float64] = 2 * (self.ulp * unit + self.relative * np.abs(e) + self.absolute)
            near: NDArray[np.bool_] = (np.abs(e - g) <= allowed) & np.isfinite(e) & np.isfinite(g)
            near &= (e != 0) | (g != 0)  # the sign of a zero is never approximate
            if self.flushed:
                tiny = np.finfo(expected.dtype).tiny
                near |= (np.abs(e) <= tiny) & (np.abs(g) <= tiny)
            same |= near
        return same


EXACT = Bound()

# The PTX manual's bounds, by instruction. Where it speaks of the error of a range of inputs, the inputs of
# our cases lie in that range.
PTX = {
    # "maximum ulp error is 1 across the full range of inputs"
    "rcp.approx.f32": Bound(ulp=1),
    "rcp.approx.ftz.f32": Bound(ulp=1, flushed=True),
    # "maximum relative error over the entire positive finite floating-point range is 2^-23"
    "sqrt.approx.f32": Bound(relative=2.0**-23),
    "sqrt.approx.ftz.f32": Bound(relative=2.0**-23),
    # "maximum relative error ... is 2^-22.9"
    "rsqrt.approx.f32": Bound(relative=2.0**-22.9),
    "rsqrt.approx.ftz.f32": Bound(relative=2.0**-22.9),
    # "maximum absolute error is 2^-22 when the input is in (0.5, 2); outside it the maximum relative error is 2^-22"
    "lg2.approx.f32": Bound(relative=2.0**-22, absolute=2.0**-22),
    "lg2.approx.ftz.f32": Bound(relative=2.0**-22, absolute=2.0**-22),
    # "maximum ulp error is 2 ulp from correctly rounded result across the full range of inputs"
    "ex2.approx.f32": Bound(ulp=2),
    "ex2.approx.ftz.f32": Bound(ulp=2, flushed=True),
    # "maximum relative error 2^-11"; subnormal numbers are supported
    "tanh.approx.f32": Bound(relative=2.0**-11),
    # "maximum absolute error in [-2 pi, 2 pi] is 2^-20.5"
    "sin.approx.f32": Bound(absolute=2.0**-20.5),
    "sin.approx.ftz.f32": Bound(absolute=2.0**-20.5),
    "cos.approx.f32": Bound(absolute=2.0**-20.5),
    "cos.approx.ftz.f32": Bound(absolute=2.0**-20.5),
    # "for |b| in [2^-126, 2^126] the maximum ulp error is 2"; the full-range form has 2 everywhere
    "div.approx.f32": Bound(ulp=2),
    "div.approx.ftz.f32": Bound(ulp=2, flushed=True),
    "div.full.f32": Bound(ulp=2),
    "div.full.ftz.f32": Bound(ulp=2, flushed=True),
    # A gross approximation: the lower 32 bits are zero, 20 bits of the fraction remain.
    "rcp.approx.ftz.f64": Bound(relative=2.0**-19),
    "rsqrt.approx.ftz.f64": Bound(relative=2.0**-19),
    # "rsqrt.approx.f64 supports subnormals"; emulated from the gross approximation in double precision: no bound given
    "rsqrt.approx.f64": Bound(ulp=2),
    # "maximum relative error 2^-9.9" and "maximum absolute error 2^-10.987"
    "ex2.approx.f16": Bound(relative=2.0**-9.9, absolute=2.0**-24),
    "tanh.approx.f16": Bound(absolute=2.0**-10.987),
    # "maximum relative error 2^-7" and "maximum absolute error 2^-8"
    "ex2.approx.ftz.bf16": Bound(relative=2.0**-7, flushed=True),
    "tanh.approx.bf16": Bound(absolute=2.0**-8),
}

# The CUDA C++ programming guide's bounds of the functions, in units in the last place; IEEE operations on
# top of approximate ones, so the simulator has the guide's error too.
FUNCTIONS = {
    "sinf": Bound(ulp=2), "cosf": Bound(ulp=2), "tanf": Bound(ulp=4), "expf": Bound(ulp=2), "exp2f": Bound(ulp=2),
    "logf": Bound(ulp=1), "log2f": Bound(ulp=1), "powf": Bound(ulp=4), "tanhf": Bound(ulp=2), "erff": Bound(ulp=2),
    "atan2f": Bound(ulp=3), "cbrtf": Bound(ulp=1), "rsqrtf": Bound(ulp=2), "hypotf": Bound(ulp=3),
    "normcdff": Bound(ulp=5), "sin": Bound(ulp=2), "cos": Bound(ulp=2), "exp": Bound(ulp=1), "log": Bound(ulp=1),
    "pow": Bound(ulp=2), "tanh": Bound(ulp=2), "erf": Bound(ulp=2), "cbrt": Bound(ulp=1), "rsqrt": Bound(ulp=1),
}  # fmt: skip  # rows of a table
