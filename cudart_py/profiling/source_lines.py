"""The source lines of launches: the sums of their metrics, and the share of each line in the estimated cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .metric_names import add

if TYPE_CHECKING:
    from .profiles import LaunchProfile


@dataclass(frozen=True)
class Source:
    """A source: its name, its lines of text (none if it is not available), and sums of metrics by line number."""

    name: str
    texts: tuple[str, ...]
    lines: Mapping[int, Mapping[str, float]] = field(repr=False)

    def text(self, number: int) -> str:
        """Return the text of a line with tabs expanded, or "" if it is not available."""
        return self.texts[number - 1].expandtabs(4) if 1 <= number <= len(self.texts) else ""


class HotLine(NamedTuple):
    """A line with its share of the estimated cost of all lines, from 0 to 1."""

    source: Source
    number: int
    share: float

    @property
    def place(self) -> str:
        """The source's name and the line's number."""
        return f"{self.source.name}:{self.number}"

    @property
    def metrics(self) -> Mapping[str, float]:
        """The sums of the line's metrics."""
        return self.source.lines[self.number]


def sources_of(launches: Iterable[LaunchProfile]) -> list[Source]:
    """Return every source that the launches' lines refer to, the program's own sources first."""
    found: dict[tuple[str, str | None], dict[int, dict[str, float]]] = {}
    for launch in launches:
        for line in launch.lines:
            if line.line:
                # Sources that were passed as strings may have the same name.
                lines = found.setdefault((line.file, launch.sources.get(line.file)), {})
                add(lines.setdefault(line.line, {}), line.metrics)
    here = os.getcwd() + os.sep
    ranked = sorted(found, key=lambda key: (key[1] is None and not key[0].startswith(here), key[0]))
    return [_source(name_of(file), file, text, found[file, text]) for file, text in ranked]


def name_of(file: str) -> str:
    """Return the displayed name of a source: its path, relative to the working folder if it is inside."""
    return file.removeprefix(os.getcwd() + os.sep) or "unknown source"


def text_of(launches: Iterable[LaunchProfile], file: str, line: int) -> str:
    """Return the text of a line without surrounding white space, or "" if it is not available."""
    found = (source for source in sources_of(launches) if source.name == name_of(file))
    return next((source.text(line).strip() for source in found if line in source.lines), "")


def _source(name: str, file: str, text: str | None, lines: Mapping[int, Mapping[str, float]]) -> Source:
    try:
        texts = (Path(file).read_text(encoding="utf-8") if text is None else text).splitlines()
    except (OSError, ValueError):  # ValueError: not UTF-8, or not a valid file name
        texts = []
    return Source(name, tuple(texts), lines)


def hot_lines(sources: Iterable[Source]) -> list[HotLine]:
    """Return all lines that executed instructions, the line with the greatest estimated cost first."""
    from .costs import cost  # imported late: `import cudart_py` needs this module, but no estimates

    costs = [
        (source, number, cost(metrics).seconds)
        for source in sources
        for number, metrics in sorted(source.lines.items())
    ]
    whole = sum(seconds for _, _, seconds in costs) or 1.0
    return sorted((HotLine(source, number, seconds / whole) for source, number, seconds in costs), key=_lightness)


def _lightness(line: HotLine) -> float:
    return -line.share
