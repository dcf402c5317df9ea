"""A shuffle: the lane that each lane of a warp reads from."""

from __future__ import annotations

import numpy as np

from cudart_py.base.wording import counted
from cudart_py.pages.diagram import COLORS, Diagram, stroke
from cudart_py.profiling import WarpShuffle
from cudart_py.profiling.diagrams.lanes import LANE_HEIGHT, center_of, lane_cells
from cudart_py.profiling.warp_records import LANES

_BETWEEN, _ROW = 56, 8


def shuffle_diagram(shuffle: WarpShuffle, width: int, title: str) -> Diagram:
    """Return the diagram of a shuffle in groups of `width` lanes, each group in a colour of its own."""
    sources = shuffle.sources
    own = int(np.count_nonzero(sources == np.arange(LANES)))
    caption = f"{counted(own, 'lane')} at the ends of the groups of {width} lanes keep their own values."
    rows = []
    for first in range(0, LANES, _ROW):
        read = " ".join(f"{source:2d}" for source in sources[first : first + _ROW])
        rows.append(f"  lanes {first:2d}-{first + _ROW - 1:<2d}  read from {read}")
    colors = [COLORS[lane // width] for lane in range(LANES)]
    below = LANE_HEIGHT + _BETWEEN
    lines = [
        stroke(center_of(int(source)), LANE_HEIGHT, center_of(lane), below, colors[lane], 1.6)
        for lane, source in enumerate(sources)
    ]
    drawn = [*lines, *lane_cells(colors, 0, "values"), *lane_cells(colors, below, "readers")]
    return Diagram(title, caption, rows, below + LANE_HEIGHT + 4, drawn)
