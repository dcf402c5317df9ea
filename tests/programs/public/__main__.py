"""Run whole programs of public suites on the driver in use, and compare their results with references in NumPy.

    python -m tests.programs.public --cuda-samples DIR --hecbench DIR --llmc DIR --rodinia DIR

A suite whose folder is not given is left out. `docs/public-programs.md` has the versions of the suites and the results.
Each program runs in a separate process with a time limit, so that no program inherits another's context. The exit
status is 1 if a program fails, if a warning is a false alarm, or if there is no warning about a known mistake.
`--modes` runs each program with each engine of the simulator and each setting of its checks, on the same random
numbers.
"""

import argparse
import sys
import time
from pathlib import Path

from . import PROGRAMS
from .running import MODES, run


def main() -> int:
    """Run the programs, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.programs.public", description=(__doc__ or "").splitlines()[0]
    )
    for suite in ("cuda-samples", "HeCBench", "llm.c", "Rodinia"):
        option = f"--{suite.lower().replace('.', '')}"
        parser.add_argument(option, dest=suite, type=Path, metavar="DIR", help=f"a checkout of {suite}")
    parser.add_argument("--only", action="append", choices=[one.name for one in PROGRAMS], metavar="NAME")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="of the random numbers")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a program is stopped")
    parser.add_argument("--modes", action="store_true", help="run with each engine and each setting of the checks")
    options = parser.parse_args()
    folders = {name: folder for name, folder in vars(options).items() if isinstance(folder, Path)}
    chosen = [one for one in PROGRAMS if one.suite in folders and one.name in (options.only or [one.name])]
    failed = run(chosen, folders, options.seed, options.limit, MODES if options.modes else ((),))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
