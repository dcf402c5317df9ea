"""Compare what compute-sanitizer finds of the planted mistakes on a GPU with what the simulator finds.

    python -m tests.planted record OUT.json [LOGS]      on a GPU, with compute-sanitizer in PATH
    python -m tests.planted table RECORDED.json         anywhere: the table, in Markdown

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


def launch(name: str, end: bool) -> None:
    """Run one planted mistake in this process, and say what error it ended with."""
    case = next(case for case in CASES if case.name == name)
    try:
        with cuda.Device(0) as device:
            case.run(compiled("races.cu" if case.file == "cases.py" else case.file))
            device.synchronize()
    except cuda.CudaError as error:
        print(f"{type(error).__name__}: {error}")
    if end:
        # What is leaked is looked for when the context ends.
        from cuda.bindings import driver

        driver.cuDevicePrimaryCtxReset(0)


def output(arguments: Sequence[str], under: Sequence[str] = (), **environment: str) -> str:
    """Run this command in a process of its own; give what it and the tool above it print."""
    command = [*under, sys.executable, "-m", "tests.planted", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS, env={**os.environ, **environment}
        )
    except subprocess.TimeoutExpired:
        return f"no end after {_SECONDS} s"
    return done.stdout + done.stderr


def sanitized(case: Case, logs: Path | None) -> dict[str, Any]:
    """Run a case under its tool; give what was found first, and the lines of the kernels' files that were named."""
    leaks = case.file == "cases.py"
    options = ("--leak-check", "full") if leaks else _OPTIONS.get(case.tool, ())
    tool = ("compute-sanitizer", "--tool", case.tool, "--print-limit", "20", *options)
    text = output(["launch", case.name, *(["--end"] if leaks else [])], tool, CUDART_PY_DRIVER="cuda")
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
        (logs / f"{case.name}.txt").write_text(text, encoding="utf-8")
    said = _FINDING.findall(text)
    places = re.findall(rf"{re.escape(case.file)}:(\d+)", text)
    return {"tool": case.tool, "says": said[0].strip() if said else "", "lines": sorted({int(n) for n in places})}


def record(path: Path, logs: Path | None) -> None:
    """Run all cases that have a tool, a few at a time, and write what was found."""
    for file in sorted({case.file for case in CASES if case.file.endswith(".cu")}):
        compiled(file)
    wanted = [case for case in CASES if case.tool]
    with concurrent.futures.ThreadPoolExecutor(_PROCESSES) as pool:
        found = list(pool.map(lambda case: sanitized(case, logs), wanted))
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=False).stdout
    result = {
        "card": cuda.Device(0).name,
        "driver": ".".join(map(str, cuda.driver_version())),
        "compute-sanitizer": (re.findall(r"ersion (\S+)", version) or [""])[0],
        "cases": {case.name: one for case, one in zip(wanted, found, strict=True)},
    }
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for case in wanted:
        print(f"{case.name}: {result['cases'][case.name]}")


def simulated(case: Case) -> set[int]:
    """Run a case on the simulator; give the lines at which it found a mistake of the case's kind."""
    environment = {"CUDART_PY_DRIVER": "simulator", "CUDART_PY_SIMULATOR_STEPS": "20000"}
    text = output(["launch", case.name], CUDART_PY_SIMULATOR_LEAKS="1", **environment)
    if case.file == "cases.py":
        return {int(n) for n in re.findall(rf"leaked: .*allocated at \S*{re.escape(case.file)}:(\d+)", text)}
    place = rf"kernel {case.kernel}(?: \(in \w+\))? at \S*{re.escape(case.file)}:(\d+)"
    found = re.findall(rf"{place}: (?:.* )?{case.finding}", text)
    return {int(number) for number in found}


def table(recorded: Mapping[str, Any]) -> str:
    """Give the table: for each kind of mistake how many are planted, and how many each finds at their lines."""
    rows: list[tuple[tables.Cell, ...]] = []
    kinds = {case.kind: [other for other in CASES if other.kind == case.kind] for case in CASES}
    for kind, cases in kinds.items():
        there = [case for case in cases if (lines := simulated(case)) and lines <= case.lines]
        rows.append((kind, len(cases), len(there), _verdict(cases, recorded["cases"])))
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
    if not seen["says"] or case.file == "cases.py":
        return bool(seen["says"])
    return bool(set(seen["lines"]) & (case.lines | marked(case.file, "READ").get(case.name, set())))


def main() -> int:
    """Record, write the table, or launch one case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run compute-sanitizer")
    recording.add_argument("out", type=Path)
    recording.add_argument("logs", type=Path, nargs="?", help="a folder for all that it prints")
    commands.add_parser("table", help="print the table").add_argument("recorded", type=Path)
    launching = commands.add_parser("launch", help="run one mistake in this process")
    launching.add_argument("name", choices=[case.name for case in CASES])
    launching.add_argument("--end", action="store_true", help="end the context afterwards")
    options = parser.parse_args()
    if options.command == "launch":
        launch(options.name, options.end)
    elif options.command == "record":
        record(options.out, options.logs)
    else:
        print(table(json.loads(options.recorded.read_text(encoding="utf-8"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
