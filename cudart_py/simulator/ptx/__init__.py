"""Parse PTX and execute it with NumPy."""

from __future__ import annotations

from .clock import Clock
from .faults import Fault, PtxError, UnsupportedError
from .launch import Launch, run
from .observer import Observer
from .parser import Entry, Module
from .textures import Texture

__all__ = ["Clock", "Entry", "Fault", "Launch", "Module", "Observer", "PtxError", "Texture", "UnsupportedError", "run"]
