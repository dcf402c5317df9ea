"""Reference values of functions: exact, or in a higher precision than that of the tested result.

Single-precision arguments arrive in double precision, and double-precision arguments as `numpy.longdouble`, whose
significand has 64 bits on x86-64 and 113 on aarch64. Functions that NumPy lacks are SciPy's, in double precision only.
Exact results are computed from integers and fractions alone.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from .precise import values
from .samples import Arguments

Array = NDArray[Any]


def sine_of_pi(x: Array, quarters: int = 0) -> Array:
    """Return the sine of pi * x plus a number of quarter turns."""
    turn = np.fmod(np.where(np.isfinite(x), x, 0), x.dtype.type(2))
    quarter = np.rint(2 * turn)
    pi = x.dtype.type(np.pi) + x.dtype.type(1.2246467991473531772e-16)
    # The distance from x to the nearest quarter turn is exact.
    rest = np.where(np.isfinite(x), (turn - quarter / 2) * pi, np.nan)
    sine, cosine = np.sin(rest), np.cos(rest)
    return np.choose((quarter.astype(int) + quarters) % 4, [sine, cosine, -sine, -cosine])


def cosine_of_pi(x: Array) -> Array:
    return sine_of_pi(x, 1)


def power_of_ten(x: Array) -> Array:
    return np.power(x.dtype.type(10), x)


def norm(*columns: Array) -> Array:
    """Return the square root of a sum of squares; it is infinite if any column is, even beside a NaN."""
    total = np.sqrt(sum(column * column for column in columns))
    return np.where(np.any([np.isinf(column) for column in columns], axis=0), np.inf, total)


_SCIPY: dict[str, Callable[..., Any]] = {
    **{name: getattr(scipy.special, name) for name in ("erf", "erfc", "erfcx", "erfinv", "erfcinv")},
    **{name: getattr(scipy.special, name) for name in ("j0", "j1", "y0", "y1")},
    "normcdf": scipy.special.ndtr,
    "normcdfinv": scipy.special.ndtri,
    "tgamma": lambda x: np.where((x < 0) & (x == np.floor(x)), np.nan, scipy.special.gamma(x)),
    "jn": lambda x: scipy.special.jn(128, x),
    "yn": lambda x: scipy.special.yn(3, x),
    "cyl_bessel_i0": lambda x: np.where(np.isinf(x), np.inf, scipy.special.i0(x)),
    "cyl_bessel_i1": lambda x: np.where(np.isinf(x), x, scipy.special.i1(x)),
    "lgamma": lambda x: np.where(np.isinf(x), np.inf, scipy.special.gammaln(x)),
}


def special(name: str) -> Callable[[Arguments], Array]:
    """Return the reference of a one-argument function that NumPy lacks: SciPy's, or mpmath's for double precision."""
    return lambda a: np.asarray(_SCIPY[name](a.x)) if a.x.dtype == np.float64 else values(name, a.x.astype(np.float64))


# CUDA's names of the rounding directions, and those of the references.
ROUNDINGS = {"rn": "rn", "rz": "rz", "ru": "rp", "rd": "rm"}


def each(reference: Callable[..., float], direction: str, *operands: Array) -> Array:
    """Apply a reference of PTX operations, such as ``ieee_sum``, to each element of the operands."""
    kind = operands[0].dtype
    how = f"f{8 * kind.itemsize}", ROUNDINGS[direction]
    lanes = zip(*(operand.tolist() for operand in operands), strict=True)
    return np.array([reference(*lane, *how) for lane in lanes], kind)


def remainder(x: Array, y: Array) -> Array:
    """Return the IEEE remainder of x / y, the one of smallest magnitude."""
    lanes = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([math.remainder(a, b) if math.isfinite(a) and b else math.nan for a, b in lanes], x.dtype)


def quotient_bits(x: Array, y: Array) -> NDArray[np.int64]:
    """Return the low three bits of x / y rounded to an integer, with the quotient's sign; 0 where it is undefined."""

    def one(a: float, b: float) -> int:
        if not (math.isfinite(a) and math.isfinite(b) and b):
            return 0
        whole = round(Fraction(a) / Fraction(b))
        return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(whole) & 7)

    return np.array([one(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], np.int64)
