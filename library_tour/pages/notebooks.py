"""Notebooks as pages of the documentation's site, with what their cells show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .rendering import render

# Of the forms of a result, the one that a page shows.
FORMS = ("text/html", "image/svg+xml", "text/plain")
# The colours of a terminal.
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def notebook_page(notebook: Mapping[str, Any], file: str) -> str:
    """Return the page of a notebook with its results, as Jupyter's format has them; `file` lies beside the page."""
    cells = [
        {"kind": cell["cell_type"], "source": _text(cell["source"]), "results": list(_results(cell.get("outputs", ())))}
        for cell in notebook["cells"]
    ]
    return render("notebook", "markdown", cells=cells, file=file)


def _results(outputs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield what a cell shows: the form of each output and its text."""
    for output in outputs:
        if output["output_type"] == "stream":
            yield "text/plain", _text(output["text"])
        elif output["output_type"] == "error":
            yield "text/plain", _COLORS.sub("", "\n".join(output["traceback"]))
        else:
            form = next(form for form in FORMS if form in output["data"])
            yield form, _text(output["data"][form])


def _text(source: str | Sequence[str]) -> str:
    """Return a text, which a notebook may have as its lines."""
    return source if isinstance(source, str) else "".join(source)
