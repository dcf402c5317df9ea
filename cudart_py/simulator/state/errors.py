"""The exception that carries a status other than success from a function's body to its entry point."""

from __future__ import annotations

from cuda.bindings.driver import CUresult


class StatusError(Exception):
    """A status other than success, which the driver function returns."""

    def __init__(self, status: CUresult) -> None:
        super().__init__(status.name)
        self.status = status
