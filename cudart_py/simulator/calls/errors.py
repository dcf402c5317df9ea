"""Statuses: their names and descriptions."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUresult

from ...base.error_texts import ERROR_TEXTS
from ..state.errors import StatusError
from .entry import entry


def _known(error: Any) -> CUresult:
    try:
        return CUresult(int(error))
    except (TypeError, ValueError):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None


@entry(values=1, in_callbacks=True, before_init=True)
def cuGetErrorName(error: Any) -> bytes:
    """Return the status's name (cuGetErrorName)."""
    name: str = _known(error).name
    return name.encode()


@entry(values=1, in_callbacks=True, before_init=True)
def cuGetErrorString(error: Any) -> bytes:
    """Return a description of the status (cuGetErrorString)."""
    known = _known(error)
    # A few statuses of the driver have no description in the runtime.
    text = ERROR_TEXTS.get(known.value) or known.name.removeprefix("CUDA_ERROR_").replace("_", " ").lower()
    return text.encode()
