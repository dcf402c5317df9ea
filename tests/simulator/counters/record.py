"""Record Nsight Compute's counts for the patterns or the warps on a GPU, replacing the earlier record.

    python tests/simulator/counters/record.py tests/simulator/counters/data/h200.json
    python tests/simulator/counters/record.py tests/simulator/counters/data/h200_warps.json

The script runs itself under `ncu`, which must be in PATH or in /usr/local/cuda/bin. Reading the counters needs root, or
the driver's option NVreg_RestrictProfilingToAdminUsers=0.
"""

import csv
import datetime
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parent)]

import patterns  # noqa: E402  # because the path to it is set just above
import warps  # noqa: E402  # likewise

import cudart_py as cuda  # noqa: E402  # because it may be this checkout's

Counts = dict[str, dict[str, float]]


def count(subject: str, kernels: dict[str, str], metrics: set[str]) -> Counts:
    """Run the patterns or the warps under ncu, and return the value of each metric for each launch.

    `kernels` has the kernel of each launch, in order.
    """
    command = [
        *("ncu", "--clock-control", "none", "--cache-control", "none", "--target-processes", "all"),
        *("--metrics", ",".join(sorted(metrics)), "--csv", "--page", "details", "--print-units", "base"),
        *(sys.executable, str(Path(__file__).resolve()), "--launch", subject),
    ]
    path = os.environ["PATH"] + os.pathsep + "/usr/local/cuda/bin"
    environment = {**os.environ, "CUDART_PY_DRIVER": "cuda", "PATH": path}
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=540, env=environment).stdout
    by_launch: dict[int, tuple[str, dict[str, float]]] = {}
    for row in csv.DictReader(io.StringIO(text[text.rindex("\n", 0, text.index('"Metric Name"')) + 1 :])):
        kernel, value = re.split(r"[(<\s]", row["Kernel Name"])[0], row["Metric Value"].replace(",", "")
        if kernel in kernels.values() and row["Metric Name"] in metrics:
            values = by_launch.setdefault(int(row["ID"]), (kernel, {}))[1]
            values[row["Metric Name"]] = float(value) if "." in value else int(value)
    counted = [by_launch[number] for number in sorted(by_launch)]
    if [kernel for kernel, _ in counted] != list(kernels.values()):
        raise SystemExit("ncu has not counted all launches")
    return {name: values for name, (_, values) in zip(kernels, counted, strict=True)}


def main(argument: str, subject: str = "") -> None:
    """Record the metrics that are in a file again; with --launch, only run the patterns or the warps, under ncu."""
    if argument == "--launch":
        if subject == "patterns":
            patterns.launch()
        else:
            warps.run(warps.launches())
        return
    path = Path(argument)
    record = json.loads(path.read_text(encoding="utf-8"))
    subject = "patterns" if "patterns" in record else "launches"
    earlier: Counts = record[subject]
    kernels = {name: name for name in patterns.NAMES}
    if subject == "launches":
        kernels = {one.name: one.kernel for one in warps.launches()}
    counted = count(subject, kernels, {metric for values in earlier.values() for metric in values})
    record = {
        "card": cuda.Device(0).name,
        "driver": str(cuda.driver_version()),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        # A launch keeps its metrics; a new one has all of them.
        subject: {
            name: {metric: values[metric] for metric in sorted(earlier.get(name, values))}
            for name, values in counted.items()
        },
    }
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
