"""Bounds on the difference between a result and the recorded one.

Results that IEEE 754 or integer arithmetic determines must be exact, and so must the bits of NaNs, although PTX leaves
many of them undefined: programs that compare bits see them. For an approximate instruction, the PTX manual bounds the
error relative to the true value, so the results of two implementations within the bound differ by at most twice the
bound.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bound:
    """The largest error of one implementation: the sum of an error in ULPs, a relative and an absolute error.

    If `flushed` is set, a zero is also accepted for a subnormal number.
    """

    ulp: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    flushed: bool = False

    @np.errstate(all="ignore")
    def allows(self, expected: NDArray[Any], got: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each element whether `got` is within the bound of `expected`; both are 1-D, of the same dtype."""
        bits = f"u{expected.dtype.itemsize}"
        same: NDArray[np.bool_] = expected.view(bits) == got.view(bits)
        if expected.dtype.kind != "f" or self == EXACT:
            return same
        e, g = expected.astype(np.float64), got.astype(np.float64)
        unit = np.spacing(np.abs(expected)).astype(np.float64)
        allowed = 2 * (self.ulp * unit + self.relative * np.abs(e) + self.absolute)
        near = (np.abs(e - g) <= allowed) & np.isfinite(e) & np.isfinite(g)
        near &= (e != 0) | (g != 0)  # the sign of a zero is never approximate
        if self.flushed:
            tiny = np.finfo(expected.dtype).tiny
            near |= (np.abs(e) <= tiny) & (np.abs(g) <= tiny)
        return same | near


EXACT = Bound()

# The PTX manual's bounds, by instruction. If the manual gives a bound for a range of inputs, the inputs of our cases
# are in that range.
_SINGLE = {
    "rcp.approx": Bound(ulp=1),  # "maximum ulp error is 1 across the full range of inputs"
    # "maximum relative error over the entire positive finite floating-point range is 2^-23"
    "sqrt.approx": Bound(relative=2.0**-23),
    "rsqrt.approx": Bound(relative=2.0**-22.9),  # "maximum relative error ... is 2^-22.9"
    # "maximum absolute error is 2^-22 when the input is in (0.5, 2); outside it the maximum relative error is 2^-22"
    "lg2.approx": Bound(relative=2.0**-22, absolute=2.0**-22),
    # "maximum ulp error is 2 ulp from correctly rounded result across the full range of inputs"
    "ex2.approx": Bound(ulp=2),
    "tanh.approx": Bound(relative=2.0**-11),  # "maximum relative error 2^-11"; subnormal numbers are supported
    # "maximum absolute error in [-2 pi, 2 pi] is 2^-20.5"
    "sin.approx": Bound(absolute=2.0**-20.5),
    "cos.approx": Bound(absolute=2.0**-20.5),
    # "for |b| in [2^-126, 2^126] the maximum ulp error is 2"; the full-range form has 2 everywhere
    "div.approx": Bound(ulp=2),
    "div.full": Bound(ulp=2),
}
PTX = {
    **{f"{name}.f32": bound for name, bound in _SINGLE.items()},
    **{f"{name}.ftz.f32": replace(bound, flushed=bound.ulp > 0) for name, bound in _SINGLE.items()},
    # A gross approximation: the lower 32 bits are zero, so 20 bits of the fraction remain.
    "rcp.approx.ftz.f64": Bound(relative=2.0**-19),
    "rsqrt.approx.ftz.f64": Bound(relative=2.0**-19),
    # "rsqrt.approx.f64 supports subnormals"; emulated from the gross approximation in double precision: no bound given
    "rsqrt.approx.f64": Bound(ulp=2),
    "ex2.approx.f16": Bound(relative=2.0**-9.9, absolute=2.0**-24),  # "maximum relative error 2^-9.9"
    "tanh.approx.f16": Bound(absolute=2.0**-10.987),  # "maximum absolute error 2^-10.987"
    "ex2.approx.ftz.bf16": Bound(relative=2.0**-7, flushed=True),  # "maximum relative error 2^-7"
    "tanh.approx.bf16": Bound(absolute=2.0**-8),  # "maximum absolute error 2^-8"
}

# The CUDA C++ Programming Guide's bounds for functions, in units in the last place. The functions combine IEEE
# operations with approximate instructions, so the simulator's results have errors within the same bounds.
_ULPS = {
    "sinf": 2, "cosf": 2, "tanf": 4, "expf": 2, "exp2f": 2, "logf": 1, "log2f": 1, "powf": 4, "tanhf": 2, "erff": 2,
    "atan2f": 3, "cbrtf": 1, "rsqrtf": 2, "hypotf": 3, "normcdff": 5, "sin": 2, "cos": 2, "exp": 1, "log": 1,
    "pow": 2, "tanh": 2, "erf": 2, "cbrt": 1, "rsqrt": 1,
}  # fmt: skip  # rows of a table
FUNCTIONS = {name: Bound(ulp=ulp) for name, ulp in _ULPS.items()}
