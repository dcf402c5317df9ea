"""Random arrays from the calling thread's generator, with the arguments in NumPy's order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ...base import arguments
from ...base.shapes import Shape
from ...context.device import current_device
from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...streams.stream import Stream
from .. import views
from ..handles import thread_cache
from .distributions import EXPONENTIAL, LOG_NORMAL, NORMAL, POISSON, UNIFORM, Distribution
from .generators import Generator


def _default() -> Generator:
    """Return the calling thread's generator on the current device, with a seed from the operating system."""
    generators = thread_cache("curand")
    device = current_device()
    generator: Generator | None = generators.get(device.ordinal)
    if generator is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        generator = generators[device.ordinal] = Generator("philox", seed)
    return generator


def _draw(
    call: str,
    distribution: Distribution,
    parameters: dict[str, Any],
    size: Shape | None,
    dtype: DTypeLike,
    out: DeviceArray | None,
    stream: Stream | None,
) -> DeviceArray:
    """Fill `out` or a new array with numbers of the calling thread's generator, for the call that errors name.

    All arguments are checked before an array is allocated.
    """
    name, first = next(iter(parameters.items()))
    if isinstance(first, tuple | list):
        raise arguments.wrong_type(call, name, "a number", first, "pass a shape as size=")
    values, generator = tuple(parameters.values()), _default()
    if out is not None:
        if size is not None:
            raise arguments.wrong_value(call, "size", "None where 'out' is given", size)
        return generator._draw(call, distribution, out, values, stream)
    if size is None:
        remedy = "pass the size of a new array, or an array to fill as out="
        sizes = {key: value for key, value in parameters.items() if isinstance(value, int) and 1 < value < 2**63}
        if name in sizes:  # the size, where the first parameters are expected
            passed = " and ".join(f"{value} was passed as {key!r}" for key, value in sizes.items())
            remedy = f"{passed}; pass size={tuple(sizes.values()) if len(sizes) > 1 else first}"
        raise TypeError(f"{call}: argument 'size' must be given, unless 'out' is; {remedy}")
    shape, kind = arguments.shape(call, "size", size), arguments.dtype(call, "dtype", dtype)
    if kind not in distribution.dtypes:
        raise arguments.wrong_dtype(call, "dtype", views.one_of(map(str, distribution.dtypes)), kind)
    distribution.check(call, kind, *values)
    where, count = generator._stream_for(call, stream), math.prod(shape)
    if distribution.in_pairs and count % 2:
        array = empty(count + 1, kind, stream=where)
        return generator._draw(call, distribution, array, values, stream)[:count].reshape(shape)
    return generator._draw(call, distribution, empty(shape, kind, stream=where), values, stream)


@answers_keywords("uniform")
def uniform(
    low: float = 0.0,
    high: float = 1.0,
    size: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return an array of uniform random numbers in (low, high] from the calling thread's Philox generator."""
    return _draw("uniform", UNIFORM, {"low": low, "high": high}, size, dtype, out, stream)


@answers_keywords("normal")
def normal(
    mean: float = 0.0,
    deviation: float = 1.0,
    size: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return an array of normally distributed random numbers from the calling thread's Philox generator.

    If `out` is given, it must have an even number of elements, because cuRAND generates normal numbers in pairs.
    """
    return _draw("normal", NORMAL, {"mean": mean, "deviation": deviation}, size, dtype, out, stream)


def log_normal(
    mean: float = 0.0,
    deviation: float = 1.0,
    size: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return an array of log-normally distributed random numbers from the calling thread's Philox generator.

    `mean` and `deviation` are those of the logarithms. If `out` is given, it must have an even number of elements.
    """
    return _draw("log_normal", LOG_NORMAL, {"mean": mean, "deviation": deviation}, size, dtype, out, stream)


@answers_keywords("exponential")
def exponential(
    scale: float = 1.0,
    size: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return an array of exponentially distributed random numbers from the calling thread's Philox generator.

    `scale` is their mean. cuRAND has no such function: they are `-scale * log(u)` for its uniform numbers u.
    """
    return _draw("exponential", EXPONENTIAL, {"scale": scale}, size, dtype, out, stream)


@answers_keywords("poisson")
def poisson(
    rate: float = 1.0,
    size: Shape | None = None,
    *,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return a uint32 array of Poisson-distributed counts from the calling thread's Philox generator.

    `rate` is the mean, above 0 and at most 400,000.
    """
    return _draw("poisson", POISSON, {"rate": rate}, size, np.uint32, out, stream)
