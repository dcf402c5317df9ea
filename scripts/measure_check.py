#!/usr/bin/env python3
"""Check on a GPU that `cudart_py.benchmark` measures right, in one command.

    scripts/measure_check.py [--json FILE] [--ncu PATH] [--only ncu,processes,nvbench,ceilings]

Compares with Nsight Compute's durations, with other processes, with nvbench (the package cuda-bench, where it
is installed), and the ceilings with what the card is known to reach. Prints a table. The exit status is 1 when
a bar is missed, 2 when none is but something could not be checked.
"""

from __future__ import annotations

import argparse
import csv
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path(__file__).with_suffix(".cu")
STEPS = ("ncu", "processes", "nvbench", "ceilings")
PROCESSES = 5
# Launches that Nsight Compute sees, and those of them that only warm up.
LAUNCHES, WARM_UP = 25, 5


@dataclass(frozen=True)
class Case:
    """A kernel of a certain length, and how far Nsight Compute's duration may be off; None: shown, not judged."""

    kernel: str
    amount: int
    bar: float | None


CASES = {
    "saxpy 1 ms": Case("saxpy", 340_000_000, 0.01),
    "chain 1 ms": Case("chain", 450_000, 0.01),
    "saxpy 50 us": Case("saxpy", 18_000_000, 0.03),
    "chain 50 us": Case("chain", 25_000, 0.03),
    "saxpy 3 us": Case("saxpy", 400_000, 0.10),
    "chain 3 us": Case("chain", 1_000, 0.10),
    "nothing": Case("nothing", 0, None),
}
CEILING_BARS = {"copy": 4.2e12, "read": 4.35e12, "write": None, "fp32": None, "fp64": None}


@dataclass(frozen=True)
class Line:
    """A line of the table. `passed` is None for what could not be checked or has no bar."""

    check: str
    ours: str
    theirs: str
    difference: str
    bar: str
    passed: bool | None
    missing: bool = False


# -- what a child process does: it has the device for itself -----------------------------------


def make_work(case: Case, stream: Any = None) -> Callable[[], None]:
    """Return a function that launches the case's kernel."""
    import numpy as np

    import cudart_py as cuda

    kernel = cuda.compile(SOURCE)[case.kernel]
    if case.kernel == "saxpy":
        x, y = cuda.zeros(case.amount, np.float32), cuda.zeros(case.amount, np.float32)
        bound = kernel[-(-case.amount // 256), 256, 0, stream].bind(2.0, x, y, case.amount)
    elif case.kernel == "chain":
        grid = 2 * cuda.current_device().sm_count
        bound = kernel[grid, 256, 0, stream].bind(cuda.zeros(256 * grid, np.float32), 0.5, case.amount)
    else:
        bound = kernel[1, 32, 0, stream].bind()
    cuda.current_device().synchronize()
    return bound


def child_measure(name: str) -> dict[str, Any]:
    """Measure a case."""
    from cudart_py.benchmark import measure

    found = measure(make_work(CASES[name]))
    if not found.timed:
        raise SystemExit("this driver has no device times (gpu_timing): run it on a GPU")
    return {
        "median": found.median, "spread": found.spread, "samples": len(found.samples), "batch": found.batch,
        "cache": found.cache, "blocked": found.blocked, "overhead": found.overhead, "rejected": found.rejected,
        "clock": found.clock_mhz,
    }  # fmt: skip


def child_launch(name: str) -> None:
    """Launch a case for Nsight Compute, as often as it looks, with L2 in the state in which it is measured."""
    import numpy as np

    import cudart_py as cuda

    case = CASES[name]
    work = make_work(case)
    flush = cuda.zeros(2 * cuda.current_device().properties.l2_cache_size, np.uint8)
    for _ in range(LAUNCHES):
        if not name.endswith(" 3 us"):
            cuda.memset(flush, 0)
        work()
    cuda.current_device().synchronize()


def child_nvbench(name: str) -> dict[str, float]:
    """Let nvbench measure a case."""
    from cuda import bench

    import cudart_py as cuda

    def body(state: Any) -> None:
        with cuda.Device(0):
            work = make_work(CASES[name], cuda.Stream.borrow(state.get_stream().__cuda_stream__()[1]))
            state.exec(lambda launch: work())

    bench.register(body).set_name("case")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        # Its own report goes to standard output, which is ours.
        saved = os.dup(1)
        os.dup2(2, 1)
        try:
            bench.run_all_benchmarks(["measure_check", "--devices", "0", "--json", str(path)])
        finally:
            os.dup2(saved, 1)
        (state,) = json.loads(path.read_text())["benchmarks"][0]["states"]
    if not state.get("summaries"):
        raise SystemExit(f"nvbench: {state.get('skip_reason') or 'no summaries'}")
    found = {}
    for summary in state["summaries"]:
        for entry in summary.get("data", ()):
            if entry["name"] == "value" and entry["type"] in ("float64", "int64"):
                found[summary["tag"]] = float(entry["value"])
    return found


def child_ceilings() -> dict[str, Any]:
    """Measure the ceilings."""
    import cudart_py as cuda
    from cudart_py.benchmark import ceilings

    device = cuda.Device(0)
    found = ceilings(device)
    return {"device": device.name, **{kind: getattr(found, kind) for kind in CEILING_BARS}}


# -- what the parent does: it starts them and compares -----------------------------------------


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
    """Run a part of this script in a process of its own and return what it prints."""
    output = run([sys.executable, str(Path(__file__).resolve()), "--child", *arguments])
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
        sys.executable, str(Path(__file__).resolve()), "--child", "launch", name,
    ])  # fmt: skip
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
        "" if bar is None else f"{100 * bar:g} %", None if bar is None else abs(difference) <= bar,
    )  # fmt: skip


