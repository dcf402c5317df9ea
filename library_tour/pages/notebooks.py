"""Notebooks as pages of the documentation site, with the outputs of their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .rendering import render

# The MIME types of an output; a page shows the first one that is present.
FORMS = ("text/html", "image/svg+xml", "text/plain")
# Terminal colour codes.
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def notebook_page(notebook: Mapping[str, Any], file: str) -> str:
    """Return the page of a notebook in Jupyter's format, with its outputs; `file` is its name in the page's folder."""
    cells = [
        {"kind": cell["cell_type"], "source": _text(cell["source"]), "results": list(_results(cell.get("outputs", ())))}
        for cell in notebook["cells"]
    ]
    return render("notebook", "markdown", cells=cells, file=file)


def _results(outputs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the MIME type and the text of each output of a cell."""
    for output in outputs:
        if output["output_type"] == "stream":
            yield "text/plain", _text(output["text"])
        elif output["output_type"] == "error":
            yield "text/plain", _COLORS.sub("", "\n".join(output["traceback"]))
        else:
            form = next(form for form in FORMS if form in output["data"])
            yield form, _text(output["data"][form])


def _text(source: str | Sequence[str]) -> str:
    """Return a text, which a notebook may store as a list of lines."""
    return source if isinstance(source, str) else "".join(source)
