"""Diagram from lanes to banks: the wavefronts in which the 32 banks of shared memory serve one access of a warp."""

from __future__ import annotations

import numpy as np

from ...base.wording import counted
from ...pages.diagram import COLORS, GROUND, INK, Diagram, box, label_at, stroke
from ..warp_records import LANES, WarpAccess
from .lanes import LANE_HEIGHT, LANE_WIDTH, LEFT, ROOM, abridged, center_of, lane_cells, named_lanes

_BANKS, _WORD = 32, 4
_BETWEEN, _LABEL, _MOST_DRAWN = 56, 14, 32


def bank_diagram(access: WarpAccess, title: str, code: str) -> Diagram:
    """Return the diagram of one access to shared memory."""
    served = _served(access)
    count = 1 + max(wavefront for wavefront, _ in served)
    words = len({_word(access, lane, part) for lanes in served.values() for lane, part in lanes})
    least = max(1, -(-words // _BANKS)) if access.operation != "atomic" else 1
    caption = f"{counted(count, 'wavefront')} for {counted(words, 'word')} of 4 bytes"
    caption += "." if count <= least else f"; {least} is enough without bank conflicts."
    return Diagram(title, caption, _text(served, count), *_drawing(access, served, count), code)


def _word(access: WarpAccess, lane: int, part: int) -> int:
    return int(access.addresses[lane]) // _WORD + part


def _served(access: WarpAccess) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return the (lane, word of the lane) pairs that are served, keyed by (wavefront, bank)."""
    assert access.wavefronts is not None
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for lane in np.flatnonzero(access.active).tolist():
        for part, wavefront in enumerate(access.wavefronts[lane].tolist()):
            found.setdefault((wavefront, _word(access, lane, part) % _BANKS), []).append((lane, part))
    return found


def _text(served: dict[tuple[int, int], list[tuple[int, int]]], count: int) -> list[str]:
    rows = []
    for wavefront in range(count):
        marks = "".join("#" if (wavefront, bank) in served else "." for bank in range(_BANKS))
        lanes = sorted({lane for (each, _), pairs in served.items() if each == wavefront for lane, _ in pairs})
        rows.append(f"  wavefront {wavefront + 1:2d}  [{marks}]  {named_lanes(lanes, 28)}")
    return ["                 bank 0" + "bank 31".rjust(26), *abridged(rows), "", "  # busy bank   . idle bank"]


def _drawing(
    access: WarpAccess, served: dict[tuple[int, int], list[tuple[int, int]]], count: int
) -> tuple[float, list[str]]:
    colors: list[str | None] = [None] * LANES
    lines = []
    top = LANE_HEIGHT + _BETWEEN
    for (wavefront, bank), pairs in sorted(served.items(), reverse=True):
        color = COLORS[wavefront % len(COLORS)]
        for lane, _ in pairs:
            colors[lane] = color
            lines.append(stroke(center_of(lane), LANE_HEIGHT, center_of(bank), top, color, 1.4))
    drawn = min(count, _MOST_DRAWN)
    height = 18 if drawn <= 8 else 13
    parts = [*lines, *lane_cells(colors, 0), label_at(0, top + _LABEL - 4, "banks", size=12)]
    parts += [label_at(center_of(bank), top + _LABEL - 4, str(bank), anchor="middle") for bank in range(_BANKS)]
    for wavefront in range(drawn):
        y = top + _LABEL + wavefront * height
        if height > 13 or wavefront % 4 == 0:
            parts.append(label_at(0, y + height - 4, f"wavefront {wavefront + 1}"))
        parts.append(box(LEFT, y, ROOM, height, GROUND))
        for bank in range(_BANKS):
            if found := served.get((wavefront, bank)):
                lanes = sorted({lane for lane, _ in found})
                text = str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]}+"
                parts.append(box(LEFT + bank * LANE_WIDTH, y, LANE_WIDTH, height, COLORS[wavefront % len(COLORS)]))
                parts.append(label_at(center_of(bank), y + height - 4, text, anchor="middle", size=9, color=INK))
    return top + _LABEL + drawn * height + 6, parts
