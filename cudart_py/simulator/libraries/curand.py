"""cuRAND in software: the functions of `nvmath.bindings.curand`, for the simulator's memory.

cuRAND's own host generators produce the numbers, in the same order as a GPU's generators. The numbers are drawn during
the call, so each call continues the sequence of the previous call, whatever streams the calls use. They are written to
the destination in stream order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from cuda.bindings.driver import CUresult
from numpy.typing import DTypeLike
from nvmath.bindings import curand as bindings
from nvmath.bindings.curand import Ordering, RngType, Status

from ..state.queue.operations import FaultError
from . import host_curand
from .common.calls import queue
from .common.functions import entry, missing
from .common.operands import vector

__all__ = [
    "create_generator",
    "create_generator_host",
    "destroy_generator",
    "generate",
    "generate_log_normal",
    "generate_log_normal_double",
    "generate_long_long",
    "generate_normal",
    "generate_normal_double",
    "generate_poisson",
    "generate_seeds",
    "generate_uniform",
    "generate_uniform_double",
    "get_version",
    "set_generator_offset",
    "set_generator_ordering",
    "set_pseudo_random_generator_seed",
    "set_quasi_random_generator_dimensions",
    "set_stream",
]


@dataclass
class _DeviceGenerator:
    """The state of a generator for device memory, in addition to the host generator that draws its numbers."""

    kind: int
    stream: int = 0


# Orderings that device generators accept and host generators refuse, keyed by kind. Here they mean the default one.
_DEFAULT_ON_DEVICES = {
    RngType.PSEUDO_DEFAULT: (Ordering.PSEUDO_DYNAMIC,),
    RngType.PSEUDO_XORWOW: (Ordering.PSEUDO_DYNAMIC,),
    RngType.PSEUDO_MRG32K3A: (Ordering.PSEUDO_DYNAMIC,),
    RngType.PSEUDO_MTGP32: (Ordering.PSEUDO_DYNAMIC,),
    RngType.PSEUDO_PHILOX4_32_10: (Ordering.PSEUDO_DYNAMIC,),
    RngType.PSEUDO_MT19937: (Ordering.PSEUDO_BEST,),
}
# Kinds of generators that, on a GPU, draw new numbers each time a graph with a captured draw is launched.
_MOVED_BY_GRAPHS = (
    RngType.PSEUDO_DEFAULT,
    RngType.PSEUDO_XORWOW,
    RngType.PSEUDO_MRG32K3A,
    RngType.PSEUDO_PHILOX4_32_10,
)
# Before this version, the MTGP32 host generator draws normal doubles in single precision. The device generator never
# does.
_DOUBLE_MTGP32 = 10405
# Keyed by the handle of the host generator.
_device_generators: dict[int, _DeviceGenerator] = {}


def __getattr__(name: str) -> Any:
    return missing(bindings, Status.ARCH_MISMATCH, name)


def create_generator(rng_type: int) -> int:
    """Create a generator that fills device memory (curandCreateGenerator)."""
    generator = create_generator_host(rng_type)
    _device_generators[generator] = _DeviceGenerator(rng_type)
    return generator


def create_generator_host(rng_type: int) -> int:
    """Create a generator that fills host memory (curandCreateGeneratorHost)."""
    return host_curand.create_generator(rng_type)


def destroy_generator(generator: int) -> None:
    """Destroy a generator; numbers that it has already drawn are still written (curandDestroyGenerator)."""
    _device_generators.pop(generator, None)
    host_curand.call("curandDestroyGenerator", generator)


def get_version() -> int:
    """Return the version of the library that produces the numbers (curandGetVersion)."""
    return host_curand.version()


# -- settings of a generator -----------------------------------------------------------------------


def set_stream(generator: int, stream: int) -> None:
    """Set the stream in which later draws are written (curandSetStream)."""
    if generator in _device_generators:
        _device_generators[generator].stream = stream


def set_pseudo_random_generator_seed(generator: int, seed: int) -> None:
    """Set the seed, which restarts the sequence (curandSetPseudoRandomGeneratorSeed)."""
    host_curand.call("curandSetPseudoRandomGeneratorSeed", generator, seed)


def set_generator_offset(generator: int, offset: int) -> None:
    """Set the position in the sequence (curandSetGeneratorOffset)."""
    host_curand.call("curandSetGeneratorOffset", generator, offset)


def set_generator_ordering(generator: int, order: int) -> None:
    """Set the ordering of the results (curandSetGeneratorOrdering).

    The dynamic ordering depends on the device; here it is the default ordering.
    """
    found = _device_generators.get(generator)
    if found is not None and order in _DEFAULT_ON_DEVICES.get(found.kind, ()):
        order = Ordering.PSEUDO_DEFAULT
    host_curand.call("curandSetGeneratorOrdering", generator, order)


def set_quasi_random_generator_dimensions(generator: int, num_dimensions: int) -> None:
    """Set the number of dimensions of the points (curandSetQuasiRandomGeneratorDimensions)."""
    host_curand.call("curandSetQuasiRandomGeneratorDimensions", generator, num_dimensions)


def generate_seeds(generator: int) -> None:
    """Prepare a generator, which otherwise happens at its first draw (curandGenerateSeeds)."""
    host_curand.call("curandGenerateSeeds", generator)


# -- draws -----------------------------------------------------------------------------------------


def generate(generator: int, output_ptr: int, num: int) -> None:
    """Draw numbers of 32 random bits (curandGenerate)."""
    _draw("curandGenerate", np.uint32, generator, output_ptr, num)


def generate_long_long(generator: int, output_ptr: int, num: int) -> None:
    """Draw numbers of 64 random bits (curandGenerateLongLong)."""
    _draw("curandGenerateLongLong", np.uint64, generator, output_ptr, num)


def generate_uniform(generator: int, output_ptr: int, num: int) -> None:
    """Draw floats in (0, 1] (curandGenerateUniform)."""
    _draw("curandGenerateUniform", np.float32, generator, output_ptr, num)


def generate_uniform_double(generator: int, output_ptr: int, num: int) -> None:
    """Draw doubles in (0, 1] (curandGenerateUniformDouble)."""
    _draw("curandGenerateUniformDouble", np.float64, generator, output_ptr, num)


def generate_normal(generator: int, output_ptr: int, n: int, mean: float, stddev: float) -> None:
    """Draw normally distributed floats (curandGenerateNormal)."""
    _draw("curandGenerateNormal", np.float32, generator, output_ptr, n, mean, stddev)


def generate_normal_double(generator: int, output_ptr: int, n: int, mean: float, stddev: float) -> None:
    """Draw normally distributed doubles (curandGenerateNormalDouble)."""
    _draw("curandGenerateNormalDouble", np.float64, generator, output_ptr, n, mean, stddev)


def generate_log_normal(generator: int, output_ptr: int, n: int, mean: float, stddev: float) -> None:
    """Draw log-normally distributed floats (curandGenerateLogNormal)."""
    _draw("curandGenerateLogNormal", np.float32, generator, output_ptr, n, mean, stddev)


def generate_log_normal_double(generator: int, output_ptr: int, n: int, mean: float, stddev: float) -> None:
    """Draw log-normally distributed doubles (curandGenerateLogNormalDouble)."""
    _draw("curandGenerateLogNormalDouble", np.float64, generator, output_ptr, n, mean, stddev)


def generate_poisson(generator: int, output_ptr: int, n: int, lambda_: float) -> None:
    """Draw Poisson-distributed counts (curandGeneratePoisson)."""
    _draw("curandGeneratePoisson", np.uint32, generator, output_ptr, n, lambda_)


@entry(Status.PREEXISTING_FAILURE)
def _draw(function: str, dtype: DTypeLike, generator: int, address: int, count: int, *parameters: float) -> None:
    found = _device_generators.get(generator)
    if found is None:
        host_curand.call(function, generator, address, count, *parameters)
        return
    numbers, output = np.empty(count, dtype), vector(address, count, dtype)
    normal_of_mtgp32 = function == "curandGenerateNormalDouble" and found.kind == RngType.PSEUDO_MTGP32
    in_single_precision = normal_of_mtgp32 and host_curand.version() < _DOUBLE_MTGP32
    written = False

    def draw() -> None:
        place = numbers.ctypes.data
        if in_single_precision:
            mean, deviation = parameters
            host_curand.call("curandGenerateLogNormalDouble", generator, place, count, 0.0, 1.0)
            numbers[:] = np.log(numbers) * deviation + mean
        else:
            host_curand.call(function, generator, place, count, *parameters)

    def write() -> None:
        nonlocal written
        if written and found.kind in _MOVED_BY_GRAPHS:
            if _device_generators.get(generator) is not found:
                raise FaultError(CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, f"{function}: the generator was destroyed")
            draw()
        output.elements[:] = numbers
        written = True

    draw()
    queue(found.stream, function, write, writes=[output])
