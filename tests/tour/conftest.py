import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import cudart_py as cuda
from library_tour import (
    answers,
    counters,
    device_code,
    host_latency,
    limits,
    path,
    processes,
    several,
    stops,
    timing,
    wrong,
)
from library_tour.course import (
    crank_nicolson,
    divergence,
    graphs,
    halo,
    heat,
    l2_persistence,
    monte_carlo,
    nested_monte_carlo,
    occupancy,
    precision,
    streams,
    synchronization,
)
from library_tour.course import map as map_
from library_tour.pages import pictures, site
from library_tour.stop import Check, Result, Row, Size
from tests.benchmarks.peers import devices
from tests.forks import Forks, own_environment
from tests.tour import outcomes

Run = Callable[[cuda.Device, int], Result]

# Smaller values of the stops' repetitions for timing, and of the sizes of drawn data.
SHORTER = {
    crank_nicolson: {"SHOWN_CELLS": (16, 32), "EDGE_CELLS": 32, "CELLS": 64},
    divergence: {"CHECKED": 1000},
    graphs: {"ROUNDS": 1, "CURVE_SIZES": (2**5,), "FEW": 60, "STEPS": 20},
    halo: {"DRAWN_STEPS": 2},
    heat: {"FRAMES": 4},
    host_latency: {"OTHERS": (2**15, 2**16)},
    l2_persistence: {"WINDOWS": (0.5, 1.5), "MODEL_LINE": 2**20},
    map_: {"PASSES": 16, "CHECKED_PASSES": 8},
    monte_carlo: {"SEEDS": 2, "SEED_PATHS": 2**10, "CURVE_SEEDS": 1},
    nested_monte_carlo: {
        "FEW": nested_monte_carlo.Stages(5, 12),
        "MANY": nested_monte_carlo.Stages(12, 5),
        "MORE_OUTER": (70, 71),
        "SEEDS": 1,
        "ERRORS_OUTER": (2, 4),
    },
    occupancy: {"STEPS": 64, "PASSES": 4},
    precision: {"ROUNDS": 8},
    several: {"SECONDS": 0},
    streams: {"SPIN_MS": 1e-5, "PIECES": 4, "TRIED_STEPS": 4},
    synchronization: {"CHECKED": 1003},
    timing: {"FRESH_TIMES": 1},
}


def stop_of(item: pytest.Item) -> str:
    """Return the name of the stop that a test is about, from its parameter `name` or its file; empty if none."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    candidates = (parameters.get("name"), item.path.stem.removeprefix("test_"))
    return next((name for name in candidates if name in stops.names()), "")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Group the tests by stop, so that `--dist loadgroup` sends them to the worker that has the stop's outcome."""
    if name := stop_of(item):
        item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture
def result(request: pytest.FixtureRequest) -> Result:
    """Return the result of the stop that the test's file is about."""
    return outcomes.outcome(request.path.stem.removeprefix("test_")).result


@pytest.fixture
def rows(result: Result) -> dict[str, Row]:
    """Return the rows of all tables of the stop that the test's file is about."""
    return {row.name: row for row in result.all_rows}


@pytest.fixture(scope="session", autouse=True)
def loaded_once() -> Iterator[None]:
    """Make all runs of a stop share the modules that it loads."""
    with outcomes.loaded_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def shown_wrong_quickly(forks: Forks) -> Iterator[None]:
    """Run programs that are wrong on purpose in forks, which have everything imported already."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wrong, "run", forks.run)
        yield


@pytest.fixture(scope="session", autouse=True)
def checked_quickly(forks: Forks) -> Iterator[None]:
    """Check answers to exercises in forks; `test_answers` starts real processes."""

    def check(exercise: str, files: Sequence[Path]) -> list[list[Check]]:
        environment = {**own_environment(), "CUDART_PY_DRIVER": "simulator", "CUDART_PY_SANITIZER": "warn"}
        environment["CUDART_PY_SIMULATOR_DEVICES"] = str(answers.DEVICES)
        done = forks.run("library_tour.answers:main", [exercise, *map(str, files)], environment)
        return [[Check(**fields) for fields in json.loads(line)] for line in done.stdout.splitlines()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "check_answers", check)
        yield


@pytest.fixture(scope="session")
def site_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the site's pages of all stops, without charts, which take long; only `transpose` is in the gallery."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures.plots, "draw", lambda *arguments, **named: {})
        return {name: site.page_of(outcomes.site_run(name), folder, ["transpose"]) for name in stops.names()}


@pytest.fixture
def nothing_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the processes that stops start for programs that are wrong on purpose; `outcomes` runs the real ones."""

    done = subprocess.CompletedProcess([], 0, "not run", "")
    monkeypatch.setattr(wrong, "run", lambda *arguments: done)


