"""Black and Scholes' prices of options, which those that are computed are compared with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_erf = np.vectorize(math.erf, otypes=[float])


def call_price(start: ArrayLike, strike: float, rate: float, sigma: float, years: ArrayLike) -> NDArray[Any]:
    """Return the prices of calls by the shares' prices today and the years that are left, at which both are arrays."""
    spot, discounted = np.asarray(start, float), strike * np.exp(-rate * np.asarray(years, float))
    # At the end the deviation is zero, and d infinite or, of zero over zero, whatever: the price is the payoff.
    deviation = np.maximum(sigma * np.sqrt(np.asarray(years, float)), 1e-300)
    d = np.log(spot / discounted) / deviation
    return np.asarray(spot * _below(d + deviation / 2) - discounted * _below(d - deviation / 2))


def put_price(start: ArrayLike, strike: float, rate: float, sigma: float, years: ArrayLike) -> NDArray[Any]:
    """Return the prices of puts, as `call_price` those of calls."""
    discounted = strike * np.exp(-rate * np.asarray(years, float))
    return np.asarray(call_price(start, strike, rate, sigma, years) + discounted - np.asarray(start, float))


def _below(x: NDArray[Any]) -> NDArray[Any]:
    """Return the probability that a normal number is below x."""
    return np.asarray((1 + _erf(x / math.sqrt(2))) / 2)
