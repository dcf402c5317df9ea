#!/usr/bin/env python3
"""Make docs/h200.md, the recorded table, from the JSON of a tour and of the course's bars.

library-tour run --json tour.json
python -m tests.benchmarks.peers course --json course.json
python scripts/record_h200.py tour.json [course.json] > docs/h200.md

The second file is optional.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]


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
    yield "This page is made by `scripts/record_h200.py` from the JSON of a run; change nothing here by hand."


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
        f"{found['state']}: {found['message']}" if found["message"] else "",
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


def main() -> None:
    """Print the page."""
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    run = json.loads(Path(sys.argv[1]).read_text())
    parts = [heading(run)]
    if len(sys.argv) == 3:
        parts.append(bars(json.loads(Path(sys.argv[2]).read_text())))
    parts += [stop(found) for found in run["stops"]]
    print("\n\n".join("\n".join(part) for part in parts))


if __name__ == "__main__":
    main()
