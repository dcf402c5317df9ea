#!/usr/bin/env python3
"""Check on a GPU that `cudart_py.benchmark` measures right, in one command.

    scripts/measure_check.py [--json FILE] [--ncu PATH] [--only ncu,processes,nvbench,ceilings,host]
    scripts/measure_check.py --recorded FILE --markdown docs/measuring.md

Compares with Nsight Compute's durations, with other processes, with nvbench (the package cuda-bench, where it
is installed), the ceilings with what the card is known to reach, and the host's cost of a launch with that of
launches whose kernels run longer. Prints the tables of docs/measuring.md. The exit status is 1 when a bar is
missed, 2 when none is but something could not be checked.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bars
from bars import Verdict
from measure_cases import CASES, GRAPH_CALLS, HOST_BATCHES, LAUNCHES

import cudart_py as cuda

ROOT = Path(__file__).resolve().parent.parent
# The script beside this one: the kernels, and what is done with them in a process that has the device for itself.
CHILD = Path(__file__).resolve().with_name("measure_cases.py")
STEPS = ("ncu", "processes", "nvbench", "ceilings", "host")
PROCESSES = 5
# Of the launches that Nsight Compute sees, the first ones only warm up.
WARM_UP = 5
CEILING_BARS = {"copy": 4.2e12, "read": 4.35e12, "write": None, "fp32": None, "fp64": None}


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    check: str
    ours: str
    theirs: str
    difference: str
    bar: str
    verdict: Verdict


class ChildError(Exception):
    """A child process failed; the text says why."""


def run(command: list[str]) -> str:
    """Run a command with this checkout's package and return its standard output."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": path}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ChildError(str(error)) from error
    if done.returncode:
        raise ChildError((done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}")[-600:])
    return done.stdout


def child(*arguments: str) -> Any:
    """Run a part of the checks in a process of its own and return what it prints."""
    output = run([sys.executable, str(CHILD), *arguments])
    # What a library wrote to its own buffer may come after it.
    return json.loads([line for line in output.splitlines() if line.startswith("{")][-1])


def find_ncu(given: str | None) -> str | None:
    """Return the path of Nsight Compute, or None."""
    places = ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
    found = sorted((path for place in places for path in glob.glob(place)), reverse=True)
    return given or shutil.which("ncu") or next(iter(found), None)


def ncu_seconds(ncu: str, name: str) -> float:
    """Return the median duration of a case's kernel by Nsight Compute."""
    kernel = CASES[name].kernel
    output = run([
        ncu, "--clock-control", "none", "--cache-control", "none", "--metrics", "gpu__time_duration.sum",
        "--csv", "--print-units", "base", "--kernel-name", kernel,
        sys.executable, str(CHILD), "launch", name,
    ])  # fmt: skip  # rows of a table
    durations = read_durations(output)
    if len(durations) != LAUNCHES:
        raise ChildError(f"{len(durations)} durations of {LAUNCHES}: {output.strip()[-600:]}")
    return statistics.median(durations[WARM_UP:])


def read_durations(output: str) -> list[float]:
    """Read the seconds from Nsight Compute's CSV, among whatever else it prints."""
    lines = output.splitlines()
    header = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    units = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0}
    return [
        float(row["Metric Value"].replace(",", "")) * units[row["Metric Unit"]]
        for row in csv.DictReader(line for line in lines[header:] if line.startswith('"'))
        if row["Metric Name"] == "gpu__time_duration.sum"
    ]


def compare(check: str, ours: float, theirs: float, bar: float | None, note: str = "") -> Line:
    """Compare two times."""
    difference = ours / theirs - 1
    return Line(
        check + note, f"{1e6 * ours:,.3f} us", f"{1e6 * theirs:,.3f} us", f"{100 * difference:+.2f} %",
        "" if bar is None else f"{100 * bar:g} %",
        Verdict.NO_BAR if bar is None else Verdict.of(abs(difference) <= bar),
    )  # fmt: skip  # grouped by meaning


def not_checked(check: str, reason: object) -> Line:
    """Return the line of a check that could not be made."""
    return Line(check, "", " ".join(str(reason).split())[-300:], "", "", Verdict.NOT_JUDGED)


def check_ncu(measured: dict[str, Any], ncu: str | None) -> Iterator[Line]:
    """Compare with Nsight Compute.

    Of a short kernel the batch in many streams is judged. One stream, which may be a slow one, and a graph, which
    leaves out how a launch begins, are shown beside it.
    """
    if ncu is None:
        yield not_checked("ncu", "not found: give --ncu")
        return
    for name, case in CASES.items():
        try:
            theirs = ncu_seconds(ncu, name)
        except ChildError as error:
            yield not_checked(f"ncu, {name}", error)
            continue
        for label in (name, f"{name}, streams", f"{name}, graph"):
            if label in measured:
                yield compare(f"ncu, {label}", measured[label]["median"], theirs, case.bar if judged(label) else None)


def judged(label: str) -> bool:
    """Whether a way of measuring a case is the one that its bars are for: many streams for a short kernel."""
    name, _, way = label.partition(", ")
    return CASES[name].bar is not None and way == ("streams" if CASES[name].short else "")


def check_processes(processes: list[dict[str, Any]]) -> Iterator[Line]:
    """Compare the medians of several processes, and within the first one the same at its beginning and its end.

    Of a short kernel the graph is judged as well as the batch in many streams; one stream is shown. In one process the
    graph is only shown: what was measured before it may change its time, as docs/measuring.md says.
    """
    for label in processes[0]:
        if not label.endswith(", again"):
            medians = [found[label]["median"] for found in processes]
            name, _, way = label.partition(", ")
            bar = 0.01 if judged(label) or (way == "graph" and CASES[name].bar is not None) else None
            yield compare(f"{len(processes)} processes, {label}: slowest and fastest", max(medians), min(medians), bar)
    for label, found in processes[0].items():
        if label.endswith(", again"):
            first = label.removesuffix(", again")
            bar = 0.01 if judged(first) else None
            yield compare(f"one process, {label}", found["median"], processes[0][first]["median"], bar)


