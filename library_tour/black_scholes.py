"""Black-Scholes prices of options, the reference for the prices that kernels compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_erf = np.vectorize(math.erf, otypes=[float])


def call_price(start: ArrayLike, strike: float, rate: float, sigma: float, years: ArrayLike) -> NDArray[Any]:
    """Return the prices of calls for today's share prices and the years to expiry, which may both be arrays."""
    spot, discounted = np.asarray(start, float), strike * np.exp(-rate * np.asarray(years, float))
    # At expiry the deviation is zero, and d would be infinite or 0/0. With a tiny deviation, the price is the payoff.
    deviation = np.maximum(sigma * np.sqrt(np.asarray(years, float)), 1e-300)
    d = np.log(spot / discounted) / deviation
    return np.asarray(spot * _below(d + deviation / 2) - discounted * _below(d - deviation / 2))


def put_price(start: ArrayLike, strike: float, rate: float, sigma: float, years: ArrayLike) -> NDArray[Any]:
    """Return the prices of puts, with the same arguments as `call_price`."""
    discounted = strike * np.exp(-rate * np.asarray(years, float))
    return np.asarray(call_price(start, strike, rate, sigma, years) + discounted - np.asarray(start, float))


def _below(x: NDArray[Any]) -> NDArray[Any]:
    """Return the probability that a standard normal variable is below x."""
    return np.asarray((1 + _erf(x / math.sqrt(2))) / 2)
