from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

import cudart_py as cuda
from library_tour import device_code, host_latency, limits, stops, timing
from library_tour.course import monte_carlo, nested_monte_carlo, occupancy, precision, streams
from library_tour.stop import Result, Size

Run = Callable[[cuda.Device, int], Result]


@pytest.fixture
def only_stops(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make a tour of the given stops alone: `only_stops(name=run, ...)`."""

    def replace(**runs: Run) -> None:
        monkeypatch.setattr(stops, "COURSE", tuple(runs))
        monkeypatch.setattr(stops, "LIBRARIES", ())
        for name, run in runs.items():
            module = ModuleType(name)
            module.__dict__.update(TITLE=f"What {name} shows", SIZE=Size("grains of sand", 200, 100, least=2), run=run)
            monkeypatch.setitem(sys.modules, f"library_tour.course.{name}", module)

    return replace


@pytest.fixture
def changed_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, Mapping[str, str]], None]:
    """Let a stop compile other device code: `changed_kernels("heat", {text: other})` replaces a text by another."""

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
def any_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything that is done for a GPU alone run everywhere; the times themselves mean nothing."""

    def once(work: Callable[[], object], stream: cuda.Stream | None = None, quick: bool = False) -> float:
        work()
        (stream or cuda.legacy_default).synchronize()
        return 1.0

    monkeypatch.setattr(timing, "available", lambda: True)
    monkeypatch.setattr(timing, "median_ms", once)
    monkeypatch.setattr(timing, "call_ms", timing.waiting_ms)
    monkeypatch.setattr(limits, "measured_ceiling", lambda device, kind: 4e12)
    monkeypatch.setattr(monte_carlo, "SEEDS", 2)
    monkeypatch.setattr(monte_carlo, "SEED_PATHS", 2**10)
    monkeypatch.setattr(occupancy, "STEPS", 64)
    monkeypatch.setattr(streams, "SPIN_MS", 1e-5)
    monkeypatch.setattr(streams, "PIECES", 4)
    monkeypatch.setattr(streams, "TRIED_STEPS", 4)
    monkeypatch.setattr(precision, "ROUNDS", 8)
    monkeypatch.setattr(host_latency, "OTHERS", (2**15, 2**16))
    monkeypatch.setattr(nested_monte_carlo, "MORE_OUTER", (1000, 1001))


@pytest.fixture(scope="session")
def mpiexec() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a Python program, or its arguments, in some ranks; within a minute."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed (the extra mpi)")
    program = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if program is None:
        pytest.skip("no mpiexec is installed (the extra mpi)")

    def run(*arguments: str, count: int = 4) -> subprocess.CompletedProcess[str]:
        command = [program, "-n", str(count), sys.executable, *arguments]
        # Open MPI refuses to run as root, as tests in containers do, unless it is told twice.
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)

    return run
