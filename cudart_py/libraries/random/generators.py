"""Generators of cuRAND, which fill DeviceArrays, or NumPy arrays on the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ... import arguments
from ...context.current import activated
from ...context.device import current_device
from ...context.lifetimes import Handle
from ...driver.calls import library
from ...memory.array import DeviceArray
from ...memory.creation import empty
from ...shapes import Shape
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import keep, thread_cache

__all__ = ["KINDS", "Generator", "log_normal", "normal", "poisson", "uniform"]

Filled = TypeVar("Filled", DeviceArray, NDArray[Any])


class _Kind(NamedTuple):
    """A kind of generator: its name in curandRngType, whether it takes a seed and an offset, and the bits of a number.

    The kinds without a seed are quasirandom, and take a number of dimensions.
    """

    name: str
    seeded: bool = True
    offsets: bool = True
    bits: int = 32


KINDS = {
    "xorwow": _Kind("PSEUDO_XORWOW"),
    "mrg32k3a": _Kind("PSEUDO_MRG32K3A"),
    "philox": _Kind("PSEUDO_PHILOX4_32_10"),
    "mt19937": _Kind("PSEUDO_MT19937", offsets=False),
    "mtgp32": _Kind("PSEUDO_MTGP32", offsets=False),
    "sobol": _Kind("QUASI_SOBOL32", seeded=False),
    "scrambled_sobol": _Kind("QUASI_SCRAMBLED_SOBOL32", seeded=False),
    "sobol64": _Kind("QUASI_SOBOL64", seeded=False, bits=64),
    "scrambled_sobol64": _Kind("QUASI_SCRAMBLED_SOBOL64", seeded=False, bits=64),
}
MOST_DIMENSIONS = 20_000
HIGHEST_RATE = 400_000
# How the names of the functions end that draw numbers of a dtype.
_SUFFIXES: dict[np.dtype[Any], str] = {np.dtype(np.float32): "", np.dtype(np.float64): "_double"}


class Generator(Handle):
    """A generator of cuRAND on the current device, or on the host (`host=True`), where it fills NumPy arrays.

    `kind` is a name in `KINDS`. The pseudorandom kinds take a `seed`. The quasirandom kinds make points of `dimensions`
    coordinates: an array gets the first coordinates of all points, then the second coordinates, and so on. `offset`
    skips that many numbers of the sequence, or points; "mt19937" and "mtgp32" have no offsets. `ordering` names a
    curandOrdering, the order in which an array gets the numbers: "default", "best", "seeded", "dynamic", or "legacy",
    which is the same in every release of cuRAND.

    Each call continues the sequence of the call before. Raises TypeError or ValueError, which name the argument, and a
    CudaError for what cuRAND refuses.
    """

    __slots__ = ("_bound", "_functions", "_kind", "_name", "device", "dimensions", "host")

    def __init__(
        self,
        kind: str = "philox",
        seed: int = 0,
        *,
        offset: int = 0,
        ordering: str | None = None,
        dimensions: int = 1,
        host: bool = False,
    ) -> None:
        self._value, self._owned = None, True
        call = "Generator"
        arguments.choice(call, "kind", kind, KINDS)
        host = arguments.flag(call, "host", host)
        found = KINDS[kind]
        seed = arguments.integer(call, "seed", seed, 0, 2**64 - 1)
        offset = arguments.integer(call, "offset", offset, 0, 2**64 - 1)
        dimensions = arguments.integer(call, "dimensions", dimensions, 1, MOST_DIMENSIONS)
        if ordering is not None:
            arguments.text(call, "ordering", ordering)
        if offset and not found.offsets:
            raise ValueError(f"offset={offset}: the generator {kind!r} has no offsets")
        if seed and not found.seeded:
            raise ValueError(f"seed={seed}: the generator {kind!r} takes no seed, only an offset")
        if dimensions > 1 and found.seeded:
            raise ValueError(f"dimensions={dimensions}: the generator {kind!r} is not quasi-random")
        self._name, self._kind, self._bound = kind, found, 0
        self.dimensions, self.host = dimensions, host
        self.device = None if host else current_device()
        self._functions = functions = library("curand")
        make = functions.create_generator_host if host else functions.create_generator
        self._value = _call("curandCreateGenerator", make, int(functions.RngType[found.name]))
        if found.seeded:
            set_seed = functions.set_pseudo_random_generator_seed
            _call("curandSetPseudoRandomGeneratorSeed", set_seed, self.handle, seed)
        else:
            set_dimensions = functions.set_quasi_random_generator_dimensions
            _call("curandSetQuasiRandomGeneratorDimensions", set_dimensions, self.handle, dimensions)
        if ordering is not None:
            name = f"{'PSEUDO' if found.seeded else 'QUASI'}_{ordering.upper()}"
            if name not in functions.Ordering.__members__:
                raise ValueError(f"ordering={ordering!r} is not an ordering of cuRAND for {kind!r}")
            order = int(functions.Ordering[name])
            _call("curandSetGeneratorOrdering", functions.set_generator_ordering, self.handle, order)
        if offset:
            self.skip_to(offset)

    def __repr__(self) -> str:
        place = "the host" if self.device is None else f"device {self.device.ordinal}"
        return f"<Generator {'closed' if self.closed else f'{self._name} on {place}'}>"

    def skip_to(self, offset: int) -> None:
        """Continue after the first `offset` numbers of the sequence, or points (curandSetGeneratorOffset)."""
        offset = arguments.integer("Generator.skip_to", "offset", offset, 0, 2**64 - 1)
        if not self._kind.offsets:
            raise ValueError(f"offset={offset}: the generator {self._name!r} has no offsets")
        _call("curandSetGeneratorOffset", self._functions.set_generator_offset, self.handle, offset)

    # -- what it draws -------------------------------------------------------------------------

    def bits(self, out: Filled, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, of uint32 (uint64 for the kinds whose names end in 64), with random bits (curandGenerate)."""
        wide = self._kind.bits == 64
        self._check_out(out, (np.dtype(np.uint64 if wide else np.uint32),))
        call = self._functions.generate_long_long if wide else self._functions.generate
        return self._fill("curandGenerate", call, out, stream)

    def uniform(self, out: Filled, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, of float32 or float64, with uniform numbers in (0, 1] (curandGenerateUniform)."""
        self._check_out(out, tuple(_SUFFIXES))
        call = getattr(self._functions, f"generate_uniform{_SUFFIXES[out.dtype]}")
        return self._fill("curandGenerateUniform", call, out, stream)

    def normal(self, out: Filled, mean: float = 0.0, deviation: float = 1.0, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, of float32 or float64, with normal numbers (curandGenerateNormal).

        The pseudorandom kinds make them in pairs: `out` has an even number of elements.
        """
        return self._bell("normal", "curandGenerateNormal", out, mean, deviation, stream)

    def log_normal(
        self, out: Filled, mean: float = 0.0, deviation: float = 1.0, *, stream: Stream | None = None
    ) -> Filled:
        """Fill `out` with the exponentials of such normal numbers (curandGenerateLogNormal)."""
        return self._bell("log_normal", "curandGenerateLogNormal", out, mean, deviation, stream)

    def poisson(self, out: Filled, rate: float, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, of uint32, with counts of events at a rate of at most 400,000 (curandGeneratePoisson)."""
        _check_real(rate=rate)
        if not 0 < rate <= HIGHEST_RATE:
            raise ValueError(f"rate={rate} is not above 0, or exceeds {HIGHEST_RATE}, the highest rate of cuRAND")
        self._check_out(out, (np.dtype(np.uint32),))
        return self._fill("curandGeneratePoisson", self._functions.generate_poisson, out, stream, float(rate))

    def _bell(
        self, name: str, symbol: str, out: Filled, mean: float, deviation: float, stream: Stream | None
    ) -> Filled:
        _check_real(mean=mean, deviation=deviation)
        if not deviation > 0:
            raise ValueError(f"deviation={deviation} is not positive")
        self._check_out(out, tuple(_SUFFIXES))
        if self._kind.seeded and out.size % 2:
            raise ValueError(
                f"out has {out.size} elements; {self._name!r} makes normal numbers in pairs: "
                f"fill an array of {out.size + 1} and take a slice"
            )
        call = getattr(self._functions, f"generate_{name}{_SUFFIXES[out.dtype]}")
        return self._fill(symbol, call, out, stream, float(mean), float(deviation))

    def _check_out(self, out: Any, dtypes: tuple[np.dtype[Any], ...]) -> None:
        """Raise TypeError or ValueError for what is no array that the generator fills, and for other dtypes."""
        if isinstance(out, int | tuple):
            raise TypeError(
                f"Generator: argument 'out' must be the array to fill, not a shape, {arguments.describe(out)}: pass "
                "cudart_py.empty(shape, dtype), or call the function of this name in cudart_py.libraries with a shape"
            )
        if self.device is not None:
            views.check_place(self.device, out=out)
            views.require_contiguous("out", out)
        elif not isinstance(out, np.ndarray) or not out.flags.c_contiguous or not out.flags.writeable:
            raise TypeError("out must be a contiguous NumPy array that can be written: this generator is the host's")
        if out.dtype not in dtypes:
            raise TypeError(f"out has dtype {out.dtype}; it is filled with {', '.join(map(str, dtypes))}")

    def _fill(
        self,
        symbol: str,
        function: Callable[..., None],
        out: Filled,
        stream: Stream | None,
        *parameters: float,
    ) -> Filled:
        generator, size = self.handle, out.size
        if size % self.dimensions:
            raise ValueError(f"out has {size} elements, no multiple of the {self.dimensions} dimensions")
        if isinstance(out, np.ndarray):
            if size:
                _call(symbol, function, generator, out.ctypes.data, size, *parameters)
            return out
        device = self.device
        assert device is not None  # since the host's generators have only taken NumPy arrays
        where, place = views.device_of(stream)
        if stream is not None and place is not device:
            raise ValueError(f"stream is of device {place.ordinal}, and the generator of {device.ordinal}")
        if not size:
            return out
        with activated(device):
            if self._bound != where.handle:
                _call("curandSetStream", self._functions.set_stream, generator, where.handle)
                self._bound = where.handle
            _call(symbol, function, generator, out.pointer, size, *parameters)
        keep(where, symbol, out, self)
        return out

    def _release(self, value: Any) -> None:
        if self.device is None:
            self._functions.destroy_generator(value)
        else:
            with activated(self.device):
                self._functions.destroy_generator(value)


def _call(symbol: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise failure(symbol, error) from error


def _check_real(**parameters: Any) -> None:
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{name} must be a number, not {type(value).__name__}")
        try:
            float(value)
        except OverflowError:
            raise ValueError(f"{name} is an integer beyond what a float holds") from None


def _default() -> Generator:
    """Return the calling thread's generator on the current device, seeded by the system."""
    generators = thread_cache("curand")
    device = current_device()
    found: Generator | None = generators.get(device.ordinal)
    if found is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        found = generators[device.ordinal] = Generator("philox", seed)
    return found


def _out(shape: Shape | None, dtype: DTypeLike, out: DeviceArray | None, stream: Stream | None) -> DeviceArray:
    if out is None:
        if shape is None:
            raise TypeError("neither shape nor out is given: pass the shape of a new array, or an array to fill")
        return empty(shape, dtype, stream=stream)
    if shape is not None:
        raise ValueError(f"shape={arguments.describe(shape)} and out are both given")
    return out


def _check_pairs(call: str, shape: Shape | None) -> None:
    """Raise ValueError for the shape of an odd number of elements."""
    count = 0 if shape is None else math.prod(arguments.shape(call, "shape", shape))
    if count % 2:
        raise ValueError(
            f"{call}: argument 'shape' asks for {count} numbers, and cuRAND makes normal numbers in pairs: "
            f"ask for {count + 1} and take a slice, {call}({count + 1})[:{count}]"
        )


def uniform(
    shape: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return an array of numbers in (0, 1], all equally likely, of the thread's own Philox generator."""
    array = _out(shape, dtype, out, stream)
    _default().uniform(array, stream=stream)
    return array


def normal(
    shape: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    mean: float = 0.0,
    deviation: float = 1.0,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return an array of normal numbers, an even number of them, of the thread's own Philox generator."""
    _check_pairs("normal", shape)
    array = _out(shape, dtype, out, stream)
    _default().normal(array, mean, deviation, stream=stream)
    return array


def log_normal(
    shape: Shape | None = None,
    dtype: DTypeLike = np.float32,
    *,
    mean: float = 0.0,
    deviation: float = 1.0,
    out: DeviceArray | None = None,
    stream: Stream | None = None,
) -> DeviceArray:
    """Return an array of exponentials of normal numbers, an even number of them."""
    _check_pairs("log_normal", shape)
    array = _out(shape, dtype, out, stream)
    _default().log_normal(array, mean, deviation, stream=stream)
    return array


def poisson(
    shape: Shape | None = None, *, rate: float, out: DeviceArray | None = None, stream: Stream | None = None
) -> DeviceArray:
    """Return an array of uint32, counts of events that come at a rate of at most 400,000."""
    array = _out(shape, np.uint32, out, stream)
    _default().poisson(array, rate, stream=stream)
    return array
