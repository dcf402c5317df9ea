"""Reference values of functions in double precision for which only mpmath is precise enough.

mpmath takes milliseconds per value. So the tests use recorded values: `data/precise.npz` has arguments and each
function's values, written by `python -m tests.math_functions --record`, which needs mpmath.
"""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

Array = NDArray[Any]
DATA = Path(__file__).parent / "data" / "precise.npz"
NAMES = (
    "cyl_bessel_i0", "cyl_bessel_i1", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "j0", "j1", "jn", "lgamma",
    "normcdf", "normcdfinv", "tgamma", "y0", "y1", "yn",
)  # fmt: skip  # a list of names
# Oscillating functions of larger arguments need a full-precision argument reduction; nothing is compared there.
FARTHEST = 1e5


@cache
def recorded() -> dict[str, tuple[Array, Array]]:
    """Return the recorded arguments of each function, in double precision, and its values, as `numpy.longdouble`."""
    with np.load(DATA) as file:
        return {name: (file["x"], file[f"{name}_high"] + file[f"{name}_low"].astype(np.longdouble)) for name in NAMES}


def values(name: str, x: Array) -> Array:
    """Return a function's values; those at the recorded arguments come from the record."""
    arguments, answers = recorded()[name]
    if np.array_equal(arguments.view(np.uint64), x.view(np.uint64)):
        return answers
    high, low = computed(name, x)
    return high + low.astype(np.longdouble)


def computed(name: str, x: Array) -> tuple[Array, Array]:
    """Compute a function's values with mpmath; return each as a double and the double that remains of it."""
    import mpmath  # only the script needs it

    functions = _functions(mpmath)
    high, low = np.empty(len(x)), np.zeros(len(x))
    with mpmath.workdps(50):
        for place, argument in enumerate(x.tolist()):
            value = mpmath.mpf(functions[name](argument))
            high[place] = float(value)
            if np.isfinite(high[place]):
                low[place] = float(value - mpmath.mpf(high[place]))
    return high, low


def _functions(mp: Any) -> dict[str, Callable[[float], Any]]:
    """Return the functions by name, defined for every double-precision number."""
    inf, nan = float("inf"), float("nan")

    def newton(function: Any, slope: Any, start: float, target: Any) -> Any:
        """Solve function(y) = target by Newton's method; `start` is a solution in double precision, or nearer to 0."""
        y = mp.mpf(start)
        for _ in range(500):
            step = (function(y) - target) / slope(y)
            y -= step
            if abs(step) <= abs(y) * mp.mpf(10) ** -40:
                return y
        raise ArithmeticError(f"no solution for {target}")

    def inverse(name: str, function: Any, slope: Any, known: dict[float, float]) -> Any:
        """Return the inverse of a function; `known` has its values at the ends and the middle of its domain."""
        start = getattr(scipy.special, name)

        def solve(x: float) -> Any:
            if x in known:
                return known[x]
            if not min(known) < x < max(known):
                return nan
            # SciPy treats subnormal numbers as 0, and returns infinity.
            first = start(x) if abs(start(x)) < inf else 20 if name == "erfcinv" else -30
            return newton(function, slope, float(first), mp.mpf(x))

        return solve

    def bounded(function: Any, low: float, high: float, below: float, above: float) -> Any:
        """Return `function`, with constants below `low` and above `high` that are right in double precision."""

        def value(x: float) -> Any:
            return nan if x != x else below if x < low else above if x > high else function(mp.mpf(x))

        return value

    def bessel(kind: Any, order: int) -> Any:
        return bounded(lambda x: kind(order, x), -FARTHEST, FARTHEST, 0.0, 0.0)

    def second(order: int) -> Any:
        value = bessel(mp.bessely, order)
        return lambda x: -inf if x == 0 else nan if x < 0 else value(x)

    def erfcx(y: Any) -> Any:
        if y > 1e8:
            return 1 / (y * mp.sqrt(mp.pi)) * (1 - 1 / (2 * y * y))
        with mp.extradps(30):
            return mp.exp(y * y) * mp.erfc(y)

    def lgamma(y: Any) -> Any:
        if y <= 0 and y == int(y):
            return inf
        return mp.log(mp.pi / abs(mp.sinpi(y))) - mp.loggamma(1 - y) if y < 0 else mp.loggamma(y)

    def tgamma(x: float) -> Any:
        if x == -inf or (x < 0 and x == int(x)):
            return nan
        if x == 0:
            return inf if str(x) == "0.0" else -inf
        return bounded(mp.gamma, -300, 200, 0.0, inf)(x)

    def slope(y: Any) -> Any:
        """Return the derivative of the error function."""
        return 2 / mp.sqrt(mp.pi) * mp.exp(-y * y)

    return {
        "cyl_bessel_i0": bounded(lambda x: mp.besseli(0, x), -800, 800, inf, inf),
        "cyl_bessel_i1": bounded(lambda x: mp.besseli(1, x), -800, 800, -inf, inf),
        "erf": bounded(mp.erf, -7, 7, -1.0, 1.0),
        "erfc": bounded(mp.erfc, -7, 30, 2.0, 0.0),
        "erfcx": bounded(erfcx, -30, sys.float_info.max, inf, 0.0),
        "erfinv": inverse("erfinv", mp.erf, slope, {-1: -inf, 1: inf, 0: 0.0}),
        "erfcinv": inverse("erfcinv", mp.erfc, lambda y: -slope(y), {0: inf, 2: -inf, 1: 0.0}),
        "normcdf": bounded(mp.ncdf, -40, 9, 0.0, 1.0),
        "normcdfinv": inverse("ndtri", mp.ncdf, mp.npdf, {0: -inf, 1: inf, 0.5: 0.0}),
        "j0": bessel(mp.besselj, 0),
        "j1": bessel(mp.besselj, 1),
        "jn": bessel(mp.besselj, 128),
        "y0": second(0),
        "y1": second(1),
        "yn": second(3),
        "lgamma": bounded(lgamma, -1e17, sys.float_info.max, inf, inf),
        "tgamma": tgamma,
    }
