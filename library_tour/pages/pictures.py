"""Pictures of a result, each as the address of an image that holds it, so that a page needs no other file."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from .. import plots
from ..stop import Result

MISSING = "Pictures need matplotlib, the extra `plot`: pip install 'cudart-py[plot]'."
# Of each picture, the format that a page shows.
TYPES = {".svg": "image/svg+xml", ".gif": "image/gif"}


def available() -> bool:
    """Tell whether pictures can be drawn."""
    try:
        plots.require()
    except plots.MissingPlotExtraError:
        return False
    return True


def addresses(name: str, result: Result) -> list[tuple[str, str]]:
    """Return the pictures of a stop's result as addresses that hold the images themselves, with their captions."""
    if not available():
        return []
    with tempfile.TemporaryDirectory() as folder:
        files = plots.draw(name, "", result, Path(folder), formats=("svg",))
        return [
            (f"data:{TYPES[file.suffix]};base64,{base64.b64encode(file.read_bytes()).decode()}", caption)
            for file, caption in files.items()
        ]
