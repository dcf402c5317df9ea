"""The measurements of a pytest run as CSV, as Markdown and as histograms."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from ...host.output_files import output_path
from ..record import Measurement
from ..table import markdown_table
from ..times import format_seconds

Results = Iterable[tuple[str, Measurement]]
_QUANTILES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
_COLUMNS = ("samples", "batch", "GB/s", "TFLOP/s", "of ceiling", "cache", "clock_mhz", "memory", "device")


def add_written_options(group: Any) -> None:
    """Add the options that write measurements to files or show their distribution."""
    group.addoption(
        "--measurements-csv",
        type=output_path,
        metavar="FILE",
        help="write the measurements of gpu_benchmark and host_benchmark as CSV, in seconds, with quantiles",
    )
    group.addoption(
        "--measurements-markdown",
        type=output_path,
        metavar="FILE",
        help="write the measurements as a table in Markdown",
    )
    group.addoption(
        "--measurements-histogram", action="store_true", help="print a histogram of each benchmark's samples"
    )


def write_results(config: pytest.Config, results: Sequence[tuple[str, Measurement]]) -> None:
    """Write the files that the options request."""
    if path := config.getoption("measurements_csv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(_csv_rows(results))
    if path := config.getoption("measurements_markdown"):
        path.write_text(markdown_table(list(_markdown_rows(results)), left=1) + "\n", encoding="utf-8")


def histogram_lines(results: Results) -> Iterator[str]:
    """Yield the lines of a histogram for each measurement that has times."""
    for name, found in results:
        if found.timed:
            yield f"{name}: {found}"
            yield from str(found.histogram()).splitlines()


def _name(fraction: float) -> str:
    return {0: "min", 0.5: "median", 1: "max"}.get(fraction, f"{100 * fraction:g} %")


def _csv_rows(results: Results) -> Iterator[Sequence[object]]:
    yield ("benchmark", *map(_name, _QUANTILES), "spread", *_COLUMNS)
    for name, found in results:
        known = found.as_dict() | {"samples": len(found.samples)}
        yield (
            name,
            *(found.quantile(fraction) for fraction in _QUANTILES),
            *(known.get(column) for column in ("spread", *_COLUMNS)),
        )


def _markdown_rows(results: Results) -> Iterator[Sequence[str]]:
    yield ("benchmark", "samples", *map(_name, _QUANTILES), "spread", "GB/s", "TFLOP/s")
    for name, found in results:
        times = (found.quantile(fraction) for fraction in _QUANTILES)
        rates = (found.gigabytes_per_second, found.teraflops_per_second)
        yield (
            name,
            str(len(found.samples)),
            *("" if seconds is None else format_seconds(seconds) for seconds in times),
            "" if found.spread is None else f"{found.spread:.1%}",
            *("" if rate is None else f"{rate:,.4g}" for rate in rates),
        )
