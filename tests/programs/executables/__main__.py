"""Run unmodified programs of public suites with `cudart-py run`, and print a table.

    python -m tests.programs.executables --built DIR --cuda-samples DIR --hecbench DIR --json FILE
    python -m tests.programs.executables --triton DIR --numba test_sync --numba test_atomics --json FILE
    python -m tests.programs.executables.page FILE      # renew the tables of docs/public-programs.md

nvcc builds the programs in C++. The programs in Python need Triton with PyTorch, and numba-cuda with its tests'
requirements. A program is right if its exit status is 0 and none of its lines says that it failed. Its own checks
compare its results with a reference on the host. `docs/public-programs.md` has the suites' versions and the results.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import sys
from pathlib import Path

from .python_suites import numba, triton
from .running import result_of
from .suites import Program, cuda_samples, hecbench


def main() -> int:
    """Build and run the programs, print the table, and return 1 if one is not right."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.programs.executables", description=summary)
    parser.add_argument("--cuda-samples", type=Path, metavar="DIR", help="a checkout of cuda-samples")
    parser.add_argument("--hecbench", type=Path, metavar="DIR", help="a checkout of HeCBench")
    parser.add_argument("--triton", type=Path, metavar="DIR", help="a checkout of Triton")
    parser.add_argument("--numba", action="append", default=[], metavar="MODULE", help="of numba-cuda's tests")
    parser.add_argument("--built", type=Path, default=Path("built"), metavar="DIR", help="where programs are built")
    parser.add_argument("--count", type=int, default=150, help="how many of HeCBench's programs are drawn")
    parser.add_argument("--seed", type=int, default=2026, help="of that draw")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a program is stopped")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results and the outputs there too")
    options = parser.parse_args()
    programs: list[Program] = []
    if options.cuda_samples:
        programs += cuda_samples(options.cuda_samples.resolve(), options.built.resolve())
    if options.hecbench:
        programs += hecbench(options.hecbench.resolve(), options.built.resolve(), options.count, options.seed)
    if options.triton:
        programs += triton(options.triton.resolve())
    programs += numba(options.numba)
    programs = [program for program in programs if program.name in (options.only or [program.name])]
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for program, result in zip(
            programs, pool.map(lambda one: result_of(one, options.limit), programs), strict=True
        ):
            print(f"| {program.suite} | {program.name} | {result.verdict} | {result.seconds:.1f} s |", flush=True)
            described = {"suite": program.suite, "name": program.name, "command": program.command}
            results.append({**described, **result._asdict()})
    counted = [result for result in results if not result["verdict"].startswith("left out")]
    right = sum(result["verdict"].startswith("right") for result in counted)
    print(f"\n{right} of {len(counted)} are right within {options.limit:g} s")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return int(right < len(counted))


if __name__ == "__main__":
    sys.exit(main())
