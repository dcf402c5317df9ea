"""The pages of a run, a file each in one folder: that of every stop, and an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from cudart_py.pages.document import document
from cudart_py.pages.tables import facts

from ..runner import Outcome
from .stop_page import STYLE, stop_page


def machine(environment: Mapping[str, Any]) -> str:
    """Return what a run's figures are of, as a heading."""
    return f"This machine: {environment['device']['name']}"


def write_stop(folder: Path, done: Outcome, environment: Mapping[str, Any]) -> Path:
    """Write the page of a stop that has run; return its path."""
    path = folder / f"{done.name}.html"
    path.write_text(stop_page(done, machine(environment)), encoding="utf-8")
    return path


def write_index(folder: Path, outcomes: Sequence[Outcome], environment: Mapping[str, Any]) -> Path:
    """Write the page that leads to those of the stops; return its path."""
    rows = "".join(
        f'<tr><td><a href="{done.name}.html">{escape(done.name)}</a></td><td class="words">{escape(done.title)}</td>'
        f'<td class="{"worse" if done.bad else "better"}">{escape(done.state)}</td></tr>'
        for done in outcomes
    )
    device = environment["device"]
    known = {
        "device": device["name"],
        "compute capability": device["compute_capability"],
        "CUDA": environment["driver"]["cuda"],
        "date": environment["date"],
        "commit": environment["commit"] or "",
        **environment["versions"],
    }
    body = (
        "<header><h1>A tour of CUDA</h1><p>Each stop is one topic: its code step by step, its figures on this machine "
        f"beside those of an H200, and an exercise.</p></header><main>"
        f'<div class="scroll"><table class="stops"><tbody>{rows}</tbody></table></div>'
        f"<section><h2>This run</h2>{facts(known)}</section></main>"
    )
    path = folder / "index.html"
    path.write_text(document("A tour of CUDA", body, style=STYLE.read_text(encoding="utf-8")), encoding="utf-8")
    return path
