"""Diagrams for a profile with warp records: of lines, and of kernels whose recorded warp diverges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from ...pages.diagram import Diagram
from ..diagrams.accesses import draw_access
from ..diagrams.activity import activity_diagram, diverges
from ..source_lines import name_of, text_of

if TYPE_CHECKING:
    from ..profiles import LaunchProfile


def line_diagrams(launches: Iterable[LaunchProfile]) -> Mapping[tuple[str, int], Sequence[Diagram]]:
    """Return each line's diagrams, keyed by (source name, line number): the first access per operation and space."""
    found: dict[tuple[str, int], dict[tuple[str, str], Diagram]] = {}
    for launch in launches:
        for access in launch.warp.accesses if launch.warp else ():
            drawn = found.setdefault((name_of(access.file), access.line), {})
            if (access.operation, access.space) not in drawn:
                code = text_of([launch], access.file, access.line)
                drawn[access.operation, access.space] = draw_access(access, code)
    return {place: list(drawn.values()) for place, drawn in found.items()}


def kernel_diagrams(launches: Iterable[LaunchProfile]) -> list[Diagram]:
    """Return one diagram of active lanes per kernel, from its first launch whose recorded warp diverges."""
    found: dict[str, Diagram] = {}
    for launch in launches:
        if launch.warp and launch.kernel not in found and diverges(launch.warp.steps):
            found[launch.kernel] = activity_diagram(launch.warp, launch.kernel)
    return list(found.values())


def figures(diagrams: Iterable[Diagram]) -> str:
    """Return diagrams as figures of a page, each in a box that scrolls in narrow windows."""
    return "".join(
        f'<details class="drawn"><summary>{escape(diagram.caption)}</summary>'
        f'<div style="overflow-x:auto">{diagram.svg()}</div></details>'
        for diagram in diagrams
    )
