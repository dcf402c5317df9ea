"""Compare what compute-sanitizer finds of the planted mistakes on a GPU with what the simulator finds.

    python -m tests.planted record OUT.json      on a GPU, with compute-sanitizer in PATH
    python -m tests.planted table OUT.json       anywhere: the table, in Markdown

The mistakes are those of `cases.py`. Each runs in a process of its own with a time limit, under the one tool
that looks for its kind. Those that no tool looks for, and those that would hang, aren't run on the GPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cudart_py as cuda
from tests import tables

from .cases import CASES, Case, compiled, marked

_SECONDS = 100
_PROCESSES = 4
_OPTIONS = {"racecheck": ("--racecheck-report", "all")}
# What compute-sanitizer says of a mistake begins so.
_WORDS = "Invalid|Misaligned|Uninitialized|Barrier|Stack|Leaked|Race|Potential|Divergent"
_FINDING = re.compile(rf"^=+ +(?:Error: |Warning: )?(?:\(Warp Level Programming\) )?((?:{_WORDS}).*)$", re.MULTILINE)


def launch(case: Case) -> None:
    """Run one planted mistake in this process."""
    with cuda.Device(0) as device:
        case.run(compiled("races.cu" if case.leaks else case.file))
        device.synchronize()
    if case.leaks:
        # What is leaked is looked for when the context ends.
        from cuda.bindings import driver

        driver.cuDevicePrimaryCtxReset(0)


def sanitized(case: Case) -> dict[str, Any]:
    """Run a case under its tool; give what was found first, and the lines of the kernels' files that were named."""
    options = ("--leak-check", "full") if case.leaks else _OPTIONS.get(case.tool, ())
    command = ("compute-sanitizer", "--tool", case.tool, "--print-limit", "20", *options)
    command += (sys.executable, "-m", "tests.planted", "launch", case.name)
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
    """Run all cases that have a tool, a few at a time, and write what was found."""
    for file in sorted({case.file for case in CASES if not case.leaks}):
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


def table(recorded: Mapping[str, Any]) -> str:
    """Give the table: for each kind of mistake how many are planted, and how many each finds at their lines.

    That the simulator finds all is what `tests/simulator/checks/test_planted.py` shows.
    """
    kinds = {case.kind: [other for other in CASES if other.kind == case.kind] for case in CASES}
    rows = [(kind, len(cases), len(cases), _verdict(cases, recorded)) for kind, cases in kinds.items()]
    return tables.table(("mistake", "planted", "simulator", "compute-sanitizer"), rows)


def _verdict(cases: Sequence[Case], recorded: Mapping[str, Any]) -> str:
    """Say what compute-sanitizer found of a kind's cases, and which it didn't."""
    said = []
    run = [case for case in cases if case.tool and case.name in recorded]
    if run:
        missed = [case.name for case in run if not found(case, recorded[case.name])]
        names = f", not {', '.join(f'`{name}`' for name in missed)}" if missed else ""
        said.append(f"{run[0].tool}: {len(run) - len(missed)} of {len(run)}{names}")
    others = [case for case in cases if not case.tool]
    if others:
        hangs = others[0].status == "LAUNCH_TIMEOUT" or others[0].kind == "member mask"
        names = f"`{others[0].name}`: " if run else ""
        said.append(f"{names}not run, it would hang" if hangs else "no tool looks for it")
    return "; ".join(said)


def found(case: Case, seen: Mapping[str, Any]) -> bool:
    """Tell whether compute-sanitizer found a mistake at one of its lines; of what is leaked it doesn't know them."""
    lines = case.lines | marked(case.file, "READ").get(case.name, set())
    return bool(seen["says"]) and (case.leaks or not lines.isdisjoint(seen["lines"]))


def main() -> None:
    """Record, write the table, or launch one case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("record", "table", "launch"))
    parser.add_argument("file", help="the file that is written or read")
    options = parser.parse_args()
    if options.command == "launch":
        launch(next(case for case in CASES if case.name == options.file))
    elif options.command == "record":
        record(Path(options.file))
    else:
        print(table(json.loads(Path(options.file).read_text(encoding="utf-8"))["cases"]))


if __name__ == "__main__":
    main()
