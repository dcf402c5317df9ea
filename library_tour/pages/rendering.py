"""Render pages from templates: HTML for the pages of a run, Markdown for the documentation site.

A template contains the parts of one kind of page in order. It calls its format's macros for headings, text, code and
pictures; they have the same names in `templates/html.jinja` and `templates/markdown.jinja`. Tables of figures are HTML
in both formats.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cudart_py.pages.tables import breakable

from .. import path
from ..glossary import Links
from . import markup

TEMPLATES = Path(__file__).with_name("templates")
Format = Literal["html", "markdown"]


def render(template: str, format: Format, **facts: Any) -> str:
    """Return the page that a template renders from its variables."""
    return _environment(format).get_template(f"{template}.jinja").render(facts)


@functools.cache
def _environment(format: Format) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=format == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "breakable": breakable,
        "hours": path.hours,
        "highlighted": markup.highlighted,
        "html": markup.html,
        "inline_html": markup.inline_html,
        "linked": _linked,
        "note_lines": markup.note_lines,
        "plain": markup.plain,
    }
    environment.globals["page"] = environment.get_template(f"{format}.jinja").module
    return environment


def _linked(text: str, links: Links) -> str:
    return links.link(text)
