"""Whole programs of public suites: their device code is read from a checkout, and their host code is written here."""

from . import hecbench, llmc, rodinia, samples_numerics, samples_sorts, samples_threads  # noqa: F401  # each lists its programs
from .program import PROGRAMS

__all__ = ["PROGRAMS"]
