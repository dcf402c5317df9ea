"""A reader's progress, kept in a file: the stops run and shown, the exercises passed, and the route that is followed.

The file is `progress.json` in the user's data folder (on Linux `~/.local/share/cudart_py`), or the one that the
environment variable CUDART_PY_PROGRESS names. Stops run even if the file cannot be read or written.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from . import lesson, path, report
from .usage import wrong_usage_if

VARIABLE = "CUDART_PY_PROGRESS"
_MOST_NAMED = 4  # open exercises in a sentence


class UnreadableProgressError(Exception):
    """A file that holds no progress, or that cannot be read; the message says why and what to do."""


@dataclass
class Progress:
    """A reader's progress: the names of stops and exercises, in the order in which they were first done.

    `route` is the name of the route that the reader follows, "" for the whole path.
    """

    run: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    route: str = ""


def file() -> Path:
    """Return the file that holds the progress, which need not exist."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    import platformdirs  # only this needs it

    return platformdirs.user_data_path("cudart_py", appauthor=False) / "progress.json"


def read() -> Progress:
    """Return the progress so far; raise UnreadableProgressError for a file that does not hold any."""
    place = file()
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
        names = {kind: kept[kind] for kind in ("run", "shown", "passed")}
        if not all(isinstance(of, list) and all(isinstance(name, str) for name in of) for of in names.values()):
            raise TypeError("a list of names is something else")
        route = kept.get("route", "")  # files of earlier versions have none
        if route != "":
            path.route(route)
    except FileNotFoundError:
        return Progress()
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UnreadableProgressError(
            f"the progress in {place} cannot be read ({type(error).__name__}: {error}); "
            "`library-tour progress --reset` starts again"
        ) from error
    return Progress(**names, route=route)


def add(*, run: Sequence[str] = (), shown: Sequence[str] = (), passed: Sequence[str] = ()) -> None:
    """Add stops and exercises to the progress; write one line to standard error if that fails."""
    try:
        progress = read()
        for kept, names in ((progress.run, run), (progress.shown, shown), (progress.passed, passed)):
            kept += [name for name in names if name not in kept]
        _write(progress)
    except UnreadableProgressError as error:
        sys.stderr.write(f"library-tour: {error}\n")
    except OSError as error:
        sys.stderr.write(f"library-tour: the progress cannot be kept: {error}\n")


def followed() -> str:
    """Return the name of the route that the reader follows, "" for the whole path or if the file cannot be read."""
    return known().route


def known() -> Progress:
    """Return the progress so far, or none if the file cannot be read."""
    try:
        return read()
    except UnreadableProgressError:  # `add` reports it
        return Progress()


def ahead(progress: Progress, names: Sequence[str], stop: str = "") -> str:
    """Return the first of the stops that the reader has not seen, "" for none.

    The stops after `stop` come first, and `stop` itself does not count.
    """
    at = names.index(stop) if stop in names else -1
    unseen = [name for name in (*names[at + 1 :], *names[: max(at, 0)]) if name not in seen(progress)]
    return unseen[0] if unseen else ""


def open_exercises(progress: Progress, names: Sequence[str]) -> str:
    """Return a sentence that names the exercises of stops that are not passed, at most four of them; "" for none."""
    left = [exercise for name in names for exercise in lesson.exercises(name) if exercise not in progress.passed]
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    return f"Open exercises: {', '.join(left[:_MOST_NAMED])}{more}." if left else ""


def follow(route: str) -> None:
    """Save the route that the reader follows from now on, "" for the whole path.

    Raises UnknownRouteError for a name that no route has, UnreadableProgressError, and UsageError for a file that
    cannot be written.
    """
    if route:
        path.route(route)
    progress = read()
    progress.route = route
    with wrong_usage_if(OSError):
        _write(progress)


def reset() -> None:
    """Forget all progress; raise UsageError for a file that cannot be removed."""
    with wrong_usage_if(OSError):
        file().unlink(missing_ok=True)


def summary() -> Iterator[RenderableType]:
    """Yield the progress on the followed route, or else per chapter, and the stop that comes next.

    Raises UnreadableProgressError.
    """
    progress = read()
    if progress.route:
        route = path.route(progress.route)
        parts = {f"The route {progress.route}, {route.title}": route.names}
    else:
        parts = {f"{number}. {chapter.title}": chapter.names for number, chapter in enumerate(path.CHAPTERS, 1)}
    yield report.listing(
        {
            f"{title}: {_count(progress, names)}": [(name, _state(progress, name)) for name in names]
            for title, names in parts.items()
        }
    )
    every = [name for names in parts.values() for name in names]
    if following := ahead(progress, every):
        yield Text(f"\nNext: library-tour show {following}")
    else:
        seen_all = f"You have seen every stop{' of this route' if progress.route else ''}."
        yield Text("\n" + " ".join(filter(None, [seen_all, open_exercises(progress, every), path.AFTER_A_ROUTE])))
    if progress.route:
        yield Text("Back to the whole path: library-tour progress --route all")
    yield Text(f"Kept in {file()}", "dim", no_wrap=True)


def seen(progress: Progress) -> set[str]:
    """Return the stops that were shown or have a passed exercise; a stop that was only run does not count."""
    return {*progress.shown, *(exercise.partition("/")[0] for exercise in progress.passed)}


def _count(progress: Progress, names: Sequence[str]) -> str:
    stops = sum(name in seen(progress) for name in names)
    exercises = [exercise for name in names for exercise in lesson.exercises(name)]
    passed = sum(exercise in progress.passed for exercise in exercises)
    return f"{stops} of {len(names)} stops seen, {passed} of {len(exercises)} exercises passed"


def _state(progress: Progress, name: str) -> str:
    """Return what the reader has done at a stop, and the names of its open exercises."""
    done = ", ".join(_done(progress, name))
    if not done:
        return "–"
    left = [exercise for exercise in lesson.exercises(name) if exercise not in progress.passed]
    return f"{done}; open: {', '.join(left)}" if left else done


def _done(progress: Progress, name: str) -> Iterator[str]:
    if name in progress.run:
        yield "run"
    if name in progress.shown:
        yield "shown"
    passed = [exercise for exercise in progress.passed if exercise.partition("/")[0] == name]
    yield from (f"{exercise.partition('/')[2]} exercise passed".lstrip() for exercise in passed)


def _write(progress: Progress) -> None:
    """Replace the file atomically, so that no other process reads a partly written one."""
    place = file()
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            json.dump(asdict(progress), stream, indent=2)
        os.replace(temporary, place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
