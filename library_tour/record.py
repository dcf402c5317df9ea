"""A run as JSON: its results and its environment."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda

from .runner import Outcome
from .stop import Bars, Curve, Film, Limit, Panels, Picture, Points, Row, Timeline, Value

# Incremented when a reader of older records could not read newer ones.
SCHEMA = 1
# Names the commit from which a copy of a checkout was made, where git finds no commit or another one.
COMMIT_VARIABLE = "LIBRARY_TOUR_COMMIT"
DISTRIBUTIONS = ("cudart-py", "cuda-bindings", "nvidia-cuda-nvrtc", "numpy", "nvmath-python")


def environment(device: cuda.Device) -> dict[str, Any]:
    """Return what a run depends on: versions, driver, device, date, and the commit in a git checkout."""
    major, minor = cuda.driver_version()
    free, total = device.memory_info
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": {"python": platform.python_version(), **_versions()},
        "machine": platform.machine(),
        "driver": {"cuda": f"{major}.{minor}", "capabilities": sorted(cuda.capabilities())},
        "device": {
            "ordinal": device.ordinal,
            "name": device.name,
            "compute_capability": ".".join(map(str, device.compute_capability)),
            "sm_count": device.sm_count,
            "total_memory": total,
            "free_memory": free,
        },
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # the distribution is optional, or NVRTC comes from a toolkit
            continue
    return found


def commit(folder: Path = Path(__file__).parent.parent) -> str | None:
    """Return the commit of the checkout that this package runs from, with "-dirty" if it has changes.

    The variable LIBRARY_TOUR_COMMIT takes precedence.
    """
    if told := os.environ.get(COMMIT_VARIABLE):
        return told
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or no commit yet
        return None
    return done.stdout.strip()


def record(environment: Mapping[str, Any], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return a whole run as JSON values; the caller reads `environment` before the run, while the device responds."""
    return {"schema": SCHEMA, **environment, "stops": [_stop(outcome) for outcome in outcomes]}


def _stop(outcome: Outcome) -> dict[str, Any]:
    result = outcome.result
    return {
        "name": outcome.name,
        "title": outcome.title,
        "size": outcome.size,
        "state": outcome.state,
        "message": outcome.message,
        "seconds": round(outcome.seconds, 3),
        "limit": _limit(result.limit),
        "rows": _rows(result.rows),
        "tables": {heading: _rows(rows) for heading, rows in result.tables.items()},
        "checks": [{"fact": check.fact, "holds": check.holds, "detail": check.detail} for check in result.all_checks],
        "pictures": [_picture(picture) for picture in result.pictures],
        "notes": list(result.notes),
    }


def _limit(limit: Limit | None) -> dict[str, Any] | None:
    return None if limit is None else {"name": limit.name, "unit": limit.unit, "rate": limit.rate}


def _rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "values": {column: _finite(value) for column, value in row.values.items()},
            "holds": None if row.check is None else row.check.holds,
            "note": row.note,
        }
        for row in rows
    ]


def _picture(picture: Picture) -> dict[str, Any]:
    """Return the data of a picture; of a film only the number of frames, because the frames are large."""
    found: dict[str, Any] = {"kind": type(picture).__name__.lower(), "name": picture.name}
    match picture:
        case Curve():
            axes = {"x": picture.x, "y": picture.y, "logarithmic": picture.logarithmic}
            return found | axes | {"lines": _points(picture.lines), "line": _limit(picture.line)}
        case Bars():
            bars = {name: {case: _finite(value) for case, value in bars.items()} for name, bars in picture.bars.items()}
            return found | {"unit": picture.unit, "bars": bars, "line": _limit(picture.line)}
        case Timeline():
            return found | {"unit": picture.unit, "lanes": _points(picture.lanes)}
        case Panels():
            return found | {"about": picture.about, "panels": picture.panels}
        case Film():
            return found | {"frames": len(picture.frames)}


def _points(lines: Mapping[str, Points]) -> dict[str, list[list[Value | None]]]:
    """Return the points of each line; None stands for a NaN, which leaves a gap in a line."""
    return {label: [[_finite(number) for number in point] for point in points] for label, points in lines.items()}


def _finite(value: Value) -> Value | None:
    """Return a value, or None for a NaN or an infinity, which JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def text(run: dict[str, Any]) -> str:
    """Return a run as indented JSON with a final newline; raise ValueError for a NaN."""
    return json.dumps(run, indent=2, allow_nan=False, default=_plain) + "\n"


def write(path: Path, run: dict[str, Any]) -> None:
    """Write a run's JSON to a file."""
    path.write_text(text(run), encoding="utf-8")


def _plain(value: object) -> Any:
    """Return a NumPy scalar as a Python number or bool, the only ones that JSON supports; raise TypeError otherwise."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a record cannot hold a {type(value).__name__}: {value!r}")
