"""The exceptions of the machine: for text that isn't PTX, instructions that aren't simulated, and faults of kernels."""

from __future__ import annotations

# What the faults of launches say that reach a limit.
TOO_LONG = "the limit of seconds is reached, which CUDART_PY_SIMULATOR_SECONDS sets"
TOO_MANY_STEPS = "the limit of executed instructions is reached, which CUDART_PY_SIMULATOR_STEPS sets"


class PtxError(Exception):
    """Report PTX text that can't be understood; `line` is its line in the text, 0 where that isn't known yet."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(f"PTX line {line}: {what}" if line else what)
        self.line = line


class PtxVersionError(PtxError):
    """Report PTX of a version that is too new to be read."""


class UnsupportedError(Exception):
    """Report an instruction outside the subset; the text names it and its source line."""

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.report = report


class Fault(Exception):  # noqa: N818  # because it is an event of the kernel's, named as hardware names it
    """Report an error that a kernel made while it ran.

    `status_name` is the name of the driver's status, such as ``CUDA_ERROR_ILLEGAL_ADDRESS``;
    `report` says where it happened and what was wrong.
    """

    def __init__(self, status_name: str, report: str) -> None:
        super().__init__(f"{status_name}: {report}")
        self.status_name = status_name
        self.report = report
