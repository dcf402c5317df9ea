"""Whole programs of public suites: their device code is read from a checkout, their hosts are written here."""

from . import hecbench, llmc, rodinia, samples_numerics, samples_sorts, samples_threads  # noqa: F401  # they list theirs
from .program import PROGRAMS

__all__ = ["PROGRAMS"]
