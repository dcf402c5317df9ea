"""The table of measurements at the end of a pytest run, as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .measurement import Measurement, format_seconds

__all__ = ["lines"]

_HEADINGS = ("name", "median", "spread", "GB/s", "TFLOP/s", "of ceiling", "MHz", "L2")
# Metrics come in hundreds; the table shows how often each kernel ran, and the record has the rest.
_LONGEST_NAME = 40


def lines(results: Sequence[tuple[str, Measurement]]) -> Iterator[str]:
    """Yield the lines: a table of what was timed, then what was only counted."""
    timed = [(name, found) for name, found in results if found.timed]
    if timed:
        rows = [_HEADINGS, *(_cells(name, found) for name, found in timed)]
        kept = [column for column in zip(*rows, strict=True) if any(column[1:])]
        widths = [max(map(len, column)) for column in kept]
        for row in zip(*kept, strict=True):
            cells = [row[0].ljust(widths[0]), *(c.rjust(width) for c, width in zip(row[1:], widths[1:], strict=True))]
            yield "  ".join(cells).rstrip()
    for name, found in results:
        if not found.timed:
            yield f"{name}: not timed by this driver; counted"
            for launch in found.counters:
                yield "  " + _counted(launch)


def _cells(name: str, found: Measurement) -> tuple[str, ...]:
    short = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    fraction = found.fraction
    return (
        short,
        format_seconds(found.median or 0.0),
        f"{100 * (found.spread or 0.0):.1f} %",
        _number(found.gigabytes_per_second),
        _number(found.teraflops_per_second),
        "" if fraction is None else f"{100 * fraction:.1f} %",
        "" if found.clock_mhz is None else f"{found.clock_mhz:.0f}",
        f"{found.cache} ×{found.batch}" if found.batch > 1 else found.cache,
    )


def _counted(launch: object) -> str:
    assert isinstance(launch, dict)
    metrics = ", ".join(f"{name} {value}" for name, value in launch.items() if name not in ("kernel", "grid", "block"))
    return f"{launch['kernel']}[{launch['grid']}, {launch['block']}]: {metrics}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1e3 else f"{value:.4g}"
