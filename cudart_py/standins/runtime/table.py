"""The implementations of libcudart's functions."""

from __future__ import annotations

from typing import Any

from ..functions import PER_THREAD_SUFFIXES, Function, driver_functions, stream_parameters
from ..messages import Implementation, not_supported
from . import devices, errors, graphs, launches, registration, streams
from .calls import NOT_READY, driver, ensure_context, state
from .data import copies, memory, textures
from .same_arguments import SAME_ARGUMENTS

_MODULES = (copies, devices, errors, graphs, launches, memory, registration, streams, textures)
# Functions that neither need a context nor count as calls that may fail.
_WITHOUT_CONTEXT = {
    "__cudaInitModule",
    "__cudaPopCallConfiguration",
    "__cudaPushCallConfiguration",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaRegisterFunction",
    "__cudaRegisterManagedVar",
    "__cudaRegisterVar",
    "__cudaUnregisterFatBinary",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaPeekAtLastError",
}
# Functions that choose a device, ask for one, or need none, and so must not create a context on the present one.
_BEFORE_CONTEXT = {
    "cudaChooseDevice",
    "cudaDriverGetVersion",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGetDeviceProperties",
    "cudaInitDevice",
    "cudaLogsCurrent",
    "cudaLogsDumpToFile",
    "cudaLogsDumpToMemory",
    "cudaLogsRegisterCallback",
    "cudaLogsUnregisterCallback",
    "cudaRuntimeGetVersion",
    "cudaSetDevice",
    "cudaSetDeviceFlags",
    "cudaSetValidDevices",
}
_PER_THREAD_STREAM = 2  # CU_STREAM_PER_THREAD


def implementation(function: Function) -> Implementation:
    """Return the implementation of a function, which answers cudaErrorNotSupported if there is none."""
    symbol = function.symbol
    for suffix in PER_THREAD_SUFFIXES:
        symbol = symbol.removesuffix(suffix)
    found = _found(symbol)
    if symbol in _WITHOUT_CONTEXT:
        return found
    if symbol != function.symbol:
        found = _on_own_stream(found, stream_parameters(function.declaration.parameters))
    return _recorded(found, needs_context=symbol not in _BEFORE_CONTEXT)


def _found(symbol: str) -> Implementation:
    for module in _MODULES:
        functions: dict[str, Implementation] = module.FUNCTIONS
        if symbol in functions:
            return functions[symbol]
    same = SAME_ARGUMENTS.get(symbol)
    return driver(same) if same in driver_functions() else not_supported(symbol)


def _recorded(function: Implementation, *, needs_context: bool) -> Implementation:
    """Return a function that remembers its failure as the thread's last error."""

    def call(*arguments: Any) -> int:
        status = (ensure_context() if needs_context else 0) or function(*arguments)
        if status not in (0, NOT_READY):
            state.last_error = status
        return status

    return call


def _on_own_stream(function: Implementation, places: list[int]) -> Implementation:
    """Return a function for which stream 0 is the thread's own default stream."""

    def call(*arguments: Any) -> Any:
        changed = list(arguments)
        for place in places:
            changed[place] = changed[place] or _PER_THREAD_STREAM
        return function(*changed)

    return call
