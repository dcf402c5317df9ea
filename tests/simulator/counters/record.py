"""Record what Nsight Compute counts for the patterns on a GPU.

    python tests/simulator/counters/record.py tests/simulator/counters/data/h200.json

Runs itself under `ncu`, which is looked for in PATH and in /usr/local/cuda. Counters need permission: as root, or
with the driver's NVreg_RestrictProfilingToAdminUsers=0. Metrics that this version of ncu doesn't know are left out
and named.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import patterns  # noqa: E402  # because the path to it is set just above

import cudart_py as cuda  # noqa: E402  # because it may be this checkout's

_SECONDS = 540


def find_ncu() -> str | None:
    """Return the path of ncu; NCU in the environment comes first."""
    folders = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/local/cuda/bin"
    return os.environ.get("NCU") or shutil.which("ncu", path=folders)


def known_metrics(ncu: str) -> tuple[str, ...]:
    """Return those of the patterns' metrics that this ncu has for the device, all if it doesn't say."""
    wanted = patterns.METRICS
    for options in ([], ["--chips", "gh100"]):
        done = subprocess.run(
            [ncu, "--query-metrics", *options], capture_output=True, text=True, check=False, timeout=_SECONDS
        )
        names = set(re.findall(r"^(\w+)\s", done.stdout, re.MULTILINE))
        known = tuple(metric for metric in wanted if metric.split(".")[0] in names)
        if known:
            # Quotients are listed under names of their own in some versions: the counts are what matters.
            return known
    return wanted


def count(ncu: str, metrics: Iterable[str]) -> str:
    """Run the patterns under ncu and return its table."""
    command = [
        *(ncu, "--clock-control", "none", "--cache-control", "none", "--target-processes", "all"),
        *("--metrics", ",".join(metrics), "--csv", "--page", "details", "--print-units", "base"),
        *(sys.executable, str(Path(__file__).resolve()), "--launch"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_SECONDS,
        env={**os.environ, "CUDART_PY_DRIVER": "cuda"},
    )  # fmt: skip  # grouped by meaning
    if done.returncode or "Metric Name" not in done.stdout:
        raise SystemExit(f"ncu ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def parse(text: str) -> dict[str, dict[str, float]]:
    """Read ncu's table: for each pattern, each metric's value."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if '"Metric Name"' in line)
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        name = re.split(r"[(<\s]", row.get("Kernel Name") or "")[0]
        metric, value = row.get("Metric Name") or "", (row.get("Metric Value") or "").replace(",", "")
        if name in patterns.NAMES and metric in patterns.METRICS:
            try:
                found.setdefault(name, {})[metric] = float(value) if "." in value else int(value)
            except ValueError:
                print(f"{name}: {metric} is {value!r}", file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or with --launch only run the patterns."""
    parser = argparse.ArgumentParser(description="Record what Nsight Compute counts for the patterns.")
    parser.add_argument("out", type=Path, nargs="?", help="the JSON file to write")
    parser.add_argument("--launch", action="store_true", help="run the patterns, for ncu to watch")
    options = parser.parse_args(arguments)
    if options.launch:
        patterns.launch()
        return 0
    if options.out is None:
        parser.error("the file to write is missing")
    ncu = find_ncu()
    if ncu is None:
        raise SystemExit("ncu was found neither in PATH nor in /usr/local/cuda: set NCU")
    metrics = known_metrics(ncu)
    counted = parse(count(ncu, metrics))
    version = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False).stdout
    device = cuda.Device(0)
    record = {
        "card": device.name,
        "driver": str(cuda.driver_version()),
        "ncu": (re.findall(r"Version (\S+)", version) or [""])[0],
        "patterns": {name: dict(sorted(counted[name].items())) for name in patterns.NAMES if name in counted},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    unknown = sorted(set(patterns.METRICS) - {metric for values in counted.values() for metric in values})
    missing = [name for name in patterns.NAMES if name not in counted]
    print(f"{len(counted)} of {len(patterns.NAMES)} patterns recorded in {options.out}")
    print(f"metrics that ncu doesn't have: {', '.join(unknown) or 'none'}; patterns missing: {missing or 'none'}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
