"""Check answers to exercises on the simulator, in a separate process, and report what is wrong.

An answer may access memory out of bounds or never finish. It never runs on a GPU, and the error stays in its process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import reprlib
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType, ModuleType

import numpy as np

import cudart_py as cuda

from . import counters, lesson
from .stop import Check

# The limits of one launch and of the whole answer, including imports and compilation. The second is in processor time,
# so that a right answer passes on a busy machine. The third is wall-clock time, for an answer that waits idly.
KERNEL_SECONDS, SECONDS, CLOCK_SECONDS = 10, 60, 180
# The facts for kernel faults and for the simulator's reports, keyed by a phrase of the message.
FAULTS = {
    "the launch took longer than": f"the kernel did not finish within {KERNEL_SECONDS} s",
    "deadlock": "the kernel never finishes",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "the kernel accessed memory outside its arrays",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "the kernel accessed a misaligned address",
    "race: ": "two threads access the same memory, at least one of them writes, and nothing orders the two",
    "which does not take part": "a thread uses what a shuffle read from a lane that does not take part in it",
    "uninitialised value": "the kernel uses memory that was never written",
}
# Enough for the exercises that use several devices.
DEVICES = 4


def check_answers(exercise: str, files: Sequence[Path]) -> list[list[Check]]:
    """Return the checks of each answer to an exercise.

    An answer is right if every check holds. One process checks the files one after another. An answer that leaves the
    driver in an error state ends the process: the files after it are not checked, and their lists are empty.
    """
    # -P keeps the working directory off the path, because an answer there may have the name of a module.
    command = [sys.executable, "-P", "-m", __name__, exercise, *map(str, files)]
    # The folder of the package comes first, so that a checkout works without being installed.
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_SANITIZER": "warn"}
    environment |= {"PYTHONPATH": path, "CUDART_PY_SIMULATOR_DEVICES": str(DEVICES)}
    # Limit seconds but not steps, because a step means nothing to a reader.
    environment |= {"CUDART_PY_SIMULATOR_SECONDS": str(KERNEL_SECONDS), "CUDART_PY_SIMULATOR_STEPS": "0"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        try:
            output, errors = process.communicate(timeout=CLOCK_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return [[Check(f"the answer did not finish within {CLOCK_SECONDS} s", False)], *([] for _ in files[1:])]
    if process.returncode == -signal.SIGXCPU:
        fact = f"the answer did not finish within {SECONDS} s of processor time"
        return [[Check(fact, False)], *([] for _ in files[1:])]
    found = [[Check(**fields) for fields in json.loads(line)] for line in output.splitlines()]
    if len(found) < len(files):
        if not found or all(check.holds for check in found[-1]):
            found.append([Check("the answer ended its process", False, errors.strip())])
        found += [[] for _ in files[len(found) :]]
    return found


def tried(exercise: str, file: Path) -> list[Check]:
    """Check an answer in this process; return all checks, whether they hold or not."""
    found: list[Check] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with cuda.Device(0) as device:
                answer = _loaded(file)
                found.extend(lesson.exercise(exercise).check(answer))
                device.synchronize()
        except cuda.CompileError as error:
            found.append(Check("the answer does not compile", False, str(error)))
        except cuda.errors.NotFoundError as error:
            found.append(_lacking(str(error)) or _reported(str(error), "a CUDA call failed", file))
        except cuda.CudaError as error:
            found.append(_reported(str(error), "a CUDA call failed", file))
        except Exception as error:  # any exception counts against the answer
            found.append(_raised(error, file))
    return found + [_reported(str(warning.message), "the simulator found a mistake", file) for warning in warned[:1]]


def _reported(report: str, other: str, file: Path) -> Check:
    """Return a failed check for an error message: a known fault with its source line, or the `other` fact."""
    fact = next((fact for words, fact in FAULTS.items() if words in report), other)
    located = re.search(r"^kernel \w+ at .*", report, re.MULTILINE | re.DOTALL)
    if fact == other or located is None:
        return Check(fact, False, report)
    # Leave out folders, the thread and the PTX instruction, because lessons do not explain them.
    detail = re.sub(r"/\S*/(?=[^/\s]+:\d)", "", located[0])
    # The end of the check says at greater length how to order the accesses.
    detail = re.sub(r"(nothing orders the two accesses)[,:] [^;]*", r"\1", detail)
    detail = re.sub(r"; block \([^;]*, instruction '[^']*'", "", detail)
    # The report of a race between streams already says how to fix it.
    races = fact == FAULTS["race: "] and "use the same stream" not in report
    # An array that the check allocated has a line in a file that the reader does not see.
    detail = re.sub(rf"(?<=, )allocated at (?!{re.escape(file.name)}:)\S+?:\d+", "allocated by the check", detail)
    detail = re.sub(r": the launch took longer than[^\n]*", "", detail)
    return Check(fact, False, f"{detail}\n{_order(report)}" if races else detail)


def _order(report: str) -> str:
    """Return how to fix a reported race between two threads."""
    if len(set(re.findall(r"block (\([^)]*\)), thread", report))) > 1:
        return (
            "The threads are in different blocks, which `__syncthreads()` does not order: let each thread write its "
            "own element, or use an atomic such as `atomicAdd`."
        )
    return (
        "Usually, a `__syncthreads()` is missing between the two lines, or between two iterations if both accesses are "
        "on the same line of a loop."
    )


def _lacking(report: str) -> Check | None:
    """Return a failed check if the report is about a kernel that the answer lacks, else None."""
    found = re.match(r"no kernel is named '(\w+)'.* Kernels of this module: (.*)", report, re.DOTALL)
    if found is None:
        return None
    kernels = found[2].partition(" (")[0]  # without advice on templates
    return Check(f"the answer has no kernel {found[1]}", False, f"Its kernels: {kernels}")


def _raised(error: Exception, file: Path) -> Check:
    """Return a failed check for an exception of an answer or of its check, with the answer's line and function call."""
    if isinstance(error, KeyError) and error.args[0] in counters.COLUMNS:
        return Check("the kernel does not do what is counted", False, f"There is nothing to count: {error.args[0]}.")
    path = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if Path(frame.f_code.co_filename) == file.absolute()
    ]
    where = f"{file.name}:{path[-1][1]}{_call(path[0][0])}: " if path else ""
    return Check("the answer raised an exception", False, f"{where}{type(error).__name__}: {error}")


