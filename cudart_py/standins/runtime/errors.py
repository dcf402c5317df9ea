"""Errors: the thread's last error, and the names and descriptions of statuses."""

from __future__ import annotations

from cuda.bindings import runtime as bindings

from ...base.error_texts import ERROR_TEXTS, UNRECOGNIZED
from ..foreign_memory import string_address
from .calls import SUCCESS, state


def get_last_error() -> int:
    """Return the thread's last error and forget it (cudaGetLastError)."""
    last, state.last_error = state.last_error, SUCCESS
    return last


def peek_at_last_error() -> int:
    """Return the thread's last error (cudaPeekAtLastError)."""
    return state.last_error


def get_error_name(status: int) -> int:
    """Return the name of a status as a C string (cudaGetErrorName)."""
    try:
        name = bindings.cudaError_t(status).name
    except ValueError:
        name = UNRECOGNIZED
    return string_address(name.encode())


def get_error_string(status: int) -> int:
    """Return the description of a status as a C string (cudaGetErrorString)."""
    return string_address(ERROR_TEXTS.get(status, UNRECOGNIZED).encode())


FUNCTIONS = {
    "cudaGetErrorName": get_error_name,
    "cudaGetErrorString": get_error_string,
    "cudaGetLastError": get_last_error,
    "cudaPeekAtLastError": peek_at_last_error,
}
