"""The stops for several devices, on 1, 2, 4 and 8 devices, compared with the model.

Each number of devices runs in one process and, if mpiexec and mpi4py are installed, in as many MPI ranks. Numbers
greater than the number of GPUs are left out. There are as many simulated devices as requested, and with them the
results are checked but not timed. `all_reduce_perf` from NCCL's tests runs too if it is in PATH.
"""

import argparse
import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cudart_py as cuda
from library_tour import record, timing

from . import device_tables
from .report import Report, conditions

Json = dict[str, Any]

COUNTS = (1, 2, 4, 8)
PROCESS, RANKS = device_tables.MODES
# The size of a product on one device in weak scaling, where the work per device stays the same.
WEAK_BASE = 8192
STOPS = ("halo", "all_reduce", "distributed_gemm", "monte_carlo_ranks")


def sizes_of(stop: str, count: int, size: int | None) -> list[int | None]:
    """Return the sizes with which a stop runs on `count` devices; `size` is the option --size."""
    if size is not None or not timing.available():
        return [size]
    if stop != "distributed_gemm":
        return [None]
    return [32768, device_tables.weak_size(WEAK_BASE, count)] if count > 1 else [32768]


def on_devices(count: int, mode: str) -> dict[str, str]:
    environment = dict(os.environ)
    if "in_process" in cuda.capabilities():
        # The driver runs kernels in its own process, so each rank has its own device.
        environment["CUDART_PY_SIMULATOR_DEVICES"] = str(count if mode == PROCESS else 1)
    else:
        every = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
        visible = every if every != [""] else [str(number) for number in range(count)]
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(visible[:count])
    return environment


def mpiexec() -> str | None:
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    return (beside or shutil.which("mpiexec")) if importlib.util.find_spec("mpi4py") else None


def run(stop: str, size: int | None, count: int, mode: str, limit: float) -> Json:
    """Run a stop on `count` devices, in a separate process or in ranks; return its results and its final state."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        command = [sys.executable, "-m", "library_tour", "run", stop, "--json", str(file)]
        command += ["--size", str(size)] if size else []
        if mode == RANKS:
            command = [str(mpiexec()), "-n", str(count), *command]
        start = time.perf_counter()
        # The new session makes it possible to end all ranks when the time limit is reached.
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
        # The file is empty until the first stop has finished.
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
    """Return (bytes, bus bandwidth in GB/s) as measured by NCCL's own test; empty if that is not installed."""
    program = shutil.which("all_reduce_perf")
    if program is None or count < 2 or not timing.available():
        return []
    command = [program, "-b", "1K", "-e", "1G", "-f", "4", "-g", str(count)]
    seen = on_devices(count, PROCESS)
    try:
        done = subprocess.run(command, env=seen, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        print(f"all_reduce_perf on {count}: ended after {limit:g} seconds", flush=True)
        return []
    return device_tables.perf_lines(done.stdout)


def find(options: argparse.Namespace) -> Json:
    own = len(cuda.devices()) if "in_process" not in cuda.capabilities() else max(options.counts)
    counts = [count for count in options.counts if count <= own]
    modes = [mode for mode in options.modes if mode == PROCESS or mpiexec()]
    runs = []
    for stop, count, mode in itertools.product(options.stops, counts, modes):
        # A single rank is the same as one process.
        for size in [] if mode == RANKS and count == 1 else sizes_of(stop, count, options.size):
            runs.append(run(stop, size, count, mode, options.limit))
            print(f"{stop} on {count}, {mode}: {runs[-1]['state']} in {runs[-1]['seconds']} s", file=sys.stderr)
            print(*(f"    {line}" for line in runs[-1]["said"]), sep="\n", file=sys.stderr, flush=True)
    return {
        "left_out": [count for count in options.counts if count not in counts],
        "without_ranks": RANKS in options.modes and RANKS not in modes,
        "runs": runs,
        "nccl_tests": {str(count): nccl_tests(count, options.limit) for count in counts},
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS, metavar="N", help="how many devices")
    parser.add_argument("--modes", nargs="+", choices=device_tables.MODES, default=device_tables.MODES)
    parser.add_argument("--stops", nargs="+", choices=STOPS, default=STOPS)
    parser.add_argument("--size", type=int, metavar="N", help="one size for all stops, instead of their own")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="the most that one run may take")


def measure(options: argparse.Namespace) -> Report:
    found = find(options)
    packages = ("cuda-bindings", "nvmath-python", "nccl4py", "nvidia-nccl-cu13", "nvidia-cublasmp-cu13", "mpi4py")
    where = f"{conditions(*packages)}; commit {record.commit() or 'unknown'}"
    return Report.of("devices", where + device_tables.left_out(found), device_tables.tables(found))
