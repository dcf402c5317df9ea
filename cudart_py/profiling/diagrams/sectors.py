"""Diagram from lanes to sectors: the 32-byte sectors that one access of a warp touches, and the bytes that it uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.wording import counted
from ...pages.diagram import COLORS, FAINT, GROUND, RULE, Diagram, box, label_at, stroke
from ..metric_names import SECTOR_BYTES
from ..warp_records import LANES, WarpAccess
from .lanes import LANE_HEIGHT, LEFT, ROOM, abridged, center_of, lane_cells, named_lanes

_WORD = 4
_WORDS = SECTOR_BYTES // _WORD
_SECTOR_HEIGHT, _BETWEEN, _WIDEST, _GAP = 22, 64, 84, 12
_NARROWEST = 4.0
_LABELLED = 8  # the maximum number of sectors of which each has space for a label


class _Sectors:
    """The sectors of an access by their numbers in memory, each with the lanes that touch it and the bytes in use."""

    def __init__(self, access: WarpAccess) -> None:
        self.lanes: dict[int, list[int]] = {}
        self.used: dict[int, NDArray[Any]] = {}
        starts = _in_memory(access)
        for lane in np.flatnonzero(access.active):
            for start, size in starts[lane]:
                number, first = divmod(start, SECTOR_BYTES)
                lanes = self.lanes.setdefault(number, [])
                if int(lane) not in lanes:
                    lanes.append(int(lane))
                self.used.setdefault(number, np.zeros(SECTOR_BYTES, np.bool_))[first : first + size] = True
        self.numbers = sorted(self.lanes)
        self.color = {number: COLORS[at % len(COLORS)] for at, number in enumerate(self.numbers)}
        self.bytes = sum(int(np.count_nonzero(used)) for used in self.used.values())
        self.origin = self.numbers[0]

    def words(self, number: int) -> list[bool]:
        """Return for each 4-byte word of a sector whether it is touched."""
        return [bool(word.any()) for word in self.used[number].reshape(_WORDS, _WORD)]

    def gap_before(self, at: int) -> bool:
        """Return whether there is a gap in memory between a sector and the previous sector of the row."""
        return at > 0 and self.numbers[at] != self.numbers[at - 1] + 1

    def offset(self, number: int) -> int:
        """Return the offset of a sector in bytes from the first sector."""
        return (number - self.origin) * SECTOR_BYTES


def _in_memory(access: WarpAccess) -> list[list[tuple[int, int]]]:
    """Return (start, size) pairs of each lane's bytes in memory.

    Local memory is interleaved: the words of a warp's lanes at the same local address are contiguous.
    """
    if access.space != "local":
        return [[(int(address), access.size)] for address in access.addresses]
    found = []
    for lane, address in enumerate(access.addresses.tolist()):
        words = range(address // _WORD, (address + access.size - 1) // _WORD + 1)
        inside = address % _WORD if access.size < _WORD else 0
        found.append([((word * LANES + lane) * _WORD + inside, min(access.size, _WORD)) for word in words])
    return found


def sector_diagram(access: WarpAccess, title: str, code: str) -> Diagram:
    """Return the diagram of one access to global, constant or local memory."""
    sectors = _Sectors(access)
    moved = SECTOR_BYTES * len(sectors.numbers)
    verb = "written" if access.operation == "store" else "used"
    caption = (
        f"{counted(len(sectors.numbers), 'sector')}, {sectors.bytes:,} of {moved:,} bytes {verb} "
        f"({100 * sectors.bytes / moved:.3g} %)."
    )
    addresses, lanes = np.unique(access.addresses[access.active], return_counts=True)
    if access.space == "const":
        requests = counted(len(addresses), "request")
        caption = f"{counted(len(addresses), 'address')}: the constant cache serves them in {requests}."
    elif access.operation == "atomic":
        caption += f" Up to {counted(int(lanes.max()), 'lane')} meet at one address."
    return Diagram(title, caption, _text(sectors), *_drawing(access, sectors), code)


def _text(sectors: _Sectors) -> list[str]:
    rows = []
    for at, number in enumerate(sectors.numbers):
        marks = "".join("#" if used else "." for used in sectors.words(number))
        rows.append(f"  sector {at:2d}  [{marks}]  byte {sectors.offset(number):<7,} {_lanes_of(sectors, number)}")
    return [*abridged(rows), "", "  # 4 bytes that lanes access   . 4 bytes that no lane accesses"]


def _lanes_of(sectors: _Sectors, number: int) -> str:
    return named_lanes(sectors.lanes[number], 36)


def _drawing(access: WarpAccess, sectors: _Sectors) -> tuple[float, list[str]]:
    colors: list[str | None] = [None] * LANES
    for number in reversed(sectors.numbers):
        for lane in sectors.lanes[number]:
            colors[lane] = sectors.color[number]
    top = LANE_HEIGHT + _BETWEEN
    gaps = sum(map(sectors.gap_before, range(len(sectors.numbers))))
    gap = min(_GAP, ROOM / (4 * max(gaps, 1)))
    each = min(_WIDEST, (ROOM - gaps * gap) / len(sectors.numbers))
    x = LEFT + (ROOM - gaps * gap - each * len(sectors.numbers)) / 2
    lines, boxes = [], [label_at(0, top + 15, "sectors", size=12)]
    labelled = _labelled(len(sectors.numbers))
    for at, number in enumerate(sectors.numbers):
        x += gap if sectors.gap_before(at) else 0
        for lane, end in _ends(sectors, access, number, x, each):
            lines.append(stroke(center_of(lane), LANE_HEIGHT, end, top, sectors.color[number], 1.4))
        boxes += _sector(access, sectors, number, x, top, each)
        if at in labelled:
            anchor = labelled[at]
            place = {"start": x, "middle": x + each / 2, "end": x + each}[anchor]
            boxes.append(label_at(place, top + _SECTOR_HEIGHT + 13, f"byte {sectors.offset(number):,}", anchor=anchor))
        x += each
    return top + _SECTOR_HEIGHT + 20, [*lines, *lane_cells(colors, 0), *boxes]


def _labelled(count: int) -> dict[int, str]:
    """Return the alignment of labels, keyed by the index of the sector in the row; not all sectors have a label."""
    if count <= _LABELLED:
        return dict.fromkeys(range(count), "middle")
    step = count // 4
    found = dict.fromkeys(range(0, count - step, step), "start")
    return {**found, count - 1: "end"}


def _ends(sectors: _Sectors, access: WarpAccess, number: int, x: float, each: float) -> list[tuple[int, float]]:
    """Return the lanes that touch a sector, each with the x coordinate of the middle of its bytes in the box."""
    starts = _in_memory(access)
    found = []
    for lane in sectors.lanes[number]:
        for start, size in starts[lane]:
            if start // SECTOR_BYTES == number:
                middle = start % SECTOR_BYTES + size / 2
                found.append((lane, x + each * middle / SECTOR_BYTES))
    return found


def _sector(access: WarpAccess, sectors: _Sectors, number: int, x: float, y: float, width: float) -> list[str]:
    """Return the box of a sector, with a coloured piece for each element that lanes use."""
    parts = [box(x, y, width, _SECTOR_HEIGHT, GROUND, FAINT)]
    piece = _WORD if access.space == "local" else access.size
    each = width * piece / SECTOR_BYTES
    for at, used in enumerate(sectors.used[number].reshape(-1, piece)):
        if used.any():
            # Even in a narrow sector, a used element must be visible.
            parts.append(box(x + at * each, y, max(each, _NARROWEST), _SECTOR_HEIGHT, sectors.color[number], RULE))
    return parts
