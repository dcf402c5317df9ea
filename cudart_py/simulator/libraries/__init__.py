"""CUDA's libraries in software: the functions of nvmath's bindings on simulated memory, computed by NumPy and SciPy."""

from __future__ import annotations

from .loading import available, find

__all__ = ["available", "find"]
