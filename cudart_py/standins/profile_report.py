"""The profile of a program that `cudart-py run --profile` has started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..pages.document import is_document
from ..profiling.profiles import Profile, profile
from ..profiling.report.launch_table import BRIEF, launch_table
from ..profiling.report.page import profile_page
from .messages import say

VARIABLE = "CUDART_PY_RUN_PROFILE"
PROCESS_VARIABLE = "CUDART_PY_RUN_PROCESS"  # start.c reads it
TERMINAL = "-"

_running: list[Profile] = []


class NotAPageError(ValueError):
    """The file for a profile already contains something else."""


def begin_page(place: str) -> None:
    """Write a profile without launches to a file.

    Raises NotAPageError if the file has content and is not a page of this package, and OSError if it cannot be written.
    """
    path = Path(place)
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder", place)
        return  # a pipe or a device gets the final page only
    if path.exists() and path.stat().st_size and not is_document(path):
        raise NotAPageError(
            f"--profile={place} would replace a file that is not a profile: name another file, or remove this one"
        )
    _write_page(Profile(), place)


def _write_page(counted: Profile, place: str) -> None:
    with open(place, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(profile_page(counted.launches, "Profile", unfinished=counted.unfinished))


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
        if counted.launches or counted.unfinished:
            print("\n" + launch_table(counted.launches, BRIEF, counted.unfinished), file=sys.stderr)  # noqa: T201  # as requested
        else:
            say("the program has launched no kernel, so its profile is empty")
        return
    try:
        _write_page(counted, place)
    except OSError as error:
        say(f"{place!r} cannot be written: {error.strerror}")
