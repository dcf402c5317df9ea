"""Random numbers: cuRAND's generators, which fill DeviceArrays, or NumPy arrays on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

import cudart_py as cuda
from cudart_py import arguments
from cudart_py._lifetime import Handle  # generators are given back at the right time
from cudart_py.capture import captures
from cudart_py.device import activated

from . import views
from .bindings import binding, failure
from .curand_host import host_curand
from .handles import keep, thread_cache

__all__ = ["KINDS", "Generator", "log_normal", "normal", "poisson", "uniform"]

Filled = TypeVar("Filled", cuda.DeviceArray, NDArray[Any])


class _Kind(NamedTuple):
    """A generator's name in cuRAND, its bits, and what can be set: a seed, an offset, dimensions, a number of bits."""

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
# (0, 1] by dtype; the same names for the other distributions.
_SUFFIXES: dict[np.dtype[Any], str] = {np.dtype(np.float32): "", np.dtype(np.float64): "_double"}


class Generator(Handle):
    """One of cuRAND's generators of the current device, or of the host (`host=True`, for NumPy arrays).

    `kind` is a name of `KINDS`. Pseudo random numbers have a `seed`; quasi random ones fill `dimensions`, one
    after the other: the first coordinates of all points, then the second ones. `offset` skips as many numbers (of
    each dimension) first; "mt19937" and "mtgp32" cannot. `ordering` names a curandOrdering ("legacy", "best",
    "seeded", "dynamic"): whether the numbers of one seed may differ from release to release.

    Each call continues the sequence of the one before. Raises ValueError and TypeError naming the argument.
    """

    __slots__ = ("_bound", "_functions", "_kind", "_name", "device", "dimensions", "host", "native")

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
            raise ValueError(f"seed={seed}: the generator {kind!r} has none, but an offset")
        if dimensions > 1 and found.seeded:
            raise ValueError(f"dimensions={dimensions}: the generator {kind!r} is not quasi random")
        self._name, self._kind, self._bound = kind, found, 0
        self.dimensions, self.host = dimensions, host
        self.device = None if host else cuda.current_device()
        self._functions = _host_functions() if host else binding("curand")
        enums = binding("curand")
        make = self._functions.create_generator_host if host else self._functions.create_generator
        self.native = self._call("curandCreateGenerator", make, int(enums.RngType[found.name]))
        self._value = self.native
        if found.seeded:
            self._call("curandSetPseudoRandomGeneratorSeed", self._functions.set_pseudo_random_generator_seed,
                       self.native, seed)  # fmt: skip  # grouped by meaning
        else:
            self._call(
                "curandSetQuasiRandomGeneratorDimensions",
                self._functions.set_quasi_random_generator_dimensions,
                self.native,
                dimensions,
            )
        if ordering is not None:
            name = f"{'PSEUDO' if found.seeded else 'QUASI'}_{ordering.upper()}"
            if name not in enums.Ordering.__members__:
                raise ValueError(f"ordering={ordering!r} is none of cuRAND's for {kind!r}")
            self._call("curandSetGeneratorOrdering", self._functions.set_generator_ordering, self.native,
                       int(enums.Ordering[name]))  # fmt: skip  # grouped by meaning
        if offset:
            self.skip_to(offset)

    def skip_to(self, offset: int) -> None:
        """Continue behind the first `offset` numbers of the sequence (curandSetGeneratorOffset)."""
        offset = arguments.integer("Generator.skip_to", "offset", offset, 0, 2**64 - 1)
        if not self._kind.offsets:
            raise ValueError(f"offset={offset}: the generator {self._name!r} has no offsets")
        self._call("curandSetGeneratorOffset", self._functions.set_generator_offset, self.handle, offset)

    # -- what it makes -------------------------------------------------------------------------

    def bits(self, out: Filled, *, stream: cuda.Stream | None = None) -> Filled:
        """Fill `out`, of uint32 (uint64 for the kinds that end in 64), with all bits random (curandGenerate)."""
        wide = self._kind.bits == 64
        call = self._functions.generate_long_long if wide else self._functions.generate
        return self._fill("curandGenerate", call, out, (np.dtype(np.uint64 if wide else np.uint32),), stream)

    def uniform(self, out: Filled, *, stream: cuda.Stream | None = None) -> Filled:
        """Fill `out`, of float32 or float64, with numbers in (0, 1], all equally likely (curandGenerateUniform)."""
        functions = self._functions
        call = functions.generate_uniform if out.dtype == np.float32 else functions.generate_uniform_double
        return self._fill("curandGenerateUniform", call, out, tuple(_SUFFIXES), stream)

    def normal(
        self, out: Filled, mean: float = 0.0, deviation: float = 1.0, *, stream: cuda.Stream | None = None
    ) -> Filled:
        """Fill `out`, of float32 or float64, with normal numbers (curandGenerateNormal).

        The pseudo random generators make them in pairs: `out` has an even number of elements.
        """
        return self._bell("normal", "curandGenerateNormal", out, mean, deviation, stream)

    def log_normal(
        self, out: Filled, mean: float = 0.0, deviation: float = 1.0, *, stream: cuda.Stream | None = None
    ) -> Filled:
        """Fill `out` with exponentials of normal numbers of this mean and deviation (curandGenerateLogNormal)."""
        return self._bell("log_normal", "curandGenerateLogNormal", out, mean, deviation, stream)

    def poisson(self, out: Filled, rate: float, *, stream: cuda.Stream | None = None) -> Filled:
        """Fill `out`, of uint32, with counts of events that come at a rate (curandGeneratePoisson)."""
        _check_real(rate=rate)
        if not rate > 0:
            raise ValueError(f"rate={rate} is not positive")
        call = self._functions.generate_poisson
        return self._fill("curandGeneratePoisson", call, out, (np.dtype(np.uint32),), stream, float(rate))

    def _bell(
        self, name: str, symbol: str, out: Filled, mean: float, deviation: float, stream: cuda.Stream | None
    ) -> Filled:
        _check_real(mean=mean, deviation=deviation)
        if not deviation > 0:
            raise ValueError(f"deviation={deviation} is not positive")
        if self._kind.seeded and out.size % 2:
            raise ValueError(f"out has {out.size} elements; {self._name!r} makes normal numbers in pairs")
        call = getattr(self._functions, f"generate_{name}{_SUFFIXES.get(out.dtype, '')}")
        return self._fill(symbol, call, out, tuple(_SUFFIXES), stream, float(mean), float(deviation))

    def _fill(
        self,
        symbol: str,
        call: Callable[..., None],
        out: Filled,
        dtypes: tuple[np.dtype[Any], ...],
        stream: cuda.Stream | None,
        *parameters: float,
    ) -> Filled:
        if out.dtype not in dtypes:
            raise TypeError(f"out has dtype {out.dtype}; it is filled with {', '.join(map(str, dtypes))}")
        native = self.native if self._value is not None else self.handle
        size = out.size
        if size % self.dimensions:
            raise ValueError(f"out has {size} elements, no multiple of the {self.dimensions} dimensions")
        if self.host:
            if not isinstance(out, np.ndarray) or not out.flags.c_contiguous or not out.flags.writeable:
                raise TypeError("out is a contiguous NumPy array that can be written: this generator is the host's")
            if size:
                self._call(symbol, call, native, out.ctypes.data, size, *parameters)
            return out
        device = self.device
        assert device is not None
        where = cuda.legacy_default if stream is None else stream
        if out.__class__ is not cuda.DeviceArray or out.device is not device or out.closed:
            views.check_place(device, out=out)
        assert isinstance(out, cuda.DeviceArray)
        views.require_contiguous("out", out)
        if stream is not None and stream.device is not device:
            raise ValueError(f"stream is of device {stream.device.ordinal}, and the generator of {device.ordinal}")
        if not size:
            return out
        with activated(device):
            if self._bound != where._value:
                self._call("curandSetStream", self._functions.set_stream, native, where.handle)
                self._bound = where.handle
            self._call(symbol, call, native, out.pointer, size, *parameters)
        if captures:
            keep(where, symbol, out, self)
        return out

    @staticmethod
    def _call(symbol: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise failure(symbol, error) from error

    def _release(self, value: Any) -> None:
        if self.device is None:
            self._functions.destroy_generator(value)
        else:
            with activated(self.device):
                self._functions.destroy_generator(value)


def _check_real(**parameters: Any) -> None:
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise TypeError(f"{name} is a number, not {type(value).__name__}")
        try:
            float(value)
        except OverflowError:
            raise ValueError(f"{name} is an integer beyond what a float holds") from None


def _host_functions() -> Any:
    # nvmath's own where they load, which needs a driver though the generators do not.
    try:
        binding("curand").get_version()
    except RuntimeError as error:
        functions = host_curand()
        if functions is None:
            raise failure("curandCreateGeneratorHost", error) from error
        return functions
    return binding("curand")


def _default() -> Generator:
    """Return the calling thread's generator on the current device, seeded by the system."""
    generators = thread_cache("curand")
    device = cuda.current_device()
    found: Generator | None = generators.get(device.ordinal)
    if found is None:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        found = generators[device.ordinal] = Generator("philox", seed)
    return found


def _out(shape: Any, dtype: DTypeLike, out: cuda.DeviceArray | None, stream: cuda.Stream | None) -> cuda.DeviceArray:
    if out is None:
        if shape is None:
            raise TypeError("give the shape of the result, or out to be filled")
        return cuda.empty(shape, dtype, stream=stream)
    if shape is not None:
        raise ValueError(f"shape={arguments.describe(shape)} and out are both given")
    return out


def uniform(
    shape: Any = None,
    dtype: DTypeLike = np.float32,
    *,
    out: cuda.DeviceArray | None = None,
    stream: cuda.Stream | None = None,
) -> cuda.DeviceArray:
    """Return an array of numbers in (0, 1], all equally likely, of the thread's own Philox generator."""
    array = _out(shape, dtype, out, stream)
    _default().uniform(array, stream=stream)
    return array


def normal(
    shape: Any = None,
    dtype: DTypeLike = np.float32,
    *,
    mean: float = 0.0,
    deviation: float = 1.0,
    out: cuda.DeviceArray | None = None,
    stream: cuda.Stream | None = None,
) -> cuda.DeviceArray:
    """Return an array of normal numbers, an even number of them, of the thread's own Philox generator."""
    array = _out(shape, dtype, out, stream)
    _default().normal(array, mean, deviation, stream=stream)
    return array


def log_normal(
    shape: Any = None,
    dtype: DTypeLike = np.float32,
    *,
    mean: float = 0.0,
    deviation: float = 1.0,
    out: cuda.DeviceArray | None = None,
    stream: cuda.Stream | None = None,
) -> cuda.DeviceArray:
    """Return an array of exponentials of normal numbers, an even number of them."""
    array = _out(shape, dtype, out, stream)
    _default().log_normal(array, mean, deviation, stream=stream)
    return array


def poisson(
    shape: Any = None, *, rate: float, out: cuda.DeviceArray | None = None, stream: cuda.Stream | None = None
) -> cuda.DeviceArray:
    """Return an array of uint32, counts of events that come at a rate."""
    array = _out(shape, np.uint32, out, stream)
    _default().poisson(array, rate, stream=stream)
    return array
