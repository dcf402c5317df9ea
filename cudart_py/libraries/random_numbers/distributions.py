"""The distributions of random numbers: their parameters, cuRAND's function, and passes over its uniform numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...base import arguments
from ...context.device import Device
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from ..device_code import kernel_of

SOURCE = Path(__file__).parent / "device_code" / "distributions.cu"
BLOCK = 256
HIGHEST_RATE = 400_000
_REAL: dict[np.dtype[Any], str] = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
# The dtypes of real numbers, and of counts of events.
REAL: tuple[np.dtype[Any], ...] = tuple(_REAL)
COUNTS: tuple[np.dtype[Any], ...] = (np.dtype(np.uint32),)

Numbers = DeviceArray | NDArray[Any]
Finish = Callable[..., None]


class Distribution(NamedTuple):
    """A distribution of random numbers.

    `check(call, dtype, *parameters)` returns the parameters as floats. `symbol` is the cuRAND function, and `binding`
    its name in the bindings, without the suffix for double precision. It takes the parameters, unless `finish` changes
    its uniform numbers: `finish(numbers, device, stream, *parameters)`. If `in_pairs`, pseudorandom generators make an
    even number of elements.
    """

    symbol: str
    binding: str
    dtypes: tuple[np.dtype[Any], ...]
    check: Callable[..., tuple[float, ...]]
    finish: Finish | None = None
    in_pairs: bool = False

    def function(self, functions: Any, dtype: np.dtype[Any]) -> Callable[..., None]:
        """Return the function of the bindings for a dtype."""
        function: Callable[..., None] = getattr(
            functions, f"{self.binding}_double" if dtype == np.float64 else self.binding
        )
        return function


def _check_interval(call: str, dtype: np.dtype[Any], low: Any, high: Any) -> tuple[float, float]:
    low, high = arguments.number(call, "low", low), arguments.number(call, "high", high)
    if high < low:
        raise arguments.wrong_value(call, "high", f"at least 'low', which is {low}", high)
    if not high - low <= float(np.finfo(dtype).max):
        rule = f"so close to 'low', which is {low}, that {dtype} can represent the difference"
        raise arguments.wrong_value(call, "high", rule, high)
    return low, high


def _check_normal(call: str, dtype: np.dtype[Any], mean: Any, deviation: Any) -> tuple[float, float]:
    mean = arguments.number(call, "mean", mean)
    if not arguments.number(call, "deviation", deviation) > 0:
        raise arguments.wrong_value(call, "deviation", "positive", deviation)
    return mean, float(deviation)


def _check_scale(call: str, dtype: np.dtype[Any], scale: Any) -> tuple[float]:
    if not arguments.number(call, "scale", scale) > 0:
        raise arguments.wrong_value(call, "scale", "positive", scale)
    return (float(scale),)


def _check_rate(call: str, dtype: np.dtype[Any], rate: Any) -> tuple[float]:
    if not 0 < arguments.number(call, "rate", rate, -math.inf, math.inf) <= HIGHEST_RATE:
        rule = f"above 0 and at most {HIGHEST_RATE}, the highest rate of cuRAND"
        raise arguments.wrong_value(call, "rate", rule, rate)
    return (float(rate),)


def _stretch(numbers: Numbers, device: Device | None, stream: Stream, low: float, high: float) -> None:
    """Make uniform numbers in (0, 1] uniform in (low, high]."""
    if (low, high) == (0, 1):
        return
    if isinstance(numbers, np.ndarray):
        numbers[...] = numbers.dtype.type(low) + numbers.dtype.type(high - low) * numbers
    else:
        _queue("stretch", numbers, device, stream, low, high)


def _make_exponential(numbers: Numbers, device: Device | None, stream: Stream, scale: float) -> None:
    """Make uniform numbers in (0, 1] exponentially distributed with the mean `scale`."""
    if isinstance(numbers, np.ndarray):
        numbers[...] = 0 - numbers.dtype.type(scale) * np.log(numbers)
    else:
        _queue("make_exponential", numbers, device, stream, scale)


def _queue(name: str, numbers: DeviceArray, device: Device | None, stream: Stream, *parameters: float) -> None:
    """Queue a kernel for a contiguous array; the device must be current."""
    assert device is not None  # since host generators fill NumPy arrays
    kernel = kernel_of(SOURCE, f"{name}<{_REAL[numbers.dtype]}>", device)
    kernel[-(-numbers.size // BLOCK), BLOCK, 0, stream](numbers, numbers.size, *parameters)


UNIFORM = Distribution("curandGenerateUniform", "generate_uniform", REAL, _check_interval, _stretch)
EXPONENTIAL = Distribution("curandGenerateUniform", "generate_uniform", REAL, _check_scale, _make_exponential)
NORMAL = Distribution("curandGenerateNormal", "generate_normal", REAL, _check_normal, in_pairs=True)
LOG_NORMAL = Distribution("curandGenerateLogNormal", "generate_log_normal", REAL, _check_normal, in_pairs=True)
POISSON = Distribution("curandGeneratePoisson", "generate_poisson", COUNTS, _check_rate)
