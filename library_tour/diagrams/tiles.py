"""A tile in shared memory with its padding, and the words that one access by a warp touches."""

from __future__ import annotations

from cudart_py.base.wording import counted
from cudart_py.pages.diagram import COLORS, GROUND, IDLE, INK, Diagram, box, label_at
from cudart_py.profiling import LaunchProfile
from cudart_py.profiling.diagrams.lanes import LEFT, ROOM, abridged

_BANKS, _WORD, _ROW = 32, 4, 12


def tile_diagram(launch: LaunchProfile, rows: int, width: int, used: int, title: str) -> Diagram:
    """Return a diagram of the tile of 4-byte words that the recorded warp of a launch loads from first.

    A row is `width` words long, of which the first `used` hold elements and the others are padding.
    """
    assert launch.warp is not None
    in_shared = [access for access in launch.warp.accesses if access.space == "shared"]
    # The warp stores the tile's first row, so its lowest address is where the tile begins.
    start = min(int(access.addresses[access.active].min()) for access in in_shared)
    load = next(access for access in in_shared if access.operation == "load")
    words = [int(address - start) // _WORD for address in load.addresses[load.active]]
    banks = {(start // _WORD + word) % _BANKS for word in words}
    caption = f"The {len(words)} words that the warp loads lie in {counted(len(banks), 'bank')}."
    if width > used:
        caption += f" Padding makes a row {width} words long."
    texts = []
    for row in range(rows):
        marks = "".join(
            "#" if row * width + column in words else "-" if column >= used else "." for column in range(width)
        )
        here = [_bank(start, row * width + column) for column in range(used) if row * width + column in words]
        texts.append(f"  row {row:2d} [{marks}]" + (f"  bank {here[0]}" if len(here) == 1 else ""))
    key = "  # word that the warp loads   . other word" + ("   - padding" if width > used else "")
    return Diagram(title, caption, [*abridged(texts), "", key], *_drawing(start, set(words), rows, width, used))


def _bank(start: int, word: int) -> int:
    return (start // _WORD + word) % _BANKS


def _drawing(start: int, words: set[int], rows: int, width: int, used: int) -> tuple[float, list[str]]:
    each = ROOM / width
    parts = []
    for row in range(rows):
        y = row * _ROW
        if row % 4 == 0:
            parts.append(label_at(0, y + 10, f"row {row}"))
        parts.append(box(LEFT, y, each * used, _ROW, GROUND))
        if width > used:
            parts.append(box(LEFT + each * used, y, each * (width - used), _ROW, IDLE))
        for column in range(width):
            word = row * width + column
            if word in words:
                bank = _bank(start, word)
                x = LEFT + each * column
                parts.append(box(x, y, each, _ROW, COLORS[bank % len(COLORS)]))
                parts.append(label_at(x + each / 2, y + 10, str(bank), anchor="middle", size=9, color=INK))
    parts.append(label_at(LEFT, rows * _ROW + 13, "The numbers are bank numbers. Grey words are padding."))
    return rows * _ROW + 18, parts
