"""Measure what memory a launch on the simulator takes against its number of blocks: it must not grow with them.

    python scripts/launch_memory.py [--blocks 1 100 500 5000 30000]

Each number is the most memory that a process of its own had (its peak resident set) in one launch of blocks of 256
threads with 48 KB of shared memory each, in MiB. Automatic garbage collection is off, so that what a block leaves
behind in reference cycles would show. `checks`: as usual; `no checks`: under `cuda.checks("off")`; `ordered`: as
usual, with a kernel whose threads all publish and look by a fence and an atomic, which the check for races remembers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

SOURCE = r"""
extern "C" __global__ void checks(int *out, unsigned *done) {
    __shared__ int tile[12288];
    for (int i = threadIdx.x; i < 12288; i += blockDim.x) tile[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = tile[blockIdx.x % 12288];
}
extern "C" __global__ void ordered(int *out, unsigned *done) {
    __shared__ int tile[12288];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = tile[blockIdx.x % 256];
    __threadfence();
    atomicAdd(done, 1u);
}
"""
MEASURED = f"""
import gc, resource, sys
gc.disable()
import numpy as np
import cudart_py as cuda
kind, blocks = sys.argv[1], int(sys.argv[2])
mode = cuda.checks("off" if kind == "no checks" else "warn")
kind = kind.removeprefix("no ")
mode.__enter__()
out, done = cuda.zeros(blocks, np.int32), cuda.zeros(1, np.uint32)
cuda.compile({SOURCE!r})[kind][blocks, 256](out, done)
cuda.Device(0).synchronize()
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert (out.to_host() == np.arange(blocks) % (256 if kind == "ordered" else 12288)).all()
print(most / 1024)
"""
KINDS = ("checks", "no checks", "ordered")


def peak(kind: str, blocks: int) -> float:
    """Return the peak resident set of a process that launches so many blocks, in MiB."""
    command = [sys.executable, "-c", MEASURED, kind, str(blocks)]
    environment = os.environ | {"CUDART_PY_DRIVER": "simulator"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{kind}, {blocks} blocks: {done.stderr.strip()}")
    return float(done.stdout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 100, 500, 5_000, 30_000])
    chosen = parser.parse_args(arguments)
    print("| blocks |", " | ".join(f"{kind}, MiB" for kind in KINDS), "|")
    print("|---:" * (1 + len(KINDS)) + "|")
    for blocks in chosen.blocks:
        print(f"| {blocks:,} |", " | ".join(f"{peak(kind, blocks):,.0f}" for kind in KINDS), "|", flush=True)


if __name__ == "__main__":
    main()
