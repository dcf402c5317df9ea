"""Run programs, each in a separate process, and judge their results and warnings."""

import itertools
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import cudart_py as cuda
from tests.tables import table

from .program import Build, Program

# The simulator's engines, each with each setting of the checks.
MODES = tuple(itertools.product(("numpy", "native", "auto"), ("off", "warn", "error")))


class Outcome(NamedTuple):
    """The outcome of a program: the verdict, the duration in seconds, and the errors and false alarms."""

    verdict: str
    seconds: float
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.verdict}, {self.seconds:.1f} s"


def run_here(program: Program, folder: Path, seed: int) -> Outcome:
    """Run a program in this process; an exception becomes its verdict."""
    begin = time.perf_counter()
    verdict, texts, error = "passed", [], ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with cuda.Device(0) as device:
                program.run(Build(folder, program.files, seed))
                device.synchronize()
        except cuda.errors.SimulatorWarning as finding:  # with the setting "error", the checks raise their findings
            texts.append(str(finding))
        except Exception as raised:
            verdict = "wrong result" if isinstance(raised, AssertionError) else type(raised).__name__
            error = str(raised)
    texts += [str(one.message) for one in caught if issubclass(one.category, cuda.errors.SimulatorWarning)]
    alarms = [text for text in texts if not any(part in text for part in program.own)]
    checked = "profile" in cuda.capabilities() and os.environ.get("CUDART_PY_SANITIZER") != "off"
    if verdict == "passed" and alarms:
        verdict = f"{len(alarms)} alarm{'s' * (len(alarms) > 1)}"
    elif verdict == "passed" and program.own and not texts and checked:
        verdict = "its own mistake was not seen"
    return Outcome(verdict, time.perf_counter() - begin, (*[error] * bool(error), *alarms))


def run_apart(program: Program, folder: Path, seed: int, limit: float) -> Outcome:
    """Run a program in a separate process, and give up after `limit` seconds."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(run_here, (program, folder, seed)).get(limit)
        except multiprocessing.TimeoutError:
            return Outcome("did not finish, or crashed", limit)


def run(
    programs: Sequence[Program],
    folders: Mapping[str, Path],
    seed: int,
    limit: float,
    modes: Sequence[Sequence[str]] = ((),),
) -> int:
    """Run programs in each mode, print a table, and return the number of runs that did not pass.

    Each source is compiled only once, because all runs share a compile cache.
    """
    rows, outcomes = [], []
    with tempfile.TemporaryDirectory() as cache:
        for program in programs:
            of_program = []
            for mode in modes:
                settings = zip(("CUDART_PY_SIMULATOR_ENGINE", "CUDART_PY_SANITIZER"), mode, strict=False)
                with mock.patch.dict(os.environ, {"CUDART_PY_CACHE": cache, **dict(settings)}):
                    outcome = run_apart(program, folders[program.suite], seed, limit)
                said = [f"{program.suite}/{program.name}: {', '.join(mode)} {outcome}, seed {seed}", *outcome.details]
                print("\n    ".join(text.strip()[:1000] for text in said), file=sys.stderr, flush=True)
                of_program.append(outcome)
            shows = (program.run.__doc__ or "").partition(": ")[0] + (f"; {program.why}" if program.why else "")
            rows.append([program.suite, program.name, shows, *map(str, of_program)])
            outcomes += of_program
    print(table(["suite", "program", "what it tests", *(", ".join(mode) or "result" for mode in modes)], rows))
    passed = sum(outcome.verdict == "passed" for outcome in outcomes)
    print(f"\n{passed} of {len(outcomes)} runs passed without a false alarm.")
    return len(outcomes) - passed
