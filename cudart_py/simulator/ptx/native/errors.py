"""The exception for a kernel that only the NumPy engine can run."""

from __future__ import annotations


class UnsupportedInstruction(Exception):  # noqa: N818  # because it is not an error: the NumPy engine runs the kernel
    """A kernel needs an instruction or a feature that the native engine lacks; the text names it."""
