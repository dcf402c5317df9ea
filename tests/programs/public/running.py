"""Run programs: in this process, in processes of their own, and in each mode."""

from __future__ import annotations

import itertools
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import cudart_py as cuda

from .modes import MODES, Mode, mode_table, using
from .program import Build, Program
from .record import Outcome

__all__ = ["run_apart", "run_here", "run_modes"]


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


def run_modes(programs: Sequence[Program], folders: Mapping[str, Path | None], seed: int, limit: float) -> int:
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
