"""The times of `cudart_py.benchmark`, compared with those of Nsight Compute, nvbench and other processes.

Times are compared with Nsight Compute's durations, with other processes, and with nvbench if its package cuda-bench is
installed. The ceilings are compared with the known rates of an H200, and the host overhead of a launch with that of
launches whose kernels run longer. A GPU is required.
"""

import argparse
import csv
import glob
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cudart_py as cuda

from .measuring_cases import CASES, GRAPH_CALLS, HOST_BATCHES, LAUNCHES
from .report import Bar, Comparison, Report, Table, conditions

ROOT = Path(__file__).parents[3]
# The command that measures the kernels, in a process that has the device to itself.
CHILD = [sys.executable, "-m", "tests.benchmarks.peers.measuring_cases"]
PROCESSES = 5
# The number of launches at the start that only warm up, of those that Nsight Compute measures.
WARM_UP = 5
# The known rates of an H200, in 10^12 bytes or operations per second.
CEILING_BARS = {"copy": 4.2, "read": 4.35, "write": None, "fp32": None, "fp64": None}


class ChildError(Exception):
    """A child process failed for the given reason."""


def run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ChildError(str(error)) from error
    if done.returncode:
        raise ChildError((done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}")[-600:])
    return done.stdout


def child(*arguments: str) -> Any:
    """Run a part of the checks in a separate process, and return the JSON that it prints."""
    output = run(*CHILD, *arguments)
    # A library's buffered output may come after the line of JSON.
    return json.loads([line for line in output.splitlines() if line.startswith("{")][-1])


def find_ncu() -> str:
    places = ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
    found = sorted((path for place in places for path in glob.glob(place)), reverse=True)
    return shutil.which("ncu") or next(iter(found), "ncu")


def ncu_seconds(name: str) -> float:
    output = run(
        find_ncu(), "--clock-control", "none", "--cache-control", "none", "--metrics", "gpu__time_duration.sum",
        "--csv", "--print-units", "base", "--kernel-name", CASES[name].kernel,
        *CHILD, "launch", name,
    )  # fmt: skip  # rows of a table
    durations = read_durations(output)
    if len(durations) != LAUNCHES:
        raise ChildError(f"{len(durations)} durations of {LAUNCHES}: {output.strip()[-600:]}")
    return statistics.median(durations[WARM_UP:])


def read_durations(output: str) -> list[float]:
    """Return the durations in seconds from Nsight Compute's output, which contains CSV in nanoseconds."""
    rows = csv.DictReader(line for line in output.splitlines() if line.startswith('"'))
    return [
        1e-9 * float(row["Metric Value"].replace(",", ""))
        for row in rows
        if row["Metric Name"] == "gpu__time_duration.sum"
    ]


def compare(what: str, ours: float, rival: str, theirs: float, share: float | None = None) -> Comparison:
    return Comparison(what, "us", 1e6 * ours, rival, 1e6 * theirs, None if share is None else Bar.within(share))


def not_checked(what: str, rival: str, reason: object) -> Comparison:
    return Comparison(what, "us", rival=rival, note=" ".join(str(reason).split())[-300:])


def check_ncu(processes: list[dict[str, Any]]) -> Iterator[Comparison]:
    """Compare with Nsight Compute.

    For a short kernel, the batch in many streams is judged. Two more figures are shown: a single stream, which may
    happen to be a slow one, and a graph, whose time does not include the start of each launch.
    """
    for name, case in CASES.items():
        try:
            theirs = ncu_seconds(name)
        except ChildError as error:
            yield not_checked(name, "Nsight Compute", error)
            continue
        for label in (name, f"{name}, streams", f"{name}, graph"):
            if label in processes[0]:
                bar = case.bar if judged(label) else None
                yield compare(label, processes[0][label]["median"], "Nsight Compute", theirs, bar)


def judged(label: str) -> bool:
    """Return whether a case's bar applies to this way of measuring it: for a short kernel, only to many streams."""
    name, _, way = label.partition(", ")
    return CASES[name].bar is not None and way == ("streams" if CASES[name].short else "")


def check_processes(processes: list[dict[str, Any]]) -> Iterator[Comparison]:
    """Compare the medians of several processes, and within the first process those at its start and at its end.

    For a short kernel, the batch in many streams and the graph are judged, and a single stream is only shown. Within
    one process, the graph is only shown, because earlier measurements may change its time (docs/measuring-accuracy.md).
    """
    for label, found in processes[0].items():
        first, again, _ = label.partition(", again")
        if again:
            bar = 0.01 if judged(first) else None
            yield compare(label, found["median"], "the first time", processes[0][first]["median"], bar)
        else:
            medians = [each[label]["median"] for each in processes]
            name, _, way = label.partition(", ")
            bar = 0.01 if judged(label) or (way == "graph" and CASES[name].bar is not None) else None
            rival = f"the fastest of {len(processes)} processes"
            yield compare(f"{label}, the slowest", max(medians), rival, min(medians), bar)


def check_nvbench(_: object) -> Iterator[Comparison]:
    for name, case in CASES.items():
        whats = {"cold": "cold, event overhead included", "graph": f"graph of {GRAPH_CALLS} launches"}
        for kind, what in whats.items():
            if kind == "cold" or case.short:
                try:
                    found = child("nvbench", name, kind)
                except ChildError as error:
                    yield not_checked(f"{name}: {what}", "nvbench", error)
                    continue
                bar = None if case.bar is None else 0.02
                yield compare(f"{name}: {what}", found["ours"], "nvbench", found["theirs"], bar)


def check_host(_: object) -> Iterator[Comparison]:
    """Compare the host overhead of launches, which must not include the device's time of up to a millisecond."""
    found = child("host")
    launches, products = found["launches"], found["products"]
    nothing = launches.pop("nothing")
    for name, seconds in launches.items():
        yield compare(f"the host time of a launch, {name}", seconds, "nothing", nothing)
    first = str(HOST_BATCHES[0])
    for batch, seconds in products.items():
        if batch != first:
            text = f"the host time of a gemm of 128^3, batches of {batch}"
            yield compare(text, seconds, f"batches of {first}", products[first])


def check_ceilings(_: object) -> Iterator[Comparison]:
    found = child("ceilings")
    for kind, bar in CEILING_BARS.items():
        known = bar if "H200" in found["device"] else None
        least = None if known is None else Bar.at_least(1)
        yield Comparison(f"ceiling {kind}", "T/s", 1e-12 * found[kind], "an H200's", known, least)


CHECKS: dict[str, Callable[[list[dict[str, Any]]], Iterator[Comparison]]] = {
    "ncu": check_ncu,
    "processes": check_processes,
    "nvbench": check_nvbench,
    "ceilings": check_ceilings,
    "host": check_host,
}


def check(steps: list[str]) -> Iterator[Comparison | Table]:
    processes = [child("measure_all") for _ in range(PROCESSES if "processes" in steps else 1 if "ncu" in steps else 0)]
    for step in steps:
        print(f"... {step}", file=sys.stderr)
        try:
            yield from CHECKS[step](processes)
        except ChildError as error:
            yield not_checked(step, "", error)
    if processes:
        headings = ["kernel", "median, us", "spread, %", "samples", "calls each", "L2", "MHz", "events, us", "how"]
        yield Table("Kernels", headings, [[name, *cells(one)] for name, one in processes[0].items()])


def cells(one: dict[str, Any]) -> list[Any]:
    how = {"streams": one["streams"], "in a graph": one["captured"], "NOT BLOCKED": not one["blocked"]}
    times = (1e6 * one["median"], 100 * one["spread"], one["samples"], one["batch"])
    words = ", ".join(word for word, holds in how.items() if holds)
    return [*times, one["cache"], one["clock_mhz"], 1e6 * one["overhead"], words]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=list(CHECKS), metavar="STEP", help="these alone")


def measure(options: argparse.Namespace) -> Report:
    try:
        where = conditions("cuda-bench")
        if "ncu" in options.only:
            where += f", Nsight Compute {version()}"
        return Report.of("measuring", where, check(options.only))
    except (ChildError, cuda.CudaError) as error:
        print(f"measuring failed: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def version() -> str:
    try:
        return run(find_ncu(), "--version").strip().splitlines()[-1].removeprefix("Version ")
    except ChildError:  # the comparison itself reports the error
        return "missing"
