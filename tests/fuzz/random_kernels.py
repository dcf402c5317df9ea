"""Compare random kernels on both engines with their host C++: plain, checked by the sanitizer, and with counters.

    python -m tests.fuzz.random_kernels --count 10000 --jobs 2 --seed 1 --out FOLDER
    python -m tests.fuzz.random_kernels --first 77 --count 1 --seed 1 --out FOLDER      one kernel again

A kernel depends only on the seed and its number. Kernels run in worker processes, in batches of 50. The folder gets one
file per finished batch, and the same command resumes where it was stopped. For a kernel that differs, the folder also
gets its source, whole and reduced to what the difference needs. The exit status says whether there is a difference.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import time
from pathlib import Path

import cudart_py as cuda

from . import oracle
from .kernels import Kernel, make, source

# Kernels per source; a process runs one source.
BATCH = 50
SECONDS = 1800
# Only PTX, which the simulator runs: ptxas 13.0 and 13.5 abort the process at kernel 5855 of seed 1131.
ARCHITECTURE = "compute_90"
REDUCING_SECONDS = 120


def work(first: int, end: int, seed: int, out: Path) -> None:
    """Run kernels in this process, print the differences, and write the sources of kernels that differ."""
    kernels = [make(seed, number) for number in range(first, end)]
    with cuda.Device(0):
        runs = oracle.Runs(kernels, seed, arch=ARCHITECTURE)
        for kernel in kernels:
            found = list(runs.differences(kernel))
            if not found:
                continue
            lines = [line for one in found for line in one.splitlines()]
            print(f"kernel {kernel.number} of seed {seed}:", *lines, sep="\n    ", flush=True)
            before = "".join(f"// {line}\n" for line in lines)
            path = out / f"kernel_{seed}_{kernel.number}"
            path.with_suffix(".whole.cu").write_text(before + source([kernel]))
            reduce(kernel, seed)
            path.with_suffix(".cu").write_text(before + source([kernel]))
            cuda.reset()  # a fault has ended the context
            runs = oracle.Runs(kernels, seed, arch=ARCHITECTURE)


def reduce(kernel: Kernel, seed: int) -> None:
    """Remove statements that a kernel's difference doesn't need, outer blocks first, until the time limit."""
    end = time.monotonic() + REDUCING_SECONDS
    smaller = True
    while smaller:
        smaller = False
        blocks = [kernel.body, kernel.definitions]
        for nodes in blocks:
            for place in reversed([place for place, node in enumerate(nodes) if not node.fixed]):
                if time.monotonic() > end:
                    return
                left_out = nodes.pop(place)
                if _differs(kernel, seed):
                    smaller = True
                else:
                    nodes.insert(place, left_out)
            blocks += [node.body for node in nodes if node.body is not None]


def _differs(kernel: Kernel, seed: int) -> bool:
    cuda.reset()
    try:
        return any(oracle.Runs([kernel], seed, arch=ARCHITECTURE).differences(kernel))
    except (ValueError, cuda.CudaError):  # one of the compilers refuses it
        return False


def part(first: int, end: int, seed: int, out: Path) -> str:
    """Run a batch of kernels in another process unless its file exists; return the differences, or how it died."""
    done = out / f"seed_{seed}_{first}_{end}.txt"
    if not done.exists():
        command = [sys.executable, "-m", "tests.fuzz.random_kernels", "--worker", f"--first={first}"]
        command += [f"--count={end - first}", f"--seed={seed}", f"--out={out}"]
        # Caching would be useless, because no other kernel has the same machine code.
        environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_CACHE_SIZE": "0"}
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
            died = f"kernels {first} to {end - 1}: status {ended.returncode}: {ended.stderr}" * bool(ended.returncode)
            done.write_text(ended.stdout + died)
        except subprocess.TimeoutExpired:
            done.write_text(f"kernels {first} to {end - 1} took more than {SECONDS} s\n")
    return done.read_text()


def main() -> int:
    """Run the batches that haven't run yet, and print the results of all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("random_kernels"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    end, seed, out = arguments.first + arguments.count, arguments.seed, arguments.out
    if arguments.worker:
        work(arguments.first, end, seed, out)
        return 0
    if oracle.host_compiler() is None:
        sys.exit("there is no C++ compiler: install g++ or clang++")
    out.mkdir(parents=True, exist_ok=True)
    differing = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        starts = range(arguments.first, end, BATCH)
        for text in pool.map(lambda first: part(first, min(end, first + BATCH), seed, out), starts):
            print(text, end="", flush=True)
            differing += sum(line.startswith("kernel") for line in text.splitlines())
    print(f"kernels {arguments.first} to {end - 1} of seed {seed}: {differing or 'none'} differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
