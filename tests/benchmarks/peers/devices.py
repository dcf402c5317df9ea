#!/usr/bin/env python3
"""Run the stops for several devices on 1, 2, 4 and 8 of them, and tell how they scale, beside what the model predicts.

    python scripts/scale_devices.py --json scale.json --markdown scale.md --plot plots
    python scripts/scale_devices.py --recorded scale.json --markdown scale.md     # the tables and plots once more

Each count runs in one process, and in as many ranks where mpiexec and mpi4py are installed. Counts beyond the GPUs of
the machine are left out; where simulated devices serve there are as many as asked for, and the results are checked and
not timed. `all_reduce_perf` of NCCL's tests runs beside it where it is on the PATH. The exit status is 1 when a run
fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bars
import scale_tables

import cudart_py as cuda
from library_tour import plots, record, timing

Json = dict[str, Any]

COUNTS = (1, 2, 4, 8)
PROCESS, RANKS = scale_tables.MODES
# Rows and columns of a product that one device alone gets, where each gets as much work as one.
WEAK_BASE = 8192
# The sizes of a run where there are times; a stop's own where there is None. A product's picture has smaller ones, too.
TIMED: dict[str, Sequence[int | None]] = {
    "halo": [None],
    "all_reduce": [None],
    "distributed_gemm": [32768],
    "monte_carlo_ranks": [None],
}


def sizes_of(stop: str, count: int, size: int | None) -> list[int | None]:
    """Return the sizes with which a stop runs on so many devices; `size` is that of --size."""
    if size is not None or not timing.available():
        return [size]
    more: list[int | None] = []
    if stop == "distributed_gemm" and count > 1:
        more = [scale_tables.weak_size(WEAK_BASE, count)]
    return [*TIMED[stop], *more]


def on_devices(count: int, mode: str) -> dict[str, str]:
    """Return the environment of a process, or of ranks, that see so many devices."""
    environment = dict(os.environ)
    if "in_process" in cuda.capabilities():
        # Devices of a driver that runs kernels in the process: each rank has its own.
        environment["CUDART_PY_SIMULATOR_DEVICES"] = str(count if mode == PROCESS else 1)
    else:
        every = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
        visible = every if every != [""] else [str(number) for number in range(count)]
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(visible[:count])
    return environment


def mpiexec() -> str | None:
    """Return the program that starts ranks, where mpi4py is installed, too."""
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    return (beside or shutil.which("mpiexec")) if importlib.util.find_spec("mpi4py") else None


def run(stop: str, size: int | None, count: int, mode: str, limit: float) -> Json:
    """Run a stop on so many devices, in a process of its own or in ranks; return what it found, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        command = [sys.executable, "-m", "library_tour", "run", stop, "--json", str(file)]
        command += ["--size", str(size)] if size else []
        if mode == RANKS:
            command = [str(mpiexec()), "-n", str(count), *command]
        start = time.perf_counter()
        # A session of its own, so that all ranks end when the time is over.
        process = subprocess.Popen(
            command, env=on_devices(count, mode), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip  # grouped by meaning
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            said += f"\nended after {limit:g} seconds"
        seconds = time.perf_counter() - start
        # The file is empty until the first stop has ended.
        text = file.read_text() if file.exists() else ""
    found: Json = {"stop": stop, "mode": mode, "count": count, "seconds": round(seconds, 1)}
    if text:
        ran = json.loads(text)
        [outcome] = ran["stops"]
        outcome.pop("notes")
        found |= {"outcome": outcome, "device": ran["device"], "versions": ran["versions"]}
    state = "failed" if process.returncode or not text else found["outcome"]["state"]
    return found | {"state": state, "said": said.strip().splitlines()[-20:] if state == "failed" else []}


def nccl_tests(count: int, limit: float) -> list[tuple[float, float]]:
    """Return the bytes and the bus bandwidth in GB/s that NCCL's own test finds, nothing where it is not installed."""
    program = shutil.which("all_reduce_perf")
    if program is None or count < 2 or not timing.available():
        return []
    command = [program, "-b", "1K", "-e", "1G", "-f", "4", "-g", str(count)]
    try:
        done = subprocess.run(
            command, env=on_devices(count, PROCESS), capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"all_reduce_perf on {count}: ended after {limit:g} seconds", flush=True)
        return []
    return scale_tables.perf_lines(done.stdout)


def measure(options: argparse.Namespace) -> Json:
    """Run everything that is asked for, and return what the tables are made of."""
    own = len(cuda.devices()) if "in_process" not in cuda.capabilities() else max(options.counts)
    counts = [count for count in options.counts if count <= own]
    modes = [mode for mode in options.modes if mode == PROCESS or mpiexec()]
    runs = []
    for stop in options.stops:
        for count in counts:
            for mode in modes:
                if mode == RANKS and count == 1:
                    continue  # the same as one process
                for size in sizes_of(stop, count, options.size):
                    runs.append(run(stop, size, count, mode, options.limit))
                    last = runs[-1]
                    print(f"{stop} on {count}, {mode}: {last['state']} in {last['seconds']} s", flush=True)
                    for line in last["said"]:
                        print(f"    {line}", flush=True)
    packages = ("cuda-bindings", "nvmath-python", "nccl4py", "nvidia-nccl-cu13", "nvidia-cublasmp-cu13", "mpi4py")
    return {
        "conditions": bars.conditions(cuda.Device(0), *packages),
        "commit": record.commit(),
        "left_out": [count for count in options.counts if count not in counts],
        "without_ranks": RANKS in options.modes and RANKS not in modes,
        "runs": runs,
        "nccl_tests": {str(count): nccl_tests(count, options.limit) for count in counts},
    }


def main() -> int:
    """Measure or recall, write the tables and the plots, and return 1 when a run failed."""
    parser = bars.parser(__doc__, page=False)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw SVG and PNG there (needs matplotlib)")
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS, metavar="N", help="how many devices")
    parser.add_argument("--modes", nargs="+", choices=scale_tables.MODES, default=scale_tables.MODES)
    parser.add_argument("--stops", nargs="+", choices=TIMED, default=list(TIMED))
    parser.add_argument("--size", type=int, metavar="N", help="one size for all stops, instead of their own")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="the most that one run may take")
    options = parser.parse_args()
    if options.plot:
        plots.require()
    found = bars.recall(options.recorded) if options.recorded else measure(options)
    bars.keep(options.json, found)
    text = scale_tables.page(found)
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n")
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        drawn = plots.draw("scaling", "several devices", scale_tables.pictures(found), options.plot)
        for file in drawn:
            print(f"drawn: {file}")
    return int(any(each["state"] != "passed" for each in found["runs"]))


if __name__ == "__main__":
    sys.exit(main())
