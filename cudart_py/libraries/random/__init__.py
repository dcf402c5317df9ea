"""Random and quasi-random numbers with cuRAND."""

from __future__ import annotations

from .generators import KINDS, Generator, log_normal, normal, poisson, uniform

__all__ = ["KINDS", "Generator", "log_normal", "normal", "poisson", "uniform"]
