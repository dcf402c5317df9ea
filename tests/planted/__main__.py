"""Record which of the planted mistakes compute-sanitizer finds on a GPU, for the tests and `docs/simulator-tests.md`.

    python -m tests.planted tests/planted/data/compute_sanitizer.json      with compute-sanitizer in PATH

The mistakes are those in `cases.py`. Each runs in a separate process with a time limit, under the tool that looks for
its kind. Mistakes that no tool looks for, and those that would hang, are not run.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import cudart_py as cuda

from .cases import CASES, Case, compiled

_SECONDS = 100
_PROCESSES = 4
_OPTIONS = {"racecheck": ("--racecheck-report", "all")}
# The first words of compute-sanitizer's report of a mistake.
_WORDS = "Invalid|Misaligned|Uninitialized|Barrier|Stack|Leaked|Race|Potential|Divergent"
_FINDING = re.compile(rf"^=+ +(?:Error: |Warning: )?(?:\(Warp Level Programming\) )?((?:{_WORDS}).*)$", re.MULTILINE)


def launch(case: Case) -> None:
    """Run one planted mistake in this process."""
    with cuda.Device(0) as device:
        case.run(compiled(case.file if case.file.endswith(".cu") else "values.cu"))
        device.synchronize()
    if case.leaks:
        # compute-sanitizer looks for leaks when the context is destroyed.
        from cuda.bindings import driver

        driver.cuDevicePrimaryCtxReset(0)


def sanitized(case: Case) -> dict[str, Any]:
    """Run a case under its tool; return the first finding, and the lines of the case's file that the report names."""
    options = ("--leak-check", "full") if case.leaks else _OPTIONS.get(case.tool, ())
    command = ("compute-sanitizer", "--tool", case.tool, "--print-limit", "20", *options)
    command += (sys.executable, "-m", "tests.planted", "--launch", case.name)
    environment = {**os.environ, "CUDART_PY_DRIVER": "cuda"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, env=environment)
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        text = ""
    said = _FINDING.findall(text)
    places = re.findall(rf"{re.escape(case.file)}:(\d+)", text)
    return {"tool": case.tool, "says": said[0].strip() if said else "", "lines": sorted({int(n) for n in places})}


def record(path: Path) -> None:
    """Run all cases that have a tool, a few at a time, and write the findings to a file."""
    for file in sorted({case.file for case in CASES if case.file.endswith(".cu")}):
        compiled(file)
    wanted = [case for case in CASES if case.tool]
    with concurrent.futures.ThreadPoolExecutor(_PROCESSES) as pool:
        found = list(pool.map(sanitized, wanted))
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    result = {
        "card": cuda.Device(0).name,
        "driver": ".".join(map(str, cuda.driver_version())),
        "compute-sanitizer": (re.findall(r"ersion (\S+)", version) or [""])[0],
        "cases": {case.name: one for case, one in zip(wanted, found, strict=True)},
    }
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="a file for what is found")
    parser.add_argument("--launch", action="store_true", help="run the mistake of this name instead")
    options = parser.parse_args()
    if options.launch:
        launch(next(case for case in CASES if case.name == str(options.out)))
    else:
        record(options.out)