def check_nvbench() -> Iterator[Line]:
    """Compare with nvbench."""
    what = {"cold": "cold, events' cost included", "graph": f"graph of {GRAPH_CALLS} launches"}
    for name, case in CASES.items():
        for kind in ("cold", "graph") if case.short else ("cold",):
            check = f"nvbench, {name}: {what[kind]}"
            try:
                found = child("nvbench", name, kind)
            except ChildError as error:
                yield not_checked(check, error)
                continue
            yield compare(check, found["ours"], found["theirs"], None if case.bar is None else 0.02)


def check_host() -> Iterator[Line]:
    """Compare the host's cost of launches: the device's time, from microseconds to a millisecond, is not in it."""
    try:
        found = child("host")
    except ChildError as error:
        yield not_checked("host", error)
        return
    launches, products = found["launches"], found["products"]
    for name, seconds in launches.items():
        if name != "nothing":
            yield compare(f"host's cost of a launch, {name}, and of nothing", seconds, launches["nothing"], None)
    for batch, seconds in list(products.items())[1:]:
        first = str(HOST_BATCHES[0])
        yield compare(f"host's cost of a gemm of 128^3, batches of {batch} and {first}", seconds, products[first], None)


def check_ceilings() -> Iterator[Line]:
    """Compare the ceilings with what is known of the H200."""
    try:
        found = child("ceilings")
    except ChildError as error:
        yield not_checked("ceilings", error)
        return
    for kind, bar in CEILING_BARS.items():
        known = bar if "H200" in found["device"] else None
        text = "" if known is None else f"{known:.3g}"
        verdict = Verdict.NO_BAR if known is None else Verdict.of(found[kind] >= known)
        yield Line(f"ceiling {kind}", f"{found[kind]:.4g} /s", text, "", "" if known is None else "at least", verdict)


def check(steps: list[str], ncu: str | None) -> tuple[list[Line], dict[str, Any]]:
    """Make the checks."""
    count = PROCESSES if "processes" in steps else 1 if "ncu" in steps else 0
    processes = [child("measure") for _ in range(count)]
    lines: list[Line] = []
    for step in steps:
        print(f"... {step}", file=sys.stderr)
        if step == "ncu":
            lines += check_ncu(processes[0], ncu)
        elif step == "processes":
            lines += check_processes(processes)
        elif step == "nvbench":
            lines += check_nvbench()
        elif step == "host":
            lines += check_host()
        else:
            lines += check_ceilings()
    return lines, processes[0] if processes else {}


def environment(ncu: str | None) -> str:
    """Name the card, the driver, the versions of what is compared, and the day."""
    where = bars.conditions(cuda.Device(0), "cuda-bench")
    if ncu is not None:
        with contextlib.suppress(ChildError):  # that it does not run is said where it is compared
            where += ", Nsight Compute " + run([ncu, "--version"]).strip().splitlines()[-1].removeprefix("Version ")
    return where


def report(found: dict[str, Any]) -> str:
    """Write how the cases were measured and what they were compared with, as tables of Markdown."""
    parts = [found["where"]]
    if found["measured"]:
        rows = [
            (
                name, f"{1e6 * one['median']:,.3f} us", f"{100 * one['spread']:.2f} %",
                f"{one['samples']}{' streams' if one['streams'] else ''} of {one['batch']}"
                f"{' in a graph' if one['captured'] else ''}"
                f"{'' if one['blocked'] else ', NOT BLOCKED'}",
                one["cache"], f"{one['clock']:.0f}" if one["clock"] else "?", f"{1e6 * one['overhead']:.2f} us",
            )
            for name, one in found["measured"].items()
        ]  # fmt: skip  # rows of a table
        parts.append(bars.table(("kernel", "median", "spread", "samples", "L2", "MHz", "events' cost"), rows))
    compared = [
        tuple(line[name] for name in ("check", "ours", "theirs", "difference", "bar", "verdict"))
        for line in found["checks"]
    ]
    parts.append(bars.table(("compared with", "ours", "theirs", "difference", "bar", ""), compared))
    return "\n\n".join(parts)


def main() -> int:
    """Run the checks, or show those of an earlier run, and return the exit status."""
    parser = bars.parser(__doc__, page=True)
    parser.add_argument("--ncu", metavar="PATH", help="where Nsight Compute is")
    parser.add_argument("--only", default=",".join(STEPS), metavar="STEPS", help=f"some of {','.join(STEPS)}")
    options = parser.parse_args()
    if options.recorded:
        found = bars.recall(options.recorded)
    else:
        steps = options.only.split(",")
        if unknown := set(steps) - set(STEPS):
            parser.error(f"no step is named {', '.join(sorted(unknown))}")
        ncu = find_ncu(options.ncu)
        try:
            lines, measured = check(steps, ncu)
        except ChildError as error:
            print(f"measuring failed: {error}", file=sys.stderr)
            return 2
        found = {"where": environment(ncu), "measured": measured, "checks": [vars(line) for line in lines]}
    text = report(found)
    print(text)
    bars.keep(options.json, found)
    bars.write_page(options.markdown, text)
    return bars.exit_status(Verdict(line["verdict"]) for line in found["checks"])


if __name__ == "__main__":
    sys.exit(main())
