"""cuda.bindings.runtime, which contains the static runtime, so that the stand-in of libcudart cannot take its place.

cuda.core calls it in `Device.sync`. The functions that need no marshalling call the stand-in's implementations instead:
those without parameters, and a few whose parameters are numbers and handles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ..functions import Function, runtime_functions
from ..messages import Implementation
from .table import implementation

_BY_VALUE = {
    "cudaEventSynchronize",
    "cudaFree",
    "cudaSetDevice",
    "cudaStreamDestroy",
    "cudaStreamSynchronize",
}


def replace_functions(guarded: Callable[[Function, Implementation], Implementation]) -> None:
    """Replace functions of cuda.bindings.runtime, if it is installed, by guarded ones of the stand-in."""
    try:
        from cuda.bindings import runtime  # imported late: C++ programs do not need it
    except ImportError:
        return
    for name, function in runtime_functions().items():
        simple = not function.types or name in _BY_VALUE
        if simple and function.result is ctypes.c_int and hasattr(runtime, name):
            call = guarded(function, implementation(function))
            setattr(runtime, name, _bound(runtime.cudaError_t, call))


def _bound(status: Any, call: Implementation) -> Callable[..., tuple[Any]]:
    def function(*arguments: Any) -> tuple[Any]:
        result = call(*map(int, arguments))
        if result < 0:
            raise KeyboardInterrupt
        return (status(result),)

    return function
