"""Arguments for functions: special numbers, random bit patterns, and ordinary numbers of several magnitudes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SPECIAL = [0.0, 1.0, 0.5, 2.0, 3.0, 10.0, 1.5, 2.5, np.pi, np.e, 0.49999997, 8388609.0, 4503599627370497.0, np.inf]


class Arguments(NamedTuple):
    """Four arrays of floating-point numbers and one of integers, all of the same length."""

    x: Array
    y: Array
    z: Array
    w: Array
    n: NDArray[np.int32]

    def widened(self) -> Arguments:
        """Return the same numbers in the precision that references are computed in."""
        wide = np.float64 if self.x.dtype == np.float32 else np.longdouble
        return Arguments(*(one.astype(wide) for one in self[:4]), self.n)


def _column(rng: np.random.Generator, kind: np.dtype[Any], count: int) -> Array:
    info = np.finfo(kind)
    special = [*SPECIAL, float(info.tiny), float(info.smallest_subnormal), float(info.max), float(info.eps), np.nan]
    bits = rng.integers(0, 1 << 8 * kind.itemsize, count, f"u{kind.itemsize}").view(kind)
    size = 2.0 ** rng.uniform(-40, 40, count)
    groups = [
        rng.choice([*special, *(-value for value in special)], count),
        bits,
        bits,
        rng.uniform(-1, 1, count),
        rng.uniform(0, 2, count),
        rng.uniform(-10, 10, count),
        rng.normal(0, 100, count),
        size * rng.choice([-1, 1], count),
    ]
    return np.choose(rng.integers(0, len(groups), count), [group.astype(kind) for group in groups])


@np.errstate(all="ignore")
def arguments(kind: Any, count: int, seed: int) -> Arguments:
    """Return `count` arguments for functions of the precision `kind`; the seed determines them."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(kind)
    x, y, z, w = (_column(rng, kind, count) for _ in range(4))
    # Equal arguments, neighbours and multiples are rare among independent random numbers.
    ties = rng.integers(0, 16, count)
    y = np.select([ties == 0, ties == 1, ties == 2], [x, np.nextafter(x, y), x * kind.type(1.5)], y)
    z = np.where(ties == 3, -(x * y), z)
    n = np.where(rng.random(count) < 0.8, rng.integers(-330, 331, count), rng.integers(-(1 << 31), 1 << 31, count))
    return Arguments(x, y, z, w, n.astype(np.int32))
