"""cuRAND's host generators where there is no GPU, under the names of `nvmath.bindings.curand`.

The library itself needs no driver for them, but nvmath's bindings do not load without one; so ctypes calls it.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_double, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

__all__ = ["HostCurand", "HostCurandError", "host_curand"]

_ARRAY = c_void_p, c_size_t
# What each function takes behind the generator.
_FUNCTIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "destroy_generator": ("curandDestroyGenerator", ()),
    "set_pseudo_random_generator_seed": ("curandSetPseudoRandomGeneratorSeed", (c_ulonglong,)),
    "set_generator_offset": ("curandSetGeneratorOffset", (c_ulonglong,)),
    "set_generator_ordering": ("curandSetGeneratorOrdering", (c_int,)),
    "set_quasi_random_generator_dimensions": ("curandSetQuasiRandomGeneratorDimensions", (c_uint,)),
    "generate": ("curandGenerate", _ARRAY),
    "generate_long_long": ("curandGenerateLongLong", _ARRAY),
    "generate_uniform": ("curandGenerateUniform", _ARRAY),
    "generate_uniform_double": ("curandGenerateUniformDouble", _ARRAY),
    "generate_normal": ("curandGenerateNormal", (*_ARRAY, c_float, c_float)),
    "generate_normal_double": ("curandGenerateNormalDouble", (*_ARRAY, c_double, c_double)),
    "generate_log_normal": ("curandGenerateLogNormal", (*_ARRAY, c_float, c_float)),
    "generate_log_normal_double": ("curandGenerateLogNormalDouble", (*_ARRAY, c_double, c_double)),
    "generate_poisson": ("curandGeneratePoisson", (*_ARRAY, c_double)),
}


class HostCurandError(Exception):
    """A call of cuRAND that failed; `status` is a curandStatus."""

    def __init__(self, status: int) -> None:
        from nvmath.bindings import curand

        super().__init__(f"{curand.Status(status).name} ({status})")
        self.status = status


class HostCurand:
    """The library, with the functions that `nvmath.bindings.curand` has too."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def create_generator_host(self, kind: int) -> int:
        """Make a generator on the host (curandCreateGeneratorHost) and return its handle."""
        handle = c_void_p()
        self._check(self._library.curandCreateGeneratorHost(ctypes.byref(handle), c_int(kind)))
        return int(handle.value or 0)

    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS:
            raise AttributeError(f"cuRAND's host generators have no {name}")
        symbol, kinds = _FUNCTIONS[name]
        function = getattr(self._library, symbol)

        def call(generator: int, *values: Any) -> None:
            converted = [kind(value) for kind, value in zip(kinds, values, strict=True)]
            self._check(function(c_void_p(generator), *converted))

        return call

    @staticmethod
    def _check(status: int) -> None:
        if status:
            raise HostCurandError(status)


@functools.cache
def host_curand() -> HostCurand | None:
    """Load cuRAND (the extra `headers` brings it, and `cu13`); None where it is not installed."""
    try:
        found = load_nvidia_dynamic_lib("curand")
    except DynamicLibNotFoundError:
        return None
    return HostCurand(ctypes.CDLL(found.abs_path))
