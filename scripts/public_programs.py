"""Run whole programs of public suites on whatever driver is there, and compare with references in NumPy.

    python scripts/public_programs.py --cuda-samples DIR --hecbench DIR --llmc DIR --rodinia DIR

A suite whose folder isn't given is left out. `docs/public-programs.md` has the suites' versions and what came out.
Each program runs in a process of its own, so that none inherits another's context, with a limit of time. The exit
status is 1 if a program fails or is warned of wrongly, or, with `--compare`, is worse than before. `--modes` runs each
program with each engine of the simulator and each setting of its checks, on the same random numbers.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from public_suites import PROGRAMS
from public_suites.modes import MODES, Mode, mode_table, using
from public_suites.program import Build, Program
from public_suites.record import Outcome, markdown, read_outcomes, table, worse, write_outcomes

import cudart_py as cuda

SUITES = {"cuda-samples": "cuda_samples", "HeCBench": "hecbench", "llm.c": "llmc", "Rodinia": "rodinia"}


def run_here(program: Program, folder: Path, seed: int, cache: bool = False) -> Outcome:
    """Run a program in this process; whatever it raises is its outcome."""
    begin = time.perf_counter()
    said = ""
    raised = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with cuda.Device(0) as device:
                program.run(Build(folder, program.files, seed, cache))
                device.synchronize()
        except cuda.SimulatorWarning as finding:  # where the checks raise what they find
            raised = [str(finding)]
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    texts = [str(one.message) for one in caught if issubclass(one.category, cuda.SimulatorWarning)] + raised
    own = [text for text in texts if any(part in text for part in program.own)]
    alarms = [text for text in texts if text not in own]
    return Outcome(program.name, program.suite, said, tuple(alarms), len(own), time.perf_counter() - begin, seed)


def _answer(program: Program, folder: Path, seed: int, cache: bool, answers: Connection) -> None:
    answers.send(run_here(program, folder, seed, cache))


def run_apart(program: Program, folder: Path, seed: int, limit: float, cache: bool = False) -> Outcome:
    """Run a program in a process of its own and stop it after `limit` seconds."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_answer, args=(program, folder, seed, cache, sender))
    begin = time.perf_counter()
    worker.start()
    sender.close()
    try:
        if receiver.poll(limit):
            outcome: Outcome = receiver.recv()
            return outcome
        said = "no end"
    except EOFError:
        worker.join()
        said = f"the process ended with status {worker.exitcode}"
    finally:
        worker.kill()
        worker.join()
        receiver.close()
    return Outcome(program.name, program.suite, said, (), 0, time.perf_counter() - begin, seed)


def chosen(programs: Sequence[Program], folders: dict[str, Path | None], only: Sequence[str]) -> list[Program]:
    """Return the programs to run, and say which suites are left out."""
    for suite, folder in folders.items():
        if folder is None:
            print(f"{suite}: left out, no folder was given", file=sys.stderr)
    return [one for one in programs if folders[one.suite] is not None and (not only or one.name in only)]


def run_modes(programs: Sequence[Program], folders: dict[str, Path | None], seed: int, limit: float) -> int:
    """Run programs in each mode, print the table, and give the exit status; each source is compiled once."""
    outcomes: dict[Mode, list[Outcome]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as cache:
        for program, mode in itertools.product(programs, MODES):
            with using(mode, cache):
                outcome = run_apart(program, folders[program.suite], seed, limit, cache=True)
            print(f"{mode}: {outcome.line()}", file=sys.stderr, flush=True)
            outcomes[mode].append(outcome)
    print(mode_table(outcomes))
    return int(any(not one.good for found in outcomes.values() for one in found))


def main() -> int:
    """Run the programs, print the table, and give the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for suite, word in SUITES.items():
        parser.add_argument(f"--{word.replace('_', '-')}", type=Path, metavar="DIR", help=f"a checkout of {suite}")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run only this program")
    parser.add_argument("--seed", type=int, help="the random numbers' seed; a fresh one unless given")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a program is stopped")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write what came out")
    parser.add_argument("--compare", type=Path, metavar="BEFORE", help="compare with an earlier run's JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
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
    print((markdown if options.markdown else table)(PROGRAMS, outcomes, before))
    if options.json:
        write_outcomes(options.json, outcomes)
    return int(any(not one.good for one in outcomes) or bool(worse(outcomes, before)))


if __name__ == "__main__":
    sys.exit(main())
