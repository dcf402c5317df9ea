"""nvmath's bindings, loaded at first use, and their errors as those of cudart_py."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

import cudart_py as cuda

__all__ = ["NotPositiveDefiniteError", "SingularMatrixError", "binding", "failure"]


class SingularMatrixError(cuda.CudaError, np.linalg.LinAlgError):
    """A matrix that cannot be inverted; `pivot` is the row, counted from 0, where elimination found a zero."""

    def __init__(self, message: str, *, pivot: int, call: str = "") -> None:
        super().__init__(message, call=call)
        self.pivot = pivot


class NotPositiveDefiniteError(cuda.CudaError, np.linalg.LinAlgError):
    """A matrix without a Cholesky factor; `minor` is the order of the first leading minor that is not positive."""

    def __init__(self, message: str, *, minor: int, call: str = "") -> None:
        super().__init__(message, call=call)
        self.minor = minor


# By the libraries' own names of their statuses; a name that is not here is a plain CudaError.
_BY_STATUS: dict[str, type[cuda.CudaError]] = {
    "NOT_INITIALIZED": cuda.NoDeviceError,
    "INITIALIZATION_FAILED": cuda.NoDeviceError,
    "ALLOC_FAILED": cuda.OutOfMemoryError,
    "ALLOCATION_FAILED": cuda.OutOfMemoryError,
    "INVALID_VALUE": cuda.InvalidValueError,
    "INVALID_SIZE": cuda.InvalidValueError,
    "INVALID_TYPE": cuda.InvalidValueError,
    "INVALID_PLAN": cuda.InvalidHandleError,
    "OUT_OF_RANGE": cuda.InvalidValueError,
    "LENGTH_NOT_MULTIPLE": cuda.InvalidValueError,
    "TYPE_ERROR": cuda.InvalidValueError,
    "NOT_SUPPORTED": cuda.NotSupportedError,
    "NOT_IMPLEMENTED": cuda.NotSupportedError,
    "ARCH_MISMATCH": cuda.NotSupportedError,
    "MATRIX_TYPE_NOT_SUPPORTED": cuda.NotSupportedError,
    "EXECUTION_FAILED": cuda.LaunchError,
    "EXEC_FAILED": cuda.LaunchError,
    "LAUNCH_FAILURE": cuda.LaunchError,
}


@functools.cache
def binding(name: str) -> Any:
    """Import `nvmath.bindings.<name>`. The library itself is loaded by the first call of one of its functions."""
    return importlib.import_module(f"nvmath.bindings.{name}")


def failure(call: str, error: Exception) -> Exception:
    """Make the exception to raise for what a call of the bindings raised.

    What the library answered with a status is a CudaError of the class that the status stands for. A library
    or driver that is not there is a NotSupportedError that names the extra which brings it. Errors of our own
    come back as they are.
    """
    status = getattr(error, "status", None)
    if isinstance(error, cuda.CudaError) or (status is None and not isinstance(error, RuntimeError)):
        return error
    if status is None:
        return cuda.NotSupportedError(
            f"{call}: {error}. A GPU's driver is needed, and CUDA's libraries: pip install 'cudart-py[cu13]'", call=call
        )
    text = str(error)
    # "INVALID_VALUE (7): ..." or "CUSOLVER_STATUS_INVALID_VALUE (3)", as the bindings word it.
    name = text.split(maxsplit=1)[0].rstrip(":") if text else ""
    kinds = [kind for ending, kind in _BY_STATUS.items() if name == ending or name.endswith(f"_STATUS_{ending}")]
    kind = kinds[0] if kinds else cuda.CudaError
    return kind(f"{call}: {text}", status=status, call=call)
