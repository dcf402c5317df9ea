from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest

import cudart_py as cuda
from library_tour import stops
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
