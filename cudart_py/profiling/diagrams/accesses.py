"""The diagram of a memory access, which depends on its state space."""

from __future__ import annotations

from pathlib import PurePath

from ...pages.diagram import Diagram
from ..warp_records import WarpAccess
from .banks import bank_diagram
from .sectors import sector_diagram

_WORDS = {"const": "constant"}
_VERBS = {"load": "Load from", "store": "Store to", "atomic": "Atomic on"}


def draw_access(access: WarpAccess, code: str) -> Diagram:
    """Return the diagram of an access; `code` is the text of its source line."""
    size = f"{access.size} {'byte' if access.size == 1 else 'bytes'} per lane"
    title = f"{_VERBS[access.operation]} {_WORDS.get(access.space, access.space)} memory, {size}"
    if access.line:
        title += f" ({PurePath(access.file).name}:{access.line})"
    draw = bank_diagram if access.space == "shared" else sector_diagram
    return draw(access, title, code)
