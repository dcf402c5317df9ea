"""cuRAND's host generators, called through ctypes.

The library itself needs no driver for host generators, but `nvmath.bindings.curand` doesn't load without a driver.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_double, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
from nvmath.bindings.curand import check_status

from ...errors import NotSupportedError

_GENERATOR = (c_void_p,)
_NUMBERS = (c_void_p, c_void_p, c_size_t)
_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "curandCreateGeneratorHost": (c_void_p, c_int),
    "curandDestroyGenerator": _GENERATOR,
    "curandGenerate": _NUMBERS,
    "curandGenerateLogNormal": (*_NUMBERS, c_float, c_float),
    "curandGenerateLogNormalDouble": (*_NUMBERS, c_double, c_double),
    "curandGenerateLongLong": _NUMBERS,
    "curandGenerateNormal": (*_NUMBERS, c_float, c_float),
    "curandGenerateNormalDouble": (*_NUMBERS, c_double, c_double),
    "curandGeneratePoisson": (*_NUMBERS, c_double),
    "curandGenerateSeeds": _GENERATOR,
    "curandGenerateUniform": _NUMBERS,
    "curandGenerateUniformDouble": _NUMBERS,
    "curandGetVersion": (c_void_p,),
    "curandSetGeneratorOffset": (c_void_p, c_ulonglong),
    "curandSetGeneratorOrdering": (c_void_p, c_int),
    "curandSetPseudoRandomGeneratorSeed": (c_void_p, c_ulonglong),
    "curandSetQuasiRandomGeneratorDimensions": (c_void_p, c_uint),
}


def call(function: str, *arguments: Any) -> None:
    """Call one of cuRAND's functions.

    Raises nvmath's `cuRANDError` for a status other than success, and NotSupportedError if the library is not
    installed.
    """
    library = _library()
    if library is None:
        raise NotSupportedError(
            f"{function}: the library cuRAND was not found: pip install 'cudart-py[cpu]'", call=function
        )
    check_status(getattr(library, function)(*arguments))


def create_generator(kind: int) -> int:
    """Create a host generator of a curandRngType (curandCreateGeneratorHost) and return its handle."""
    handle = c_void_p()
    call("curandCreateGeneratorHost", ctypes.byref(handle), kind)
    assert handle.value is not None
    return handle.value


def version() -> int:
    """Return cuRAND's version (curandGetVersion)."""
    found = c_int()
    call("curandGetVersion", ctypes.byref(found))
    return found.value


def is_installed() -> bool:
    """Return whether the library was found."""
    return _library() is not None


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        path = load_nvidia_dynamic_lib("curand").abs_path
    except DynamicLibNotFoundError:
        return None
    library = ctypes.CDLL(path)
    for function, parameters in _PARAMETERS.items():
        getattr(library, function).argtypes = parameters
    return library
