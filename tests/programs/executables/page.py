"""Renew the tables of `docs/public-programs.md` from results: `python -m tests.programs.executables.page FILE ...`.

The files are those that `python -m tests.programs.executables --json FILE` writes. A table keeps the rows of programs
that did not run, and the notes of programs whose results are the same as before.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "public-programs.md"
_HEADING = "| program | result | seconds | note |\n|---|---|---|---|\n"
_SECTION = re.compile(r"(<!-- results: (?P<suite>[^\n]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
_ROW = re.compile(
    r"^\| (?P<name>[^|`]+?)(?P<command> `[^|`]+`)? "
    r"\| (?P<verdict>[^|]*?) \| *(?P<seconds>\d*) \| *(?P<note>[^|]*?) *\|$",
    re.MULTILINE,
)


def renewed(page: str, results: Iterable[Mapping[str, Any]]) -> str:
    """Return a page with new results in the tables of their suites."""
    by_suite: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        by_suite.setdefault(result["suite"], []).append(result)
    missing = by_suite.keys() - {section["suite"] for section in _SECTION.finditer(page)}
    if missing:
        raise ValueError(f"the page has no section for {', '.join(sorted(missing))}")
    return _SECTION.sub(lambda section: _section(section, by_suite.get(section["suite"], [])), page)


def _section(section: re.Match[str], results: list[Mapping[str, Any]]) -> str:
    rows = {row["name"]: _cells(row) for row in _ROW.finditer(section[0])}
    for result in results:
        name, verdict = result["name"], result["verdict"].replace("|", "/")
        command = f" `{result['command']}`" if result.get("command") else ""
        before = rows.get(name, ("", "", "", ""))
        seconds = f"{result['seconds']:.0f}" if result["seconds"] and not verdict.startswith("left out") else ""
        rows[name] = command, verdict, seconds, before[3] if before[1] == verdict else ""
    rows.pop("program", None)
    counted = [verdict for _, verdict, _, _ in rows.values() if not verdict.startswith("left out")]
    right = sum(verdict.startswith("right") for verdict in counted)
    lines = [f"| {name}{command} | {' | '.join(cells)} |\n" for name, (command, *cells) in rows.items()]
    summary = (
        f"{right} of {len(counted)} programs are right ({100 * right / len(counted):.0f} %).\n\n" if counted else ""
    )
    return section[1] + "\n" + summary + _HEADING + "".join(lines) + "\n" + section[3]


def _cells(row: re.Match[str]) -> tuple[str, str, str, str]:
    return row["command"] or "", row["verdict"], row["seconds"], row["note"]


def main() -> None:
    """Renew the page."""
    results = [result for name in sys.argv[1:] for result in json.loads(Path(name).read_text())]
    PAGE.write_text(renewed(PAGE.read_text(), results))


if __name__ == "__main__":
    main()
