"""The profile of a program that `cudart-py run --profile` has started."""

from __future__ import annotations

import os
import sys

from ..profiling.profiles import Profile, profile
from ..profiling.report.launch_table import BRIEF, launch_table
from ..profiling.report.page import profile_page

VARIABLE = "CUDART_PY_RUN_PROFILE"
TERMINAL = "-"

_running: list[Profile] = []


def begin() -> None:
    """Start counting if the command asks for a profile."""
    if os.environ.get(VARIABLE):
        _running.append(profile())
        _running[0].__enter__()


def end() -> None:
    """Print or write the profile if the command asks for one."""
    if not _running:
        return
    counted = _running.pop()
    counted.__exit__(None, None, None)
    place = os.environ[VARIABLE]
    if place == TERMINAL:
        print("\n" + launch_table(counted.launches, BRIEF), file=sys.stderr)  # noqa: T201  # as requested
        return
    page = profile_page(counted.launches, "Profile")
    try:
        with open(place, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(page)
    except OSError as error:
        print(f"cudart-py run: {place} cannot be written: {error.strerror}", file=sys.stderr)  # noqa: T201  # as above
