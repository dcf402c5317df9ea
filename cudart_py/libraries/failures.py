"""Failures: library errors as exceptions of cudart_py."""

from __future__ import annotations

import numpy as np

from ..errors import (
    CudaError,
    InvalidHandleError,
    InvalidValueError,
    LaunchError,
    NoDeviceError,
    NotSupportedError,
    OutOfMemoryError,
)


class SingularMatrixError(CudaError, np.linalg.LinAlgError):
    """A singular or rank-deficient matrix; `pivot` is the 0-based index of the zero pivot or dependent column."""

    def __init__(self, message: str, *, pivot: int, call: str = "") -> None:
        super().__init__(message, call=call)
        self.pivot = pivot


class NotPositiveDefiniteError(CudaError, np.linalg.LinAlgError):
    """A matrix that has no Cholesky factor; `minor` is the order of the first leading minor that is not positive."""

    def __init__(self, message: str, *, minor: int, call: str = "") -> None:
        super().__init__(message, call=call)
        self.minor = minor


class NotConvergedError(CudaError, np.linalg.LinAlgError):
    """Singular values or eigenvalues that were not found, as for a matrix that contains NaN or infinity."""


class IllConditionedWarning(RuntimeWarning):
    """A matrix for which a result may have no correct digits, or whose numerical rank is not full."""


def dependent_column(call: str, matrix: str, column: int) -> SingularMatrixError:
    """Return the error for a matrix, given in words, that does not have full rank because of a column."""
    fact = f"column {column} depends on the previous columns" if column else "column 0 is zero"
    text = f"{call}: {matrix} does not have full rank: {fact}, to within rounding error"
    return SingularMatrixError(text, pivot=column, call=call)


def not_converged(call: str, fact: str) -> NotConvergedError:
    """Return the error for a decomposition without a result; `fact` says what did not converge."""
    return NotConvergedError(f"{call}: {fact} did not converge; check 'a' for NaN and infinity", call=call)


# Keyed by the libraries' names of statuses. A status that is missing here becomes a plain CudaError.
_BY_STATUS: dict[str, type[CudaError]] = {
    "NOT_INITIALIZED": NoDeviceError,
    "INITIALIZATION_FAILED": NoDeviceError,
    "ALLOC_FAILED": OutOfMemoryError,
    "ALLOCATION_FAILED": OutOfMemoryError,
    "INVALID_VALUE": InvalidValueError,
    "INVALID_SIZE": InvalidValueError,
    "INVALID_TYPE": InvalidValueError,
    "INVALID_PLAN": InvalidHandleError,
    "OUT_OF_RANGE": InvalidValueError,
    "LENGTH_NOT_MULTIPLE": InvalidValueError,
    "TYPE_ERROR": InvalidValueError,
    "NOT_SUPPORTED": NotSupportedError,
    "NOT_IMPLEMENTED": NotSupportedError,
    "ARCH_MISMATCH": NotSupportedError,
    "MATRIX_TYPE_NOT_SUPPORTED": NotSupportedError,
    "EXECUTION_FAILED": LaunchError,
    "EXEC_FAILED": LaunchError,
    "LAUNCH_FAILURE": LaunchError,
}


def failure(call: str, error: Exception) -> Exception:
    """Return the exception to raise for an exception from the bindings.

    An error status of the library becomes the matching subclass of CudaError. A missing library or driver becomes a
    NotSupportedError that names the extra that installs the libraries. This package's own errors are returned
    unchanged.
    """
    status = getattr(error, "status", None)
    if isinstance(error, CudaError) or (status is None and not isinstance(error, RuntimeError)):
        return error
    if status is None:
        return NotSupportedError(
            f"{call}: {error}. A GPU's driver is needed, and CUDA's libraries: pip install 'cudart-py[cu13]'", call=call
        )
    text = str(error)
    # "INVALID_VALUE (7): ..." or "CUSOLVER_STATUS_INVALID_VALUE (3)", as the bindings word it.
    name = text.split(maxsplit=1)[0].rstrip(":") if text else ""
    kinds = [kind for ending, kind in _BY_STATUS.items() if name == ending or name.endswith(f"_STATUS_{ending}")]
    kind = kinds[0] if kinds else CudaError
    return kind(f"{call}: {text}", status=status, call=call)
