"""Check answers to exercises, in a process of its own and on the simulator, which says what is wrong.

An answer may read beyond an array or wait forever: that never runs on a GPU, and the error stays in its process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import cudart_py as cuda

from . import lesson
from .stop import Check

SECONDS = 60
# Enough for the exercises of stops for several devices.
DEVICES = 4


def check_answers(stop: str, files: Sequence[Path]) -> list[list[Check]]:
    """Return what was tried of each answer to a stop's exercise, and whether it holds.

    An answer is right if every fact holds. The files are tried one after the other. One that leaves the driver in an
    error ends with that, and the files after it are not tried: an empty list each.
    """
    # Without the working directory on the path: an answer that lies there has a name like that of a module.
    command = [sys.executable, "-P", "-m", __name__, stop, *map(str, files)]
    # The package's own place first, in a checkout that is not installed too.
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_SANITIZER": "warn"}
    environment |= {"PYTHONPATH": path, "CUDART_PY_SIMULATOR_DEVICES": str(DEVICES)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return [[Check("the answer ends", False, f"It was stopped after {SECONDS} seconds.")], *([] for _ in files[1:])]
    found = [[Check(**fields) for fields in json.loads(line)] for line in done.stdout.splitlines()]
    if len(found) < len(files):
        if not found or all(check.holds for check in found[-1]):
            found.append([Check("the answer ends", False, done.stderr.strip())])
        found += [[] for _ in files[len(found) :]]
    return found


def tried(stop: str, file: Path) -> list[Check]:
    """Try an answer in this process; return what holds and what does not."""
    found: list[Check] = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with cuda.Device(0) as device:
                answer = _loaded(file)
                found.extend(lesson.load(stop).exercise.check(answer))
                device.synchronize()
        except cuda.CompileError as error:
            found.append(Check("the answer compiles", False, str(error)))
        except cuda.CudaError as error:
            found.append(Check("no call of CUDA fails", False, str(error)))
        except Exception as error:  # whatever an answer does is the answer's
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}: {type(error).__name__}: {error}"
            found.append(Check("the answer raises nothing", False, place))
    found += [Check("the simulator finds nothing wrong", False, str(warning.message)) for warning in warned[:1]]
    return found


def _loaded(file: Path) -> cuda.Module | ModuleType:
    """Return CUDA C++ as a compiled module, and Python as an imported one."""
    if file.suffix == ".cu":
        return cuda.compile(file)
    spec = importlib.util.spec_from_file_location("answer", file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file.name} is neither CUDA C++ (.cu) nor Python (.py)")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Try the answers that the command names; print what was tried of each as a line of JSON."""
    stop, *files = sys.argv[1:]
    # What the answers and their kernels print goes to standard error, so that it is not taken for results.
    results = os.dup(1)
    os.dup2(2, 1)
    for file in files:
        checks = tried(stop, Path(file))
        os.write(results, json.dumps([asdict(check) for check in checks], default=bool).encode() + b"\n")
        try:
            cuda.Device(0).synchronize()
        except cuda.CudaError:  # nothing runs after it
            break
    # What a fault leaves behind need not be put in order.
    os._exit(0)


if __name__ == "__main__":
    main()
