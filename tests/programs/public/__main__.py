"""Run whole programs of public suites on whatever driver is there, and compare with references in NumPy.

    python -m tests.programs.public --cuda-samples DIR --hecbench DIR --llmc DIR --rodinia DIR

A suite whose folder isn't given is left out. `docs/public-programs.md` has the suites' versions and what came out.
Each program runs in a process of its own, so that none inherits another's context, with a limit of time. The exit
status is 1 if a program fails or is warned of wrongly, or, with `--compare`, is worse than before. `--modes` runs each
program with each engine of the simulator and each setting of its checks, on the same random numbers.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import PROGRAMS
from .program import Program
from .record import read_outcomes, report, worse, write_outcomes
from .running import run_apart, run_modes

SUITES = {"cuda-samples": "cuda_samples", "HeCBench": "hecbench", "llm.c": "llmc", "Rodinia": "rodinia"}


def chosen(programs: Sequence[Program], folders: dict[str, Path | None], only: Sequence[str]) -> list[Program]:
    """Return the programs to run, and say which suites are left out."""
    for suite, folder in folders.items():
        if folder is None:
            print(f"{suite}: left out, no folder was given", file=sys.stderr)
    return [one for one in programs if folders[one.suite] is not None and (not only or one.name in only)]


def main() -> int:
    """Run the programs, print the table, and give the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.programs.public", description=(__doc__ or "").splitlines()[0]
    )
    for suite, word in SUITES.items():
        parser.add_argument(f"--{word.replace('_', '-')}", type=Path, metavar="DIR", help=f"a checkout of {suite}")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run only this program")
    parser.add_argument("--seed", type=int, help="the random numbers' seed; a fresh one unless given")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a program is stopped")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write what came out")
    parser.add_argument("--compare", type=Path, metavar="BEFORE", help="compare with an earlier run's JSON")
    parser.add_argument("--modes", action="store_true", help="run with each engine and each setting of the checks")
    options = parser.parse_args()
    folders = {suite: getattr(options, word) for suite, word in SUITES.items()}
    unknown = set(options.only) - {one.name for one in PROGRAMS}
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    seed = time.time_ns() % 2**32 if options.seed is None else options.seed
    if options.modes:
        return run_modes(chosen(PROGRAMS, folders, options.only), folders, seed, options.limit)
    outcomes = []
    for program in chosen(PROGRAMS, folders, options.only):
        outcome = run_apart(program, folders[program.suite], seed, options.limit)
        print(outcome.line(), file=sys.stderr, flush=True)
        outcomes.append(outcome)
    before = read_outcomes(options.compare) if options.compare else {}
    print(report(PROGRAMS, outcomes, before))
    if options.json:
        write_outcomes(options.json, outcomes)
    return int(any(not one.good for one in outcomes) or bool(worse(outcomes, before)))


if __name__ == "__main__":
    sys.exit(main())
