"""Record what Nsight Compute counts for the patterns on a GPU.

    python tests/simulator/counters/record.py tests/simulator/counters/data/h200.json

Runs itself under `ncu`, which is looked for in PATH and in /usr/local/cuda. Counters need permission: as root, or
with the driver's NVreg_RestrictProfilingToAdminUsers=0.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import patterns  # noqa: E402  # because the path to it is set just above

import cudart_py as cuda  # noqa: E402  # because it may be this checkout's


def count(ncu: str) -> str:
    """Run the patterns under ncu and return its table."""
    command = [
        *(ncu, "--clock-control", "none", "--cache-control", "none", "--target-processes", "all"),
        *("--metrics", ",".join(patterns.METRICS), "--csv", "--page", "details", "--print-units", "base"),
        *(sys.executable, str(Path(__file__).resolve()), "--launch"),
    ]
    environment = {**os.environ, "CUDART_PY_DRIVER": "cuda"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=540, env=environment)
    if done.returncode or "Metric Name" not in done.stdout:
        raise SystemExit(f"ncu ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def parse(text: str) -> dict[str, dict[str, float]]:
    """Read ncu's table: for each pattern, each metric's value."""
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(text[text.rindex("\n", 0, text.index('"Metric Name"')) + 1 :])):
        name = re.split(r"[(<\s]", row["Kernel Name"])[0]
        if name in patterns.NAMES and row["Metric Name"] in patterns.METRICS:
            value = row["Metric Value"].replace(",", "")
            found.setdefault(name, {})[row["Metric Name"]] = float(value) if "." in value else int(value)
    return found


def main(argument: str) -> None:
    """Record into a file, or with --launch only run the patterns, for ncu to watch."""
    if argument == "--launch":
        patterns.launch()
        return
    ncu = shutil.which("ncu", path=os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/local/cuda/bin")
    if ncu is None:
        raise SystemExit("ncu was found neither in PATH nor in /usr/local/cuda")
    counted = parse(count(ncu))
    version = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=True).stdout
    record = {
        "card": cuda.Device(0).name,
        "driver": str(cuda.driver_version()),
        "ncu": re.findall(r"Version (\S+)", version)[0],
        "patterns": {name: dict(sorted(counted[name].items())) for name in patterns.NAMES},
    }
    Path(argument).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
