#!/usr/bin/env python3
"""Put a run of the whole tour into the package, and make docs/h200.md of the recorded figures.

    library-tour run --json tour.json
    python -m tests.benchmarks.peers course --json course.json
    python scripts/record_tour.py --tour tour.json --bars course.json
    python scripts/record_tour.py                                         make the page again, from what is recorded

A run with a GPU's times becomes library_tour/h200.json, without what pages do not show. One without becomes
library_tour/seconds.json, from which the bar of progress knows the time left. The page keeps its bars unless they are
given.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from library_tour import progress, recorded

Json = dict[str, Any]

PAGE = Path(__file__).parents[1] / "docs" / "h200.md"
BARS = "## Bars\n"
LINE = 400  # characters at most before a value is divided among lines


def main() -> None:
    """Write what is given, and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tour", type=Path, metavar="JSON", help="a run of the whole tour")
    parser.add_argument("--bars", type=Path, metavar="JSON", help="what `python -m tests.benchmarks.peers course` kept")
    options = parser.parse_args()
    if options.tour:
        run = json.loads(options.tour.read_text(encoding="utf-8"))
        if "gpu_timing" in run["driver"]["capabilities"]:
            written, path = recorded.shortened(run), recorded.FILE
        else:
            written, path = {stop["name"]: round(stop["seconds"], 1) for stop in run["stops"]}, progress.SECONDS
        path.write_text(text(written) + "\n", encoding="utf-8")
        print(f"written: {path}, {path.stat().st_size:,} bytes")
    made = "\n".join(bars(json.loads(options.bars.read_text()))) if options.bars else kept_bars()
    PAGE.write_text(page(made), encoding="utf-8")


def page(made: str) -> str:
    """Return the page of the recorded figures, with a section of bars."""
    run = json.loads(recorded.FILE.read_text(encoding="utf-8"))
    return "\n\n".join(["\n".join(heading(run)), made, *("\n".join(stop(found)) for found in run["stops"])]) + "\n"


def kept_bars() -> str:
    """Return the section of bars that the page has."""
    after = PAGE.read_text(encoding="utf-8").partition(BARS)[2]
    return (BARS + after.partition("\n## ")[0]).rstrip()


def text(value: object, indent: str = "") -> str:
    """Return a value as JSON, one line for each part that fits into one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= LINE or not isinstance(value, dict | list):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {text(each, deeper)}" for key, each in value.items()]
    else:
        parts = [text(each, deeper) for each in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{last}"


def number(value: object) -> str:
    """Return a value as a cell: numbers with about four digits, fractions of a limit in per cent by their column."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table's lines; the first column is words, the others are numbers."""
    yield "| " + " | ".join(header) + " |"
    yield "|---|" + "---:|" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"


def heading(run: Json) -> Iterator[str]:
    """Yield what the run depends on."""
    device, driver = run["device"], run["driver"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    yield f"# Measured on one {device['name']}"
    yield ""
    multiprocessors, gigabytes = f"{device['sm_count']} multiprocessors", f"{device['total_memory'] / 1e9:.0f} GB"
    card = f"{device['name']}, compute capability {device['compute_capability']}, {multiprocessors}, {gigabytes}"
    yield f"{card}; CUDA {driver['cuda']}; {versions}."
    yield ""
    yield f"Recorded {run['date']} at commit {commit(run)}."
    yield ""
    yield "This page is made by `scripts/record_tour.py` from the JSON of a run; change nothing here by hand."


def commit(run: Json) -> str:
    """Return what the run knows of its commit."""
    name = run["commit"] or "unknown"
    short = name.removesuffix("-dirty")
    return f"`{short}`" + (" with changes" if short != name else "")


def bars(found: Json) -> Iterator[str]:
    """Yield the table of speed bars."""
    yield "## Bars"
    yield ""
    yield "A stop's best row over what it is compared with, which does the same work in the same process; `ok` stands"
    yield "where the ratio is at least the bar."
    yield ""
    for each in found["tables"]:
        yield f"### {each['title']}"
        yield ""
        yield from table(each["headings"], [[number(cell) for cell in row] for row in each["rows"]])
        yield ""


def stop(found: Json) -> Iterator[str]:
    """Yield a stop's section."""
    yield f"## {found['name']}: {found['title']}"
    limit = found["limit"]
    facts = [
        f"Limit: {limit['name']}, {number(limit['rate'])} {limit['unit']}." if limit and limit["rate"] else "",
        f"Size: {found['size']:,}." if found["size"] else "",
    ]
    if any(facts):
        yield ""
        yield " ".join(filter(None, facts))
    yield from rows(found["rows"])
    for title, others in found.get("tables", {}).items():  # records before there were such have none
        yield ""
        yield f"**{title}**"
        yield from rows(others)
    for remark in found["notes"]:
        yield ""
        yield remark


def rows(found: Sequence[Json]) -> Iterator[str]:
    """Yield a table of a stop and the notes of its rows."""
    columns = list(dict.fromkeys(column for row in found for column in row["values"]))

    def cell(column: str, values: Json) -> str:
        value = values.get(column)
        return f"{100 * value:.1f} %" if column.startswith("of ") and value is not None else number(value)

    yield ""
    yield from table(["", *columns], [[x["name"], *(cell(c, x["values"]) for c in columns)] for x in found])
    for row in found:
        if row["note"]:
            yield ""
            yield f"{row['name']}: {row['note']}"


if __name__ == "__main__":
    main()
