"""Compare random kernels with what the host's C++ compiler makes of them, by both engines, plain, checked and counted.

    python -m tests.fuzz.random_kernels --count 10000 --jobs 2 --seed 1 --out FOLDER
    python -m tests.fuzz.random_kernels --first 5000 --count 2500 --jobs 16 --seed 1 --out FOLDER  another machine
    python -m tests.fuzz.random_kernels --first 77 --count 1 --seed 1 --out FOLDER                 one kernel again

A kernel is drawn from the seed and its number alone. Kernels run in processes of their own, some at a time; the folder
notes which are done, and the same command goes on where it was stopped. Of a kernel that differs, the folder gets the
source, with all that the difference doesn't need left out. The exit status says whether there is a difference.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cudart_py as cuda
from cudart_py.compilation.programs import library_version

from . import oracle, reduction
from .kernels import Features, Kernel, make, source

# Kernels of one source, and of one process.
BATCH, PER_PROCESS = 25, 50
SECONDS = 1800
REDUCING_SECONDS = 120


def work(arguments: argparse.Namespace, features: Features) -> None:
    """Run kernels in this process, and print one line of JSON for each difference."""
    end = arguments.first + arguments.count
    with cuda.Device(0), tempfile.TemporaryDirectory() as folder:
        for first in range(arguments.first, end, BATCH):
            kernels = [make(arguments.seed, number, features) for number in range(first, min(first + BATCH, end))]
            by_kernel: dict[int, list[oracle.Difference]] = {}
            for found in oracle.compare(kernels, arguments.seed, Path(folder)):
                by_kernel.setdefault(found.number, []).append(found)
            for kernel in kernels:
                if texts := by_kernel.get(kernel.number):
                    print(json.dumps({"number": kernel.number, "texts": list(map(str, texts))}), flush=True)
                    keep(kernel, texts, arguments, Path(folder))


def keep(kernel: Kernel, found: list[oracle.Difference], arguments: argparse.Namespace, folder: Path) -> None:
    """Write the source of a kernel that differs, made as small as it gets in the time."""
    engines = sorted({"numpy", found[0].engine})
    modes = [found[0].mode]

    def fails(smaller: Kernel) -> bool:
        try:
            again = oracle.compare([smaller], arguments.seed, folder, engines, modes)
        except (ValueError, cuda.CudaError):  # it doesn't compile
            return False
        return any(one.engine == found[0].engine for one in again)

    before = "".join(f"// {line}\n" for one in found for line in str(one).splitlines())
    path = arguments.out / f"kernel_{arguments.seed}_{kernel.number}"
    path.with_suffix(".whole.cu").write_text(before + source([kernel]))
    reduction.reduce(kernel, fails, REDUCING_SECONDS)
    path.with_suffix(".cu").write_text(before + source([kernel]))


def part(first: int, count: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run kernels in another process, and return what it found; a process that dies is a difference too."""
    command = [sys.executable, "-m", "tests.fuzz.random_kernels", "--worker", f"--first={first}", f"--count={count}"]
    command += [
        f"--seed={arguments.seed}",
        f"--out={arguments.out}",
        *(f"--without={name}" for name in arguments.without),
    ]
    # Machine code that only these kernels have needn't be kept.
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_CACHE_SIZE": "0"}
    differences = []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
        differences += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode:
            differences.append({"number": first, "texts": [f"exit status {done.returncode}: {done.stderr[-2000:]}"]})
    except subprocess.TimeoutExpired:
        differences.append({"number": first, "texts": [f"{count} kernels took more than {SECONDS} s"]})
    return {"seed": arguments.seed, "first": first, "count": count, "differences": differences}


def versions() -> str:
    """Return what the result depends on."""
    import llvmlite
    import llvmlite.binding as llvm
    import numpy

    compiler = _output(str(oracle.host_compiler()), "--version").splitlines()[0]
    commit = _output("git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD").strip() or "unknown"
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    return (
        f"commit {commit}, NVRTC {'.'.join(map(str, library_version()))}, {compiler}, "
        f"Python {platform.python_version()}, NumPy {numpy.__version__}, llvmlite {llvmlite.__version__}, "
        f"LLVM {llvm_version} for {llvm.get_host_cpu_name()}"
    )


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


def main() -> int:
    """Run the kernels of a seed that haven't run, and print what all of them came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("random_kernels"))
    parser.add_argument("--without", action="append", default=[], choices=["padding", "recursion", "steps"])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.worker:
        work(arguments, Features(**dict.fromkeys(arguments.without, False)))
        return 0
    if oracle.host_compiler() is None:
        sys.exit("there is no C++ compiler: install g++ or clang++")
    notes = arguments.out / "parts.jsonl"
    parts = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
    parts = [one for one in parts if one["seed"] == arguments.seed]
    done = {number for one in parts for number in range(one["first"], one["first"] + one["count"])}
    end = arguments.first + arguments.count
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, notes.open("a") as file:
        waiting = []
        for first in range(arguments.first, end, PER_PROCESS):
            count = min(PER_PROCESS, end - first)
            if not done.issuperset(range(first, first + count)):
                waiting.append(pool.submit(part, first, count, arguments))
        for future in concurrent.futures.as_completed(waiting):
            one = future.result()
            parts.append(one)
            file.write(json.dumps(one) + "\n")
            file.flush()
            for found in one["differences"]:
                print(f"kernel {found['number']} of seed {arguments.seed}:", *found["texts"], sep="\n    ", flush=True)
    wanted = range(arguments.first, end)
    differing = sorted({f["number"] for one in parts for f in one["differences"] if f["number"] in wanted})
    print(f"kernels {arguments.first} to {end - 1} of seed {arguments.seed}: {len(differing)} differ {differing or ''}")
    print(f"{versions()}; {time.monotonic() - started:.0f} s with {arguments.jobs} jobs")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
