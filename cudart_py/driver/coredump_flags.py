"""The flags of coredumps, set by direct calls of libcuda: `cuda.bindings` up to 13.5 rejects this attribute."""

from __future__ import annotations

import ctypes

from cuda.bindings import driver

from .unwrap import check

_ATTRIBUTE = driver.CUcoredumpSettings.CU_COREDUMP_GENERATION_FLAGS


def read_flags() -> int:
    """Return the flags of the process (cuCoredumpGetAttributeGlobal)."""
    flags, size = ctypes.c_uint(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_uint))
    _call("cuCoredumpGetAttributeGlobal", flags, size)
    return flags.value


def write_flags(value: int) -> None:
    """Set the flags of the process (cuCoredumpSetAttributeGlobal)."""
    _call("cuCoredumpSetAttributeGlobal", ctypes.c_uint(value), ctypes.c_size_t(ctypes.sizeof(ctypes.c_uint)))


def _call(name: str, flags: ctypes.c_uint, size: ctypes.c_size_t) -> None:
    library = ctypes.CDLL("libcuda.so.1")  # the library that the bindings have loaded
    status = getattr(library, name)(int(_ATTRIBUTE), ctypes.byref(flags), ctypes.byref(size))
    check((driver.CUresult(status),))