@pytest.fixture
def only_stops(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes a tour of the given stops only: `only_stops(name=run, ...)`."""

    def replace(**runs: Run) -> None:
        monkeypatch.setattr(processes, "processors", lambda: 1)  # other processes would not have these stops
        places = [path.Place(name, "introductory", 5) for name in runs]
        monkeypatch.setattr(path, "CHAPTERS", [path.Chapter("All", "do all.", places)])
        monkeypatch.setattr(stops, "COURSE", tuple(runs))
        monkeypatch.setattr(stops, "LIBRARIES", ())
        for name, run in runs.items():
            module = ModuleType(name)
            module.__dict__.update(TITLE=f"What {name} shows", SIZE=Size("grains of sand", 200, 100, least=2), run=run)
            monkeypatch.setitem(sys.modules, f"library_tour.course.{name}", module)

    return replace


@pytest.fixture
def changed_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, numpy_engine: None
) -> Callable[[str, Mapping[str, str]], None]:
    """Return a function that changes a stop's device code: `changed_kernels("heat", {text: other})` replaces texts."""

    def change(stem: str, changes: Mapping[str, str]) -> None:
        original = device_code.find(stem)
        for header in original.parent.glob("*.cuh"):
            shutil.copy(header, tmp_path)
        source = original.read_text()
        for text, other in changes.items():
            assert source.count(text) == 1, text
            source = source.replace(text, other)
        changed = tmp_path / original.name
        changed.write_text(source)
        monkeypatch.setattr(device_code, "find", lambda name: {stem: changed}[name])

    return change


@pytest.fixture
def numpy_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run kernels in the NumPy engine, for launches so small that machine code takes longer to compile than it saves.

    The stops' outcomes run the same kernels in machine code.
    """
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")


@pytest.fixture
def shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make stops draw less data, and repeat their work less often."""
    for module, values in SHORTER.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


@pytest.fixture
def any_clock(monkeypatch: pytest.MonkeyPatch, shorter: None, numpy_engine: None) -> None:
    """Run code that needs a GPU's clock on any driver: all times are 1 ms, and there are no counters."""

    def once(work: Callable[[], object], stream: cuda.Stream | None = None, quick: bool = False) -> float:
        work()
        (stream or cuda.legacy_default).synchronize()
        return 1.0

    monkeypatch.setattr(counters, "available", lambda: False)
    monkeypatch.setattr(timing, "available", lambda: True)
    for clock in ("median_ms", "call_ms", "waiting_ms"):
        monkeypatch.setattr(timing, clock, once)
    monkeypatch.setattr(limits, "measured_ceiling", lambda device, kind: 4e12)


@pytest.fixture(scope="session")
def mpiexec() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs Python with these arguments in `count` ranks, for at most a minute."""
    program = devices.mpiexec()
    if program is None:
        pytest.skip("no mpiexec or no mpi4py is installed (the extra mpi)")

    def run(*arguments: str, count: int = 4) -> subprocess.CompletedProcess[str]:
        command = [program, "-n", str(count), sys.executable, *arguments]
        # Tests in containers run as root, which Open MPI refuses unless both variables are set.
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)

    return run
