"""The one table of cases."""

from __future__ import annotations

from . import arithmetic, behaviour, filtering, libraries, sampling
from .frame import Case

CONFORMANCE: tuple[Case, ...] = (
    *arithmetic.cases(),
    *behaviour.cases(),
    *sampling.cases(),
    *filtering.cases(),
)
LIBRARIES: tuple[Case, ...] = tuple(libraries.cases())


def grouped(cases: tuple[Case, ...]) -> dict[str, list[Case]]:
    """Return the cases of each group, in order."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    return groups
