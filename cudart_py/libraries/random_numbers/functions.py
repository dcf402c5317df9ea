"""Random arrays from the calling thread's generator, with the arguments in NumPy's order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ... import arguments
from ...context.device import current_device
from ...hints import answers_keywords
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...shapes import Shape
from ...streams.stream import Stream
from .. import views
from ..handles import thread_cache
from .generators import COUNTS, REAL, Generator, check_bell, check_range, check_rate, check_scale


def _default() -> Generator:
    """Return the calling thread's generator on the current device, with a seed from the operating system."""
    generators = thread_cache("curand")
    device = current_device()
    found: Generator | None = generators.get(device.ordinal)
    if found is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        found = generators[device.ordinal] = Generator("philox", seed)
    return found


def _check_first(call: str, name: str, value: Any, size: Shape | None, out: DeviceArray | None) -> None:
    """Raise TypeError for a size in the place of the first parameter of a distribution, or without any size."""
    if isinstance(value, tuple | list):
        raise arguments.wrong_type(call, name, "a number", value, f"pass size={value!r}")
    if size is None and out is None:
        remedy = f"pass size={value!r}" if isinstance(value, int) and value > 1 else "pass the size of a new array"
        raise arguments.wrong_type(call, "size", "given unless 'out' is", size, remedy)


def _array(
    call: str,
    size: Shape | None,
    dtype: DTypeLike,
    dtypes: tuple[np.dtype[Any], ...],
    out: DeviceArray | None,
    stream: Stream | None,
    *,
    pairs: bool = False,
) -> tuple[Generator, DeviceArray, DeviceArray]:
    """Return the thread's generator, the array to fill, and the array to return, which is `out` or a new one.

    They differ for odd sizes where cuRAND fills `pairs`: then the first has one more element.
    """
    generator = _default()
    if out is not None:
        if size is not None:
            raise arguments.wrong_value(call, "size", "None where 'out' is given", size)
        return generator, out, out
    assert size is not None  # as `_check_first` has made sure
    shape, kind = arguments.shape(call, "size", size), arguments.dtype(call, "dtype", dtype)
    if kind not in dtypes:
        raise arguments.wrong_dtype(call, "dtype", views.one_of(map(str, dtypes)), kind)
    where = generator._stream_for(call, stream)
    count = math.prod(shape)
    if pairs and count % 2:
        more = empty(count + 1, kind, stream=where)
        return generator, more, more[:count].reshape(shape)
    array = empty(shape, kind, stream=where)
    return generator, array, array


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
    call = "uniform"
    _check_first(call, "low", low, size, out)
    ends = check_range(call, low, high)
    generator, array, result = _array(call, size, dtype, REAL, out, stream)
    generator._draw_uniform(call, array, *ends, stream)
    return result


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
    return _draw_normal("normal", mean, deviation, size, dtype, out, stream)


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
    return _draw_normal("log_normal", mean, deviation, size, dtype, out, stream)


def _draw_normal(
    call: str,
    mean: float,
    deviation: float,
    size: Shape | None,
    dtype: DTypeLike,
    out: DeviceArray | None,
    stream: Stream | None,
) -> DeviceArray:
    _check_first(call, "mean", mean, size, out)
    mean, deviation = check_bell(call, mean, deviation)
    generator, array, result = _array(call, size, dtype, REAL, out, stream, pairs=True)
    generator._draw_normal(call, array, mean, deviation, stream)
    return result


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
    call = "exponential"
    _check_first(call, "scale", scale, size, out)
    scale = check_scale(call, scale)
    generator, array, result = _array(call, size, dtype, REAL, out, stream)
    generator._draw_exponential(call, array, scale, stream)
    return result


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
    call = "poisson"
    _check_first(call, "rate", rate, size, out)
    rate = check_rate(call, rate)
    generator, array, result = _array(call, size, np.uint32, COUNTS, out, stream)
    generator._draw_poisson(call, array, rate, stream)
    return result
