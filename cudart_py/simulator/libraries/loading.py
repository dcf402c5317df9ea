"""Loading: the modules that replace nvmath's bindings, looked up by the names of the bindings."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

from ...errors import NotSupportedError

# The modules of this package, keyed by the names of nvmath's bindings.
_MODULES = {
    "cublas": "cublas",
    "cublasLt": "cublaslt",
    "cudss": "cudss",
    "cufft": "cufft",
    "curand": "curand",
    "cusolverDn": "cusolver",
    "cusparse": "cusparse",
}


def available() -> bool:
    """Return whether all libraries can be used: SciPy and, for random numbers, cuRAND's library are installed."""
    try:
        load_nvidia_dynamic_lib("curand")
    except DynamicLibNotFoundError:
        return False
    return _has_scipy()


def _has_scipy() -> bool:
    return importlib.util.find_spec("scipy") is not None


def find(name: str) -> Any:
    """Return the module with the functions of `nvmath.bindings.<name>`.

    Raises NotSupportedError for a library that has no software version, and for all but cuRAND if SciPy is not
    installed.
    """
    if name not in _MODULES:
        raise NotSupportedError(f"the simulator has no {name}, only {', '.join(_MODULES)}", call=name)
    if name != "curand" and not _has_scipy():
        raise NotSupportedError(
            f"{name}: the simulator's libraries need SciPy, which is not installed: pip install 'cudart-py[cpu]'",
            call=name,
        )
    return importlib.import_module(f"{__package__}.{_MODULES[name]}")
