"""Statuses other than success, on their way from a function's body to its caller."""

from __future__ import annotations

from cuda.bindings.driver import CUresult


class StatusError(Exception):
    """A status other than success, which the driver function that raises it answers."""

    def __init__(self, status: CUresult) -> None:
        super().__init__(status.name)
        self.status = status
