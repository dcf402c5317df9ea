"""The simulator's engines and checks, in each combination of which a program must give the same results."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tests.tables import table

from .record import Outcome

__all__ = ["MODES", "Mode", "mode_table", "using"]


class Mode(NamedTuple):
    """An engine, and what the checks do with a finding."""

    engine: str
    checks: str

    def __str__(self) -> str:
        return f"{self.engine}, {self.checks}"


MODES = tuple(itertools.starmap(Mode, itertools.product(("numpy", "native", "auto"), ("off", "warn", "error"))))


@contextmanager
def using(mode: Mode, cache: str) -> Iterator[None]:
    """Let processes that start inside run in a mode, and keep compiled images in the folder `cache`."""
    names = "CUDART_PY_SIMULATOR_ENGINE", "CUDART_PY_SIMULATOR_CHECKS", "CUDART_PY_CACHE"
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(zip(names, (*mode, cache), strict=True))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def mode_table(outcomes: Mapping[Mode, Sequence[Outcome]]) -> str:
    """Return a table: a row for each program, a column for each mode, and a sum."""
    names = [one.name for one in next(iter(outcomes.values()))]
    columns = [[one.brief for one in found] for found in outcomes.values()]
    every = [one for found in outcomes.values() for one in found]
    good = sum(one.good for one in every)
    said = f"{good} of {len(every)} runs passed without a false alarm."
    return f"{table(['program', *map(str, outcomes)], zip(names, *columns, strict=True))}\n\n{said}"
