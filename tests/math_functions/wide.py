"""Values of functions in a higher precision than their results are rounded to.

Arguments of single precision come here in double precision, and those of double precision as `numpy.longdouble`, which
has 64 bits on x86-64 and 113 on aarch64. Functions that NumPy lacks are SciPy's, in double precision only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from .precise import values
from .samples import Arguments

__all__ = ["cosine_of_pi", "norm", "power_of_ten", "sine_of_pi", "special"]

Array = NDArray[Any]


def sine_of_pi(x: Array, quarters: int = 0) -> Array:
    """Return the sine of pi * x, or of so many quarter turns more."""
    turn = np.fmod(np.where(np.isfinite(x), x, 0), x.dtype.type(2))
    quarter = np.rint(2 * turn)
    pi = x.dtype.type(np.pi) + x.dtype.type(1.2246467991473531772e-16)
    # The angle from the quarter turn next to x is exact.
    rest = np.where(np.isfinite(x), (turn - quarter / 2) * pi, np.nan)
    sine, cosine = np.sin(rest), np.cos(rest)
    return np.choose((quarter.astype(int) + quarters) % 4, [sine, cosine, -sine, -cosine])


def cosine_of_pi(x: Array) -> Array:
    """Return the cosine of pi * x."""
    return sine_of_pi(x, 1)


def power_of_ten(x: Array) -> Array:
    """Return 10 to the power of x."""
    return np.power(x.dtype.type(10), x)


def norm(*columns: Array) -> Array:
    """Return the square root of a sum of squares; an infinity outweighs a NaN."""
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
    """Return a function of one argument that NumPy lacks; see `precise` for double precision."""
    return lambda a: np.asarray(_SCIPY[name](a.x)) if a.x.dtype == np.float64 else values(name, a.x.astype(np.float64))
