"""Hints for people who type a name, an operator or a keyword of NumPy, SciPy, CuPy, PyTorch or another CUDA package."""

from __future__ import annotations

from .answers import (
    absent_from_libraries,
    answers_keywords,
    for_one_element,
    hinted,
    host_only,
    late_or_absent,
    public_names,
    unexpected,
)
from .keywords import KEYWORDS, POSITIONAL
from .tables import HINTS, KERNEL, OPERATORS

__all__ = [
    "HINTS",
    "KERNEL",
    "KEYWORDS",
    "OPERATORS",
    "POSITIONAL",
    "absent_from_libraries",
    "answers_keywords",
    "for_one_element",
    "hinted",
    "host_only",
    "late_or_absent",
    "public_names",
    "unexpected",
]
