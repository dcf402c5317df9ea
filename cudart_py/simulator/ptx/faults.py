"""The simulator's exceptions: for text that isn't PTX, for unsupported instructions, and for faults of kernels."""

from __future__ import annotations


class PtxError(Exception):
    """An error in PTX text; `line` is its line in the text, or 0 while that isn't known."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(f"PTX line {line}: {what}" if line else what)
        self.line = line


class PtxVersionError(PtxError):
    """PTX of a version that is too new to be read."""


class UnsupportedError(Exception):
    """An instruction outside the supported subset; the text names it and its source line."""

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.report = report


class Fault(Exception):  # noqa: N818  # because it is an event of the kernel's, named as hardware names it
    """An error of a kernel while it ran.

    `status_name` is the name of the driver's status, such as ``CUDA_ERROR_ILLEGAL_ADDRESS``;
    `report` says where it happened and what was wrong.
    """

    def __init__(self, status_name: str, report: str) -> None:
        super().__init__(f"{status_name}: {report}")
        self.status_name = status_name
        self.report = report
