"""The sign that a kernel has something that only the NumPy engine runs."""

from __future__ import annotations


class UnsupportedInstruction(Exception):  # noqa: N818  # because it is no error: the other engine runs the kernel
    """Say that the native engine lacks an instruction or a feature of a kernel; the text names it."""
