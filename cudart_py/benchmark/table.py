"""The table of measurements at the end of a pytest run, as lines of plain text, and tables in Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..pages.text_tables import aligned
from ..profiling.metric_names import CONFLICTS, SHARED, names
from ..profiling.report.launch_table import shortened, shortened_kernel
from .record import Measurement
from .times import format_seconds

_HEADINGS = ("name", "median", "spread", "GB/s", "TFLOP/s", "of ceiling", "beside", "MHz", "L2")
# There are dozens of metrics. The table has those that explain slow kernels most often, and the record has all.
_COUNTED = {
    "warp instructions": ("smsp__inst_executed.sum",),
    "sectors/load": ("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",),
    "sectors/store": ("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",),
    "bank conflicts": names(CONFLICTS, SHARED),
}
_LONGEST_NAME = 40


def lines(results: Sequence[tuple[str, Measurement]]) -> Iterator[str]:
    """Yield the lines: a table of times, then a table of the launches that were only counted."""
    timed = [_cells(name, found) for name, found in results if found.timed]
    if timed:
        yield from _table([_HEADINGS, *timed], left=1)
    counted = [_counts(name, launch) for name, found in results if not found.timed for launch in found.counters]
    if counted:
        yield "not timed by this driver; counted:"
        same = [(row, len(list(rows))) for row, rows in itertools.groupby(counted)]
        rows = [(*row[:2], f"×{count}" if count > 1 else "", *row[2:]) for row, count in same]
        yield from _table([("name", "kernel", "launches", "grid", "block", *_COUNTED), *rows], left=2)


def _table(rows: list[tuple[str, ...]], left: int) -> Iterator[str]:
    """Yield the rows in aligned columns, leaving out columns that have only a heading."""
    kept = [index for index, column in enumerate(zip(*rows, strict=True)) if any(column[1:])]
    return aligned([[row[index] for index in kept] for row in rows], sum(index < left for index in kept))


def markdown_table(rows: Sequence[Sequence[str]], left: int, *, last_left: bool = False) -> str:
    """Return a table in Markdown; the first row contains the headings.

    The first `left` columns are flush left, and with `last_left` also the last one, such as a verdict.
    """
    head, *body = (f"| {' | '.join(map(markdown, row))} |" for row in rows)
    border = "|---" * left + "|---:" * (len(rows[0]) - left - last_left) + "|---" * last_left
    return "\n".join((head, f"{border}|", *body))


def markdown(text: str) -> str:
    """Return text in which Markdown finds no markup, such as the name of a test."""
    for character in "\\|<>*_[]`":
        text = text.replace(character, f"\\{character}")
    return text


def _cells(name: str, found: Measurement) -> tuple[str, ...]:
    fraction = found.fraction
    return (
        shortened(name, _LONGEST_NAME),
        format_seconds(found.median or 0.0),
        f"{100 * (found.spread or 0.0):.1f} %",
        _number(found.gigabytes_per_second),
        _number(found.teraflops_per_second),
        "" if fraction is None else f"{100 * fraction:.1f} %",
        ", ".join(f"{peer.ratio:.3g} × {peer_name}" for peer_name, peer in found.peers.items()),
        "" if found.clock_mhz is None else f"{found.clock_mhz:.0f}",
        _conditions(found),
    )


def _conditions(found: Measurement) -> str:
    """Describe the conditions of a time: the state of L2, the calls per sample, and others."""
    text = found.cache or "host time"
    if found.batch > 1:
        text += f" ×{found.batch}"
    if found.captured:
        text += " in a graph"
    if found.streams is not None:
        text += f", {found.streams} streams"
    return text if found.blocked or not found.cache else f"{text}, launch latency included"


def _counts(name: str, launch: Mapping[str, Any]) -> tuple[str, ...]:
    known = [[launch[metric] for metric in metrics if metric in launch] for metrics in _COUNTED.values()]
    return (
        shortened(name, _LONGEST_NAME),
        shortened_kernel(launch["kernel"], _LONGEST_NAME),
        _shape(launch["grid"]),
        _shape(launch["block"]),
        *(_number(sum(values)) if values else "" for values in known),
    )


def _shape(sizes: Sequence[int]) -> str:
    """Format the shape of a grid or block, without trailing sizes of 1."""
    x, y, z = sizes
    return f"{x}×{y}×{z}" if z > 1 else f"{x}×{y}" if y > 1 else str(x)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1e3 else f"{value:.4g}"