def not_checked(check: str, reason: object) -> Line:
    """Return the line of a check that could not be made."""
    return Line(check, "", " ".join(str(reason).split())[-300:], "", "", None, missing=True)


def check_ncu(measured: dict[str, Any], ncu: str | None) -> Iterator[Line]:
    """Compare with Nsight Compute."""
    if ncu is None:
        yield not_checked("ncu", "not found: give --ncu")
        return
    for name, case in CASES.items():
        try:
            theirs = ncu_seconds(ncu, name)
        except ChildError as error:
            yield not_checked(f"ncu, {name}", error)
            continue
        found = measured[name]
        note = f" (batch of {found['batch']})" if found["batch"] > 1 else ""
        yield compare(f"ncu, {name}", found["median"], theirs, case.bar, note)


def check_processes(measured: dict[str, Any]) -> Iterator[Line]:
    """Compare the medians of several processes; the first one is what is measured already."""
    for name, case in CASES.items():
        medians = [measured[name]["median"], *(child("measure", name)["median"] for _ in range(PROCESSES - 1))]
        bar = None if case.bar is None else 0.01
        yield compare(f"{PROCESSES} processes, {name}: slowest and fastest", max(medians), min(medians), bar)


def check_nvbench(measured: dict[str, Any]) -> Iterator[Line]:
    """Compare with nvbench: a batch with its batch, and a single call with its cold time, the events' cost included."""
    for name, case in CASES.items():
        try:
            theirs = child("nvbench", name)
        except ChildError as error:
            yield not_checked(f"nvbench, {name}", error)
            continue
        found = measured[name]
        cold = theirs.get("nv/cold/time/gpu/median", theirs["nv/cold/time/gpu/mean"])
        bar = None if case.bar is None else 0.02
        if found["batch"] > 1:
            yield compare(f"nvbench batch, {name}", found["median"], theirs["nv/batch/time/gpu/mean"], bar)
        else:
            yield compare(f"nvbench cold, {name}, as it times", found["median"] + found["overhead"], cold, bar)
            yield compare(f"nvbench cold, {name}, less the events' cost", found["median"], cold, None)
            if "nv/batch/time/gpu/mean" in theirs:
                yield compare(f"nvbench batch, {name}", found["median"], theirs["nv/batch/time/gpu/mean"], None)


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
        passed = None if known is None else found[kind] >= known
        yield Line(f"ceiling {kind}", f"{found[kind]:.4g} /s", text, "", "" if known is None else "at least", passed)


def check(steps: list[str], ncu: str | None) -> tuple[list[Line], dict[str, Any]]:
    """Make the checks."""
    measured = {} if steps == ["ceilings"] else {name: child("measure", name) for name in CASES}
    lines: list[Line] = []
    for step in steps:
        print(f"... {step}", file=sys.stderr)
        if step == "ncu":
            lines += check_ncu(measured, find_ncu(ncu))
        elif step == "processes":
            lines += check_processes(measured)
        elif step == "nvbench":
            lines += check_nvbench(measured)
        else:
            lines += check_ceilings()
    return lines, measured


def show(lines: list[Line], measured: dict[str, Any]) -> None:
    """Print how the cases were measured, and the table."""
    for name, found in measured.items():
        clock = f"{found['clock']:.0f} MHz" if found["clock"] else "clock unknown"
        print(
            f"{name:<14} {1e6 * found['median']:>10.3f} us ± {100 * found['spread']:.2f} %  "
            f"{found['samples']} samples of {found['batch']}, L2 {found['cache']}, {clock}, "
            f"{found['rejected']} rejected, events cost {1e6 * found['overhead']:.3f} us"
            f"{'' if found['blocked'] else ', NOT BLOCKED'}"
        )
    print()
    for line in lines:
        verdict = "not checked" if line.missing else {True: "ok", False: "MISSED", None: ""}[line.passed]
        print(
            f"{line.check:<52} {line.ours:>14} {line.theirs:>14} {line.difference:>9} {line.bar:>9}  {verdict}".rstrip()
        )


def main() -> int:
    """Run the checks, or the part of a child process."""
    children: dict[str, Callable[..., Any]] = {
        "measure": child_measure, "launch": child_launch, "nvbench": child_nvbench, "ceilings": child_ceilings,
    }  # fmt: skip
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(children[sys.argv[2]](*sys.argv[3:])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
    parser.add_argument("--ncu", metavar="PATH", help="where Nsight Compute is")
    parser.add_argument("--only", default=",".join(STEPS), metavar="STEPS", help=f"some of {','.join(STEPS)}")
    arguments = parser.parse_args()
    steps = arguments.only.split(",")
    if unknown := set(steps) - set(STEPS):
        parser.error(f"no step is named {', '.join(sorted(unknown))}")
    try:
        lines, measured = check(steps, arguments.ncu)
    except ChildError as error:
        print(f"measuring failed: {error}", file=sys.stderr)
        return 2
    show(lines, measured)
    if arguments.json:
        arguments.json.write_text(json.dumps({"measured": measured, "checks": [vars(x) for x in lines]}, indent=1))
    if any(line.passed is False for line in lines):
        return 1
    return 2 if any(line.missing for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
