#!/usr/bin/env python3
"""Put a run of the whole tour into the package, and generate docs/h200.md from the recorded figures.

    library-tour run --json tour.json
    python -m tests.benchmarks.peers course --json course.json
    python scripts/record_tour.py --tour tour.json --bars course.json
    python scripts/record_tour.py                                         generate the page again, from the record

A run with GPU timings becomes library_tour/h200.json, without the data that pages do not show. A run without them
becomes library_tour/seconds.json, from which the progress bar estimates the time left. The page keeps its section of
bars (the speeds that stops must reach) unless --bars gives a new one.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from library_tour import progress, recorded
from library_tour.report import in_per_cent

Json = dict[str, Any]

PAGE = Path(__file__).parents[1] / "docs" / "h200.md"
BARS = "## Bars\n"
LINE = 400  # the most characters of a line; a longer value is split over several


def main() -> None:
    """Write the run that is given, if any, and the page."""
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
    made = bars(json.loads(options.bars.read_text())) if options.bars else kept_bars()
    PAGE.write_text(page(made), encoding="utf-8")


def page(made: str) -> str:
    """Return the text of the page of recorded figures, which includes a section of bars."""
    run = json.loads(recorded.FILE.read_text(encoding="utf-8"))
    return "\n\n".join([heading(run), made, *map(stop, run["stops"])]) + "\n"


def kept_bars() -> str:
    """Return the section of bars that the page has now."""
    after = PAGE.read_text(encoding="utf-8").partition(BARS)[2]
    return (BARS + after.partition("\n## ")[0]).rstrip()


def text(value: object, indent: str = "") -> str:
    """Return a value as JSON, with a part on one line wherever it fits."""
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
    """Return a value as the text of a cell; floats below 1000 have four significant digits."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers and aligned to the right."""
    lines = [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in (header, *rows)]
    lines.insert(1, "---|" + "---:|" * (len(header) - 1))
    return "\n".join(f"|{line}" if at == 1 else f"| {line} |" for at, line in enumerate(lines))


def heading(run: Json) -> str:
    """Return the top of the page: the device, driver, versions and commit of the run."""
    device, driver = run["device"], run["driver"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    size = f"{device['sm_count']} multiprocessors, {device['total_memory'] / 1e9:.0f} GB"
    commit = run["commit"] or "unknown"
    name = commit.removesuffix("-dirty")
    return f"""\
# Measured on one {device["name"]}

{device["name"]}, compute capability {device["compute_capability"]}, {size}; CUDA {driver["cuda"]}; {versions}.

Recorded {run["date"]} at commit `{name}`{" with changes" if name != commit else ""}.

`scripts/record_tour.py` generates this page from the JSON of a run. Do not edit the page by hand."""


def bars(found: Json) -> str:
    """Return the tables of speed bars."""
    tables = [
        f"### {each['title']}\n\n{table(each['headings'], [list(map(number, row)) for row in each['rows']])}"
        for each in found["tables"]
    ]
    intro = """\
Each ratio compares a stop's best row with a reference that does the same work in the same process. `ok` means that
the ratio reaches the bar that the project has set."""
    return "\n\n".join(["## Bars", intro, *tables])


def stop(found: Json) -> str:
    """Return a stop's section."""
    limit = found["limit"]
    facts = []
    if limit and limit["rate"]:
        facts.append(f"Limit: {limit['name']}, {number(limit['rate'])} {limit['unit']}.")
    if found["size"]:
        facts.append(f"Size: {found['size']:,}.")
    parts = [f"## {found['name']}: {found['title']}", " ".join(facts), *rows(found["rows"])]
    for title, others in found.get("tables", {}).items():  # older records have no further tables
        parts += [f"**{title}**", *rows(others)]
    return "\n\n".join(filter(None, [*parts, *map(prose, found["notes"])]))


def prose(note: str) -> str:
    """Return a note in Markdown, in which a launch such as kernel[grid, block](...) must not become a link."""
    return note.replace("](", "]\\(")


def rows(found: Sequence[Json]) -> list[str]:
    """Return a table of a stop's rows and the notes on them."""
    columns = list(dict.fromkeys(column for row in found for column in row["values"]))

    def cell(column: str, values: Json) -> str:
        value = values.get(column)
        return f"{100 * value:.1f} %" if in_per_cent(column) and value is not None else number(value)

    cells = [[row["name"], *(cell(column, row["values"]) for column in columns)] for row in found]
    return [table(["", *columns], cells), *(f"{row['name']}: {prose(row['note'])}" for row in found if row["note"])]


if __name__ == "__main__":
    main()
