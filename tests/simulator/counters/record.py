"""Record Nsight Compute's counts for the patterns on a GPU, replacing the earlier record.

    python tests/simulator/counters/record.py tests/simulator/counters/data/h200.json

The script runs itself under `ncu`, which must be in PATH or in /usr/local/cuda/bin. Reading the counters needs root, or
the driver's option NVreg_RestrictProfilingToAdminUsers=0.
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

import patterns  # noqa: E402  # because the path to it is set just above

import cudart_py as cuda  # noqa: E402  # because it may be this checkout's


def count(metrics: set[str]) -> dict[str, dict[str, float]]:
    """Run the patterns under ncu, and return the value of each metric for each pattern."""
    command = [
        *("ncu", "--clock-control", "none", "--cache-control", "none", "--target-processes", "all"),
        *("--metrics", ",".join(sorted(metrics)), "--csv", "--page", "details", "--print-units", "base"),
        *(sys.executable, str(Path(__file__).resolve()), "--launch"),
    ]
    path = os.environ["PATH"] + os.pathsep + "/usr/local/cuda/bin"
    environment = {**os.environ, "CUDART_PY_DRIVER": "cuda", "PATH": path}
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=540, env=environment).stdout
    found: dict[str, dict[str, float]] = {name: {} for name in patterns.NAMES}
    for row in csv.DictReader(io.StringIO(text[text.rindex("\n", 0, text.index('"Metric Name"')) + 1 :])):
        name, value = re.split(r"[(<\s]", row["Kernel Name"])[0], row["Metric Value"].replace(",", "")
        if name in found and row["Metric Name"] in metrics:
            found[name][row["Metric Name"]] = float(value) if "." in value else int(value)
    return found


def main(argument: str) -> None:
    """Record the metrics that are in a file again; with --launch, only run the patterns, under ncu."""
    if argument == "--launch":
        patterns.launch()
        return
    path = Path(argument)
    recorded = json.loads(path.read_text(encoding="utf-8"))["patterns"].values()
    counted = count({metric for values in recorded for metric in values})
    record = {
        "card": cuda.Device(0).name,
        "driver": str(cuda.driver_version()),
        "patterns": {name: dict(sorted(values.items())) for name, values in counted.items()},
    }
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
