"""cuRAND generators, which fill DeviceArrays, or NumPy arrays on the host."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...base import arguments
from ...base.set_once import SetOnce
from ...context.current import activated
from ...context.device import current_device
from ...context.lifetimes import Handle
from ...driver.calls import library
from ...errors import InvalidValueError
from ...hints import answers_keywords, hinted
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from .. import views
from ..failures import failure
from ..handles import keep
from .distributions import EXPONENTIAL, LOG_NORMAL, NORMAL, POISSON, UNIFORM, Distribution

Filled = TypeVar("Filled", DeviceArray, NDArray[Any])


class _Kind(NamedTuple):
    """A kind of generator: its name in curandRngType, if it has a seed and an offset, and its bits per number.

    The kinds without a seed are quasirandom and have a number of dimensions.
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


def _require_offsets(call: str, kind: str, offset: int) -> None:
    if not KINDS[kind].offsets:
        raise arguments.wrong_value(call, "offset", f"0 with kind={kind!r}, which has no offsets", offset)


@hinted
class Generator(SetOnce, Handle):
    """A cuRAND generator on the current device or, with `host=True`, on the host, where it fills NumPy arrays.

    - `kind`: "xorwow", "mrg32k3a", "philox", "mt19937" or "mtgp32", which are pseudorandom, or "sobol",
      "scrambled_sobol", "sobol64" or "scrambled_sobol64", which are quasirandom.
    - `seed`: the seed, for the pseudorandom kinds.
    - `dimensions`: the number of coordinates per point, for the quasirandom kinds. A filled array contains the first
      coordinates of all points, then the second coordinates, and so on, as in an array of shape (dimensions, points).
      They have no seed, and an offset gives other points of the same sequence, not independent ones. For independent
      estimates, add a random shift to all points, modulo 1.
    - `offset`: the number of random numbers (for the quasirandom kinds, of points) to skip at the beginning. The kinds
      "mt19937" and "mtgp32" do not support offsets.
    - `ordering`: the order of the numbers in an array (curandOrdering): "default", "best", "seeded", "dynamic", or
      "legacy", which is the same in every release of cuRAND. Only "xorwow" has "seeded", which gives each of cuRAND's
      threads its own seed. The generator is then ready sooner, but for some seeds, the numbers are statistically
      weaker. The error for an ordering that the kind does not have lists those that it has.

    Each call continues the sequence where the previous call stopped. Raises TypeError or ValueError, naming the
    argument, and CudaError for arguments that cuRAND rejects.
    """

    __slots__ = ("_bound", "_functions", "_kind", "_name", "device", "dimensions", "host")

    @answers_keywords("Generator")
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
        if isinstance(kind, int):  # the first argument of NumPy's default_rng
            raise arguments.wrong_type(call, "kind", "the name of a kind of generator", kind, "pass a seed as seed=")
        arguments.choice(call, "kind", kind, KINDS)
        host = arguments.flag(call, "host", host)
        properties = KINDS[kind]
        seed = arguments.integer(call, "seed", seed, 0, 2**64 - 1)
        offset = arguments.integer(call, "offset", offset, 0, 2**64 - 1)
        dimensions = arguments.integer(call, "dimensions", dimensions, 1, MOST_DIMENSIONS)
        if ordering is not None:
            prefix = "PSEUDO_" if properties.seeded else "QUASI_"
            known = library("curand").Ordering.__members__.items()
            orderings = {name.removeprefix(prefix).lower(): int(it) for name, it in known if name.startswith(prefix)}
            chosen = ordering.lower() if isinstance(ordering, str) else ordering
            arguments.choice(call, "ordering", chosen, orderings)
        if offset:
            _require_offsets(call, kind, offset)
        if seed and not properties.seeded:
            remedy = "for independent estimates, add random shifts to the points, since they have no seed"
            raise arguments.wrong_value(call, "seed", f"0 with kind={kind!r}", seed, remedy)
        if dimensions > 1 and properties.seeded:
            raise arguments.wrong_value(call, "dimensions", f"1 with kind={kind!r}, which is pseudorandom", dimensions)
        self._name, self._kind, self._bound = kind, properties, 0
        self.dimensions, self.host = dimensions, host
        self.device = None if host else current_device()
        self._functions = functions = library("curand")
        make = functions.create_generator_host if host else functions.create_generator
        self._value = _call("curandCreateGenerator", make, int(functions.RngType[properties.name]))
        if properties.seeded:
            set_seed = functions.set_pseudo_random_generator_seed
            _call("curandSetPseudoRandomGeneratorSeed", set_seed, self.handle, seed)
        else:
            set_dimensions = functions.set_quasi_random_generator_dimensions
            _call("curandSetQuasiRandomGeneratorDimensions", set_dimensions, self.handle, dimensions)
        if ordering is not None:
            self._set_ordering(chosen, orderings)
        if offset:
            self.skip_to(offset)

    def _set_ordering(self, ordering: str, orderings: Mapping[str, int]) -> None:
        """Set one of `orderings`; the error names those that cuRAND has for this kind of generator."""
        set_ordering = functools.partial(
            _call, "curandSetGeneratorOrdering", self._functions.set_generator_ordering, self.handle
        )
        try:
            set_ordering(orderings[ordering])
        except InvalidValueError as error:
            accepted = []
            for name, value in orderings.items():
                with contextlib.suppress(InvalidValueError):  # an ordering that the kind does not have either
                    set_ordering(value)
                    accepted.append(repr(name))
            host = " and host=True" if self.host else ""
            rule = f"one of {', '.join(accepted[:-1])} or {accepted[-1]} with kind={self._name!r}{host}"
            text = str(arguments.wrong_value("Generator", "ordering", rule, ordering))
            raise InvalidValueError(text, status=error.status, call=error.call) from error

    def __repr__(self) -> str:
        place = "the host" if self.device is None else f"device {self.device.ordinal}"
        return f"<Generator {'closed' if self.closed else f'{self._name} on {place}'}>"

    def skip_to(self, offset: int) -> None:
        """Continue after the first `offset` numbers or points of the sequence (curandSetGeneratorOffset)."""
        call = "Generator.skip_to"
        offset = arguments.integer(call, "offset", offset, 0, 2**64 - 1)
        _require_offsets(call, self._name, offset)
        _call("curandSetGeneratorOffset", self._functions.set_generator_offset, self.handle, offset)

    def bits(self, out: Filled, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, a uint32 array (uint64 if the kind's name ends in 64), with random bits (curandGenerate)."""
        wide = self._kind.bits == 64
        where = self._check("Generator.bits", out, (np.dtype(np.uint64 if wide else np.uint32),), stream)
        call = self._functions.generate_long_long if wide else self._functions.generate
        return self._fill("curandGenerate", call, out, where)

    @answers_keywords("Generator.uniform")
    def uniform(self, out: Filled, low: float = 0.0, high: float = 1.0, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, a float32 or float64 array, with uniform numbers in (low, high] (curandGenerateUniform)."""
        return self._draw("Generator.uniform", UNIFORM, out, (low, high), stream)

    @answers_keywords("Generator.normal")
    def normal(self, out: Filled, mean: float = 0.0, deviation: float = 1.0, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, a float32 or float64 array, with normally distributed numbers (curandGenerateNormal).

        The pseudorandom kinds generate them in pairs, so `out` must have an even number of elements.
        """
        return self._draw("Generator.normal", NORMAL, out, (mean, deviation), stream)

    def log_normal(
        self, out: Filled, mean: float = 0.0, deviation: float = 1.0, *, stream: Stream | None = None
    ) -> Filled:
        """Fill `out` with log-normally distributed numbers; otherwise like `normal` (curandGenerateLogNormal)."""
        return self._draw("Generator.log_normal", LOG_NORMAL, out, (mean, deviation), stream)

    @answers_keywords("Generator.exponential")
    def exponential(self, out: Filled, scale: float = 1.0, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, a float32 or float64 array, with exponentially distributed numbers with the mean `scale`.

        cuRAND has no such function: they are `-scale * log(u)` for its uniform numbers u.
        """
        return self._draw("Generator.exponential", EXPONENTIAL, out, (scale,), stream)

    @answers_keywords("Generator.poisson")
    def poisson(self, out: Filled, rate: float, *, stream: Stream | None = None) -> Filled:
        """Fill `out`, a uint32 array, with Poisson-distributed counts with the mean `rate` (curandGeneratePoisson).

        `rate` is above 0 and at most 400,000.
        """
        return self._draw("Generator.poisson", POISSON, out, (rate,), stream)

    def _draw(
        self, call: str, distribution: Distribution, out: Filled, parameters: tuple[Any, ...], stream: Stream | None
    ) -> Filled:
        """Fill an array with numbers of a distribution, for the public call that errors name."""
        where = self._check(call, out, distribution.dtypes, stream)
        numbers = distribution.check(call, out.dtype, *parameters)
        if distribution.in_pairs and self._kind.seeded and out.size % 2:
            rule = "have an even number of elements, since cuRAND generates normal numbers in pairs"
            remedy = f"fill an array of {out.size + 1} and take a slice"
            raise arguments.unusable(call, "out", rule, out.size, remedy)
        function = distribution.function(self._functions, out.dtype)
        finish = distribution.finish
        self._fill(distribution.symbol, function, out, where, *(() if finish else numbers))
        if finish is not None and out.size:
            with contextlib.nullcontext() if self.device is None else activated(self.device):
                finish(out, self.device, where, *numbers)
        return out

    def _stream_for(self, call: str, stream: Stream | None) -> Stream:
        """Return the stream to fill an array in; raise ValueError for a stream of another device."""
        where, device = views.device_of(call, stream)
        if stream is not None and self.device is not None and device is not self.device:
            rule = f"be on device {self.device.ordinal}, like the generator"
            raise arguments.unusable(call, "stream", rule, f"on device {device.ordinal}")
        return where

    def _check(self, call: str, out: Any, dtypes: tuple[np.dtype[Any], ...], stream: Stream | None) -> Stream:
        """Check the array to fill, and return the stream to fill it in."""
        if self.device is not None and isinstance(out, int | tuple):
            function = call.rpartition(".")[2]
            remedy = f"pass cudart_py.empty(shape, dtype), or call cudart_py.libraries.{function} with a shape"
            raise arguments.wrong_type(call, "out", "the array to fill", out, remedy)
        where = self._stream_for(call, stream)
        if self.device is None:
            arguments.instance(call, "out", out, np.ndarray, "a NumPy array, since this is a host generator")
            if not out.flags.c_contiguous:
                rule, strides = "be contiguous", f"of shape {out.shape} with strides {out.strides}"
                raise arguments.unusable(call, "out", rule, strides)
            if not out.flags.writeable:
                raise arguments.unusable(call, "out", "be writeable", "read-only")
        else:
            views.check_place(call, self.device, out=out)
            arguments.contiguous(call, "out", out)
        if out.dtype not in dtypes:
            raise arguments.wrong_dtype(call, "out", views.one_of(map(str, dtypes)), out.dtype)
        if not self._kind.seeded and out.ndim > 1 and out.shape[0] != self.dimensions:
            count = self.dimensions
            rule = f"have {count} row{'s' * (count > 1)}, since the generator has dimensions={count}"
            remedy = "row i is for coordinate i of all points"
            raise arguments.unusable(call, "out", rule, f"the shape {out.shape}", remedy)
        if out.size % self.dimensions:
            rule = f"have a multiple of {self.dimensions} elements, the generator's number of dimensions"
            raise arguments.unusable(call, "out", rule, out.size)
        return where

    def _fill(
        self,
        symbol: str,
        function: Callable[..., None],
        out: Filled,
        where: Stream,
        *parameters: float,
    ) -> Filled:
        generator, size = self.handle, out.size
        if isinstance(out, np.ndarray):
            if size:
                _call(symbol, function, generator, out.ctypes.data, size, *parameters)
            return out
        device = self.device
        assert device is not None  # since host generators accept only NumPy arrays
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