def _call(frame: FrameType) -> str:
    """Return the call that a frame executes, with arrays as dtype and shape, or "" for a module's top level."""
    code = frame.f_code
    if code.co_name == "<module>":
        return ""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    arguments = [f"{name}={_brief(frame.f_locals[name])}" for name in names if name in frame.f_locals]
    return f", in {code.co_name}({', '.join(arguments)})"


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray | cuda.DeviceArray):
        return f"{value.dtype}{value.shape}"
    return reprlib.repr(value) if isinstance(value, int | float | str | tuple) else f"<{type(value).__name__}>"


def _loaded(file: Path) -> cuda.Module | ModuleType:
    """Return an answer as a module: CUDA C++ is compiled, and Python is imported."""
    if file.suffix == ".cu":
        return cuda.compile(file)
    spec = importlib.util.spec_from_file_location("answer", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Check the answers named on the command line; print the checks of each as one line of JSON."""
    exercise, *files = sys.argv[1:]
    # Redirect what the answers and their kernels print to standard error, to keep it apart from the results.
    results = os.dup(1)
    os.dup2(2, 1)
    for file in files:
        checks = tried(exercise, Path(file))
        os.write(results, json.dumps([asdict(check) for check in checks], default=bool).encode() + b"\n")
        try:
            cuda.Device(0).synchronize()
        except cuda.CudaError:  # no further answer can run
            break
    # Exit without cleaning up what a fault may have left behind.
    os._exit(0)


if __name__ == "__main__":
    main()
