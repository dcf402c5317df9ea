"""Random and quasi-random numbers with cuRAND."""

from __future__ import annotations

from .functions import exponential, log_normal, normal, poisson, uniform
from .generators import KINDS, Generator

__all__ = ["KINDS", "Generator", "exponential", "log_normal", "normal", "poisson", "uniform"]
