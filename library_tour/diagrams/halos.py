"""A stencil's halo: the cells that a block reads but does not compute, found from its warps' addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.pages.diagram import COLORS, GROUND, Diagram, box, label_at
from cudart_py.profiling.diagrams.lanes import LEFT, ROOM

_CELL, _BYTES = 15, 4
Cells = NDArray[np.bool_]


def footprint(
    launch: Callable[[], object], warps: Iterable[int], source: cuda.DeviceArray, target: cuda.DeviceArray
) -> tuple[Cells, Cells]:
    """Return which elements of `source` the given warps of a launch load, and which elements of `target` they store."""
    loaded, stored = (np.zeros(array.size, np.bool_) for array in (source, target))
    for warp in warps:
        with cuda.profile(record_warp=warp) as profile:
            launch()
        record = profile.launches[0].warp
        assert record is not None
        for access in record.accesses:
            array, cells = (source, loaded) if access.operation == "load" else (target, stored)
            if access.space == "global":
                first = (access.addresses[access.active] - array.pointer) // _BYTES
                for part in range(access.size // _BYTES):
                    cells[first + part] = True
    return loaded.reshape(source.shape), stored.reshape(target.shape)


def halo_diagram(loaded: Cells, stored: Cells, title: str, who: str) -> Diagram:
    """Return a diagram of the cells that `who`, such as a block, reads; the computed ones have a different colour."""
    rows, columns = (np.flatnonzero(loaded.any(axis=axis)) for axis in (1, 0))
    window = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    loaded, stored = loaded[window], stored[window]
    halo = np.count_nonzero(loaded & ~stored)
    caption = (
        f"{who} computes {np.count_nonzero(stored):,} cells and reads {np.count_nonzero(loaded):,}: the other "
        f"{halo:,} are the halo."
    )
    texts = [
        "  " + "".join("#" if own else "o" if read else "." for own, read in zip(*row, strict=True))
        for row in zip(stored, loaded, strict=True)
    ]
    return Diagram(title, caption, [*texts, "", "  # computed and read   o only read"], *_drawing(loaded, stored))


def _drawing(loaded: Cells, stored: Cells) -> tuple[float, list[str]]:
    rows, columns = loaded.shape
    each = min(_CELL, ROOM / columns)
    parts = []
    for row in range(rows):
        for column in range(columns):
            own, read = stored[row, column], loaded[row, column]
            color = COLORS[0] if own else COLORS[1] if read else GROUND
            parts.append(box(LEFT + column * each, row * each, each, each, color))
    y = rows * each + 10
    for at, (color, text) in enumerate(((COLORS[0], "computed and read"), (COLORS[1], "only read: the halo"))):
        parts.append(box(LEFT + at * 180, y, 12, 12, color))
        parts.append(label_at(LEFT + at * 180 + 18, y + 10, text, size=11))
    return y + 20, parts
