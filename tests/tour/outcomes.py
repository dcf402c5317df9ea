"""Runs of the course's stops, once per process for all assertions about their outcomes."""

import contextlib
import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cudart_py as cuda
from library_tour import counters, device_code, lesson, plots, stops
from library_tour.course import crank_nicolson, heat, monte_carlo
from library_tour.course import map as map_
from library_tour.diagrams.drawn import StepDiagram
from library_tour.pages.simulated import StopRun
from library_tour.runner import Outcome, run_stop
from library_tour.stop import Check, Film, Result, Row

# The name of the machine in the pages of `site_run`.
MACHINE = "a machine"

counted = pytest.mark.skipif(not counters.available(), reason="this driver does not count")

# Sizes that show the facts of a stop. The copies are so large that a GPU cannot finish before the host queries it.
SIZES = {
    "aliasing": 1003,
    "coalescing": 2**14 + 3,
    "constant_memory": 2**13,
    "cooling": 5003,
    "copies": 2**24 - 3,
    "copies_2d": 2047,
    "crank_nicolson": 3,
    "divergence": 2**12,  # whole blocks
    "dot_product": 5003,
    "graphs": 301,
    "histogram": 1001,
    "l2_persistence": 2000,
    "launch_shapes": 3000,
    "local_memory": 2000,
    "logical_and": 2**17 + 3,
    "managed": 333,
    "matmul": 96,
    "monte_carlo": 33,
    "monte_carlo_ranks": 4096,
    "nan_check": 2**13 + 5,
    "nested_monte_carlo": 501,
    "pinned_and_mapped": 2**12 + 5,
    "precision": 3001,
    "reduction": 5003,
    "streams": 1003,
    "synchronization": 3001,
    "transpose": 256,
}

# Small sizes of stops for which 64 is large: their size counts time steps, work per thread, or rows and columns.
SMALL = {"crank_nicolson": 2, "variables": 5, "bank_conflicts": 8, "matmul": 24}
SMALL |= dict.fromkeys(("distributed_gemm", "halo", "heat"), 20)

# By source, device and options: the names with which a module was compiled, and the module.
_modules: dict[tuple[object, ...], list[tuple[set[str], cuda.Module]]] = {}


def _compile_once(source: Path, *, names: Sequence[str] = (), **options: object) -> cuda.Module:
    """Return a module that was already compiled with these names or more, or else compile it."""
    known = _modules.setdefault((source, cuda.current_device(), repr(options)), [])
    for compiled, module in known:
        if compiled.issuperset(names):
            return module
    module = cuda.compile(source, names=names, **options)
    # The stop `variables` needs the initial values of its module's variables, so its module is never shared.
    if source.stem != "variables":
        known.append((set(names), module))
    return module


@contextlib.contextmanager
def loaded_once() -> Iterator[None]:
    """Make all runs of a stop share the modules that it loads, since the simulator parses their PTX at each load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_code, "cuda", SimpleNamespace(compile=_compile_once))
        yield


@functools.cache
def outcome(name: str) -> Outcome:
    """Run a stop with the driver's own clock, or with counters where it has no clock."""
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise, frames of the film, passes of whole programs, fine grids and repetitions take most of the time.
        patch.setattr(heat, "FRAMES", 4)
        patch.setattr(map_, "PASSES", 16)
        patch.setattr(crank_nicolson, "FEWER_CELLS", (16, 64))
        patch.setattr(crank_nicolson, "EDGE_CELLS", 32)
        # With as few paths as here, the intervals of any number of seeds are accepted.
        patch.setattr(monte_carlo, "SEEDS", 10)
        patch.setattr(monte_carlo, "CURVE_SEEDS", 2)
        return run_stop(name, cuda.Device(0), SIZES.get(name, 77))


def changed_solution(exercise: str, changes: Mapping[str, str], folder: Path) -> Path:
    """Write the solution of an exercise with some texts replaced by others, and return the file."""
    solution = lesson.solution(exercise)
    code = solution.read_text(encoding="utf-8")
    for text, other in changes.items():
        assert text in code
        code = code.replace(text, other)
    file = folder / f"answer{solution.suffix}"
    file.write_text(code, encoding="utf-8")
    return file


def explained(of: Outcome) -> str:
    checks = "; ".join(f"{check.fact}: {check.detail}" for check in of.failed_checks)
    return f"{checks} {of.message} {of.traceback}"


def draw(of: Outcome, folder: Path) -> None:
    """Draw the plots of an outcome without writing files and without films, which would take long."""
    if importlib.util.find_spec("matplotlib"):
        still = [picture for picture in of.result.pictures if not isinstance(picture, Film)]
        plots.draw(of.name, of.title, replace(of.result, pictures=still), folder, formats=())


# `found` runs a stop, but not its programs that are wrong on purpose.
_RUN = """
import json, sys
import cudart_py as cuda
from library_tour import stops
from library_tour.runner import run_stop
from library_tour.stop import Row

def found(name, size):
    stop = stops.load(name)
    stop.shown_wrong = lambda name, program: Row(name)
    stop.all_shown_wrong = lambda programs, **devices: []
    outcome = run_stop(name, cuda.Device(0), size)
    return {
        "state": outcome.state,
        "notes": outcome.result.notes,
        "failed": [check.fact for check in outcome.failed_checks],
        "rows": {
            row.name: {"values": dict(row.values), "holds": bool(row.check and row.check.holds), "note": row.note}
            for row in outcome.result.all_rows
        },
        "pictures": [picture.name for picture in outcome.result.pictures],
    }
"""


def on_devices(count: int, program: str, **environment: str) -> Any:
    """Run a program, which may call `found(name, size)`, on `count` simulated devices; return its JSON output."""
    environment = {**os.environ, "CUDART_PY_SIMULATOR_DEVICES": str(count), **environment}
    command = [sys.executable, "-c", _RUN + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def site_run(name: str, result: Result | None = None, diagrams: Sequence[StepDiagram] = ()) -> StopRun:
    """Return a run of a stop for the site's pages, with the given result or one that has a single row."""
    result = result or Result([Row("naive", {"store efficiency": 0.125}, Check("equal", holds=True))])
    done = Outcome(name, stops.load(name).TITLE, 64, "elements", 0.1, "passed", result)
    return StopRun(MACHINE, done, (), diagrams)
