"""Whole programs of public suites: their device code is read from a checkout, their hosts are written here."""

from . import hecbench, llmc, rodinia, samples_numerics, samples_sorts, samples_threads

__all__ = ["PROGRAMS"]

PROGRAMS = (
    *samples_threads.PROGRAMS,
    *samples_sorts.PROGRAMS,
    *samples_numerics.PROGRAMS,
    *hecbench.PROGRAMS,
    *llmc.PROGRAMS,
    *rodinia.PROGRAMS,
)
