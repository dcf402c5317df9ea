"""Parse PTX and execute it with NumPy."""

from __future__ import annotations

from .faults import Fault, PtxError, UnsupportedError
from .launch import Launch, run
from .parser import Entry, Module

__all__ = ["Entry", "Fault", "Launch", "Module", "PtxError", "UnsupportedError", "run"]
