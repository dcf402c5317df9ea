"""Check answers to exercises, in a process of its own and on the simulator, which says what is wrong.

An answer may read beyond an array or wait forever: that never runs on a GPU, and the error stays in its process.
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

# The limit of one launch, and those of the whole answer, with imports and the compiler: in processor time, so that a
# right answer passes on a busy machine, and by the clock, for an answer that waits without computing.
KERNEL_SECONDS, SECONDS, CLOCK_SECONDS = 10, 60, 180
# The facts for faults of kernels and for the simulator's reports, by words of these.
FAULTS = {
    "limit of seconds": f"the kernel did not finish within {KERNEL_SECONDS} s",
    "deadlock": "the kernel never finishes",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "the kernel accessed memory outside its arrays",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "the kernel accessed a misaligned address",
    "race: ": "two threads access the same memory, at least one of them writes, and nothing orders the two",
    "uninitialised value": "the kernel uses memory that was never written",
}
# Enough for the exercises of stops for several devices.
DEVICES = 4


def check_answers(exercise: str, files: Sequence[Path]) -> list[list[Check]]:
    """Return what was tried of each answer to an exercise, and whether it holds.

    An answer is right if every fact holds. The files are tried one after the other. One that leaves the driver in an
    error ends with that, and the files after it are not tried: an empty list each.
    """
    # Without the working directory on the path: an answer that lies there has a name like that of a module.
    command = [sys.executable, "-P", "-m", __name__, exercise, *map(str, files)]
    # The package's own place first, in a checkout that is not installed too.
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_SANITIZER": "warn"}
    environment |= {"PYTHONPATH": path, "CUDART_PY_SIMULATOR_DEVICES": str(DEVICES)}
    # Seconds alone, since a reader cannot tell what a step is.
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
    """Try an answer in this process; return what holds and what does not."""
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
            found.append(_lacking(str(error)) or _reported(str(error), "a CUDA call failed"))
        except cuda.CudaError as error:
            found.append(_reported(str(error), "a CUDA call failed"))
        except Exception as error:  # whatever an answer does is the answer's
            found.append(_raised(error, file))
    return found + [_reported(str(warning.message), "the simulator found a mistake") for warning in warned[:1]]


def _reported(report: str, other: str) -> Check:
    """Return a fault or a report of the simulator as a fact with the line of the source, or as the `other` fact."""
    fact = next((fact for words, fact in FAULTS.items() if words in report), other)
    located = re.search(r"^kernel \w+ at .*", report, re.MULTILINE | re.DOTALL)
    if fact == other or located is None:
        return Check(fact, False, report)
    # Without the folders, the thread and the instruction of PTX, of which the lesson says nothing.
    detail = re.sub(r"/\S*/(?=[^/\s]+:\d)", "", located[0])
    detail = re.sub(r"; block \([^;]*, instruction '[^']*'", "", detail)
    return Check(fact, False, re.sub(r": the limit of seconds is reached[^\n]*", "", detail))


def _lacking(report: str) -> Check | None:
    """Return the fact for a kernel that the answer should have, or None if the report is about something else."""
    found = re.match(r"no kernel is named '(\w+)'.* Kernels of this module: (.*)", report, re.DOTALL)
    if found is None:
        return None
    kernels = found[2].partition(" (")[0]  # without advice on templates
    return Check(f"the answer has no kernel {found[1]}", False, f"Its kernels: {kernels}")


def _raised(error: Exception, file: Path) -> Check:
    """Return what an answer, or its check, has raised: the answer's own line, and the call that has led to it."""
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
    """Return the name of a function that runs and its arguments, arrays by their types and shapes."""
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
    """Return CUDA C++ as a compiled module, and Python as an imported one."""
    if file.suffix == ".cu":
        return cuda.compile(file)
    spec = importlib.util.spec_from_file_location("answer", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Try the answers that the command names; print what was tried of each as a line of JSON."""
    exercise, *files = sys.argv[1:]
    # What the answers and their kernels print goes to standard error, so that it is not taken for results.
    results = os.dup(1)
    os.dup2(2, 1)
    for file in files:
        checks = tried(exercise, Path(file))
        os.write(results, json.dumps([asdict(check) for check in checks], default=bool).encode() + b"\n")
        try:
            cuda.Device(0).synchronize()
        except cuda.CudaError:  # nothing runs after it
            break
    # What a fault leaves behind need not be put in order.
    os._exit(0)


if __name__ == "__main__":
    main()
