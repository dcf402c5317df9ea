"""The run that was recorded on an H200, which ships with the package for comparison with any machine's figures."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .stop import Bars, Curve, Limit, Panels, Picture, Result, Row, Timeline

# Written by scripts/record_tour.py.
FILE = Path(__file__).with_name("h200.json")
# More digits than any table or picture shows.
DIGITS = 5
# A film is recorded without its frames.
PICTURES: dict[str, type[Bars | Curve | Panels | Timeline]] = {
    "bars": Bars,
    "curve": Curve,
    "panels": Panels,
    "timeline": Timeline,
}


@functools.cache
def run() -> dict[str, Any]:
    """Return the recorded run in the form of `record.record`, without the data that `shortened` leaves out."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def machine() -> str:
    """Return a name for the recorded run: the card, the CUDA version and the date."""
    recorded = run()
    return f"{recorded['device']['name']}, CUDA {recorded['driver']['cuda']}, {recorded['date'][:10]}"


def stop(name: str) -> dict[str, Any] | None:
    """Return the record of a stop, or None if there is none."""
    return next((stop for stop in run()["stops"] if stop["name"] == name), None)


def result(recorded: Mapping[str, Any]) -> Result:
    """Return a stop's result from its record, without checks and films."""
    return Result(
        rows=_rows(recorded["rows"]),
        limit=_limit(recorded["limit"]),
        pictures=[_picture(picture) for picture in recorded["pictures"] if picture["kind"] in PICTURES],
        notes=recorded["notes"],
        tables={heading: _rows(rows) for heading, rows in recorded["tables"].items()},
    )


def _rows(recorded: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [Row(row["name"], _numbers(row["values"]), note=row["note"]) for row in recorded]


def _limit(recorded: Mapping[str, Any] | None) -> Limit | None:
    return Limit(**recorded) if recorded else None


def _picture(recorded: Mapping[str, Any]) -> Picture:
    kind = PICTURES[recorded["kind"]]
    known = {field.name: _numbers(recorded[field.name]) for field in fields(kind) if field.name in recorded}
    if "line" in known:
        known["line"] = _limit(recorded["line"])
    return kind(**known)


def _numbers(value: Any) -> Any:
    """Return a recorded value with each None replaced by the NaN that it stands for."""
    match value:
        case None:
            return math.nan
        case dict():
            return {key: _numbers(each) for key, each in value.items()}
        case list():
            return [_numbers(each) for each in value]
    return value


def shortened(recorded: dict[str, Any]) -> dict[str, Any]:
    """Return a run with only the passed stops and what pages show, its numbers rounded to `DIGITS` digits."""
    stops = [
        {key: _kept(value) for key, value in stop.items() if key not in ("checks", "message")}
        for stop in recorded["stops"]
        if stop["state"] == "passed"
    ]
    return {**recorded, "stops": stops}


def _kept(value: Any) -> Any:
    """Return a value of a record with numbers rounded to `DIGITS` digits, and without the results of checks."""
    match value:
        case float():
            return float(f"{value:.{DIGITS}g}")
        case dict():
            return {key: _kept(each) for key, each in value.items() if key != "holds"}
        case list():
            return [_kept(each) for each in value]
    return value
