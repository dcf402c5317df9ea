"""The exception that carries a status other than success from a function's body to its entry point."""

from __future__ import annotations

from cuda.bindings.driver import CUresult


class StatusError(Exception):
    """A status other than success, which the driver function returns."""

    def __init__(self, status: CUresult) -> None:
        super().__init__(status.name)
        self.status = status


def invalid_value() -> StatusError:
    """Return CUDA_ERROR_INVALID_VALUE, with which the driver refuses most bad arguments."""
    return StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
