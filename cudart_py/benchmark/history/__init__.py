"""The history of benchmarks: the runs that pytest-benchmark stored, and a page with their trends and steps."""

from __future__ import annotations

from .page import page
from .runs import Run, StoreError, read_store
from .steps import find_steps
from .trends import Setup, setups

__all__ = ["Run", "Setup", "StoreError", "find_steps", "page", "read_store", "setups"]
