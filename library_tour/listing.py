"""The command `list`: the stops by chapter, or the stops of a route, as text or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from . import path, report, stops
from .path import Position

# The levels as symbols, which take less space than words.
MARKS = {"introductory": "●○○", "intermediate": "●●○", "advanced": "●●●"}


def print_stops(route: str, *, as_json: bool) -> None:
    """Print the stops of a route, or of the whole path for "", with their titles, levels and minutes.

    Raises UnknownRouteError for a name that no route has.
    """
    names = path.route(route).names if route else path.names()
    if as_json:
        sys.stdout.write(json.dumps([_record(name) for name in names], indent=2) + "\n")
        return
    console = report.console()
    console.print(report.listing(dict(_route(route) if route else _chapters())))
    console.print(Text("\n" + ", ".join(f"{mark} {level}" for level, mark in MARKS.items()), "dim"))
    if route:
        console.print(Text(f"To follow this route: library-tour progress --route {route}"))
    else:
        routes = ", ".join(f"`library-tour list --route {name}`" for name in path.ROUTES)
        console.print(Text(f"Shorter routes: {routes}", "dim"))


def about(position: Position) -> str:
    """Return a stop's chapter, level, minutes and prerequisites in one line."""
    chapter = f"Chapter {position.number} of {len(path.CHAPTERS)}, {position.chapter.title}"
    after = f", after {', '.join(position.place.after)}" if position.place.after else ""
    return f"{chapter}: {position.place.level}, {position.place.minutes} minutes{after}"


def _chapters() -> Iterator[tuple[str, list[Sequence[str]]]]:
    for number, chapter in enumerate(path.CHAPTERS, 1):
        minutes = path.hours(sum(place.minutes for place in chapter.places))
        yield f"{number}. {chapter.title} ({minutes})", _rows(chapter.names)


def _route(name: str) -> Iterator[tuple[str, list[Sequence[str]]]]:
    route = path.route(name)
    yield f"{route.title}: {route.reader} {len(route.names)} stops, {path.hours(route.minutes)}.", _rows(route.names)


def _rows(names: Sequence[str]) -> list[Sequence[str]]:
    places = [path.position(name).place for name in names]
    return [(place.name, MARKS[place.level], f"{place.minutes} min", stops.load(place.name).TITLE) for place in places]


def _record(name: str) -> dict[str, Any]:
    stop, position = stops.load(name), path.position(name)
    place = position.place
    return {
        "name": name,
        "title": stop.TITLE,
        "size": stop.SIZE and {"counts": stop.SIZE.counts, "full": stop.SIZE.full, "small": stop.SIZE.small},
        "chapter": position.chapter.title,
        "level": place.level,
        "minutes": place.minutes,
        "after": list(place.after),
    }
