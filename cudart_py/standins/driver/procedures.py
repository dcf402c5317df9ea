"""Looking up functions by name: cuGetProcAddress."""

from __future__ import annotations

import ctypes
import functools
import re

from ..foreign_memory import read_string, write
from ..functions import driver_declarations
from ..library_names import DRIVER

_NOT_FOUND = 500
_FOUND, _SYMBOL_NOT_FOUND = 0, 1  # CUdriverProcAddressQueryResult
_VERSION = re.compile(r"_v(\d+)$")
# Functions with several versions in use, and the CUDA version that brought each. Others have the newest one only.
_SINCE = {
    "cuCtxCreate_v3": 11040,
    "cuCtxCreate_v4": 12050,
    "cuCtxGetDevice_v2": 13000,
    "cuCtxSynchronize_v2": 13000,
    "cuStreamGetCaptureInfo_v3": 12030,
    "cuStreamGetCtx_v2": 12050,
}


@functools.cache
def _versions() -> dict[str, list[str]]:
    """Return the exported names of each function, the newest version first, by the name without a version."""
    found: dict[str, list[str]] = {}
    for symbol in driver_declarations():
        found.setdefault(_VERSION.sub("", symbol), []).append(symbol)
    for symbols in found.values():
        symbols.sort(key=_version, reverse=True)
    return found


def _version(symbol: str) -> int:
    match = _VERSION.search(symbol)
    return int(match[1]) if match else 1


def exported_name(name: str, cuda_version: int) -> str | None:
    """Return the name under which libcuda exports a function as a version of CUDA has it; None if it has none."""
    declared = driver_declarations()
    candidates = _versions().get(name, [name] if name in declared else [])
    return next((symbol for symbol in candidates if _SINCE.get(symbol, 0) <= cuda_version), None)


def get_proc_address_v2(symbol: int, place: int, cuda_version: int, _flags: int, outcome: int) -> int:
    """Write the address of a function (cuGetProcAddress_v2)."""
    name = exported_name((read_string(symbol) or b"").decode(errors="replace"), cuda_version)
    write(outcome, _FOUND if name else _SYMBOL_NOT_FOUND, ctypes.c_int)
    write(place, _address(name) if name else 0)
    return 0 if name else _NOT_FOUND


def get_proc_address(symbol: int, place: int, cuda_version: int, flags: int) -> int:
    """Write the address of a function (cuGetProcAddress of CUDA 11)."""
    return get_proc_address_v2(symbol, place, cuda_version, flags, 0)


def _address(name: str) -> int:
    library = ctypes.CDLL(DRIVER)
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
