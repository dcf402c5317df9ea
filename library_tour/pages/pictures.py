"""Pictures of a stop: files for the documentation site, or embedded in a run's page, which then needs no other file."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import plots
from ..diagrams.drawn import StepDiagram
from ..stop import Result

MISSING = "Pictures need matplotlib, the extra `plot`: pip install 'cudart-py[plot]'."
# The formats that a page shows, with their MIME types.
TYPES = {".svg": "image/svg+xml", ".gif": "image/gif"}


@dataclass(frozen=True)
class Shown:
    """A picture of a page: the address of its file or its SVG code, and a description of what it shows.

    `kind` is "diagram" for a picture that is shown at its own size, or "chart". `says` is a diagram's sentence, and
    `machine` names the machine that a chart's figures are from.
    """

    kind: str
    described: str
    address: str = ""
    svg: str = ""
    says: str = ""
    machine: str = ""


def available() -> bool:
    """Check whether charts can be drawn."""
    try:
        plots.require()
    except plots.MissingPlotExtraError:
        return False
    return True


class InPage:
    """Pictures that are embedded in the page itself."""

    def charts(self, name: str, results: Mapping[str, Result]) -> Iterator[Shown]:
        """Yield the charts of a stop's results, which are keyed by machine name."""
        with tempfile.TemporaryDirectory() as folder:
            for machine, result in results.items():
                for file, caption in plots.draw(name, "", result, Path(folder), formats=("svg",)).items():
                    data = base64.b64encode(file.read_bytes()).decode()
                    yield Shown("chart", caption, f"data:{TYPES[file.suffix]};base64,{data}", machine=machine)

    def diagrams(self, name: str, drawn: Sequence[StepDiagram]) -> list[tuple[StepDiagram, Shown]]:
        """Return diagrams with their pictures."""
        return [(of, Shown("diagram", of.described, svg=of.svg, says=of.says)) for of in drawn]


class Beside:
    """Pictures as files in a folder; `address` is the folder's address relative to a page."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder, self._address = folder, address
        folder.mkdir(parents=True, exist_ok=True)

    def charts(self, name: str, results: Mapping[str, Result]) -> Iterator[Shown]:
        """Yield the charts of a stop's results, which are keyed by machine name."""
        for at, (machine, result) in enumerate(results.items(), 1):
            for file, caption in plots.draw(f"{name}-{at}", "", result, self._folder, formats=("svg",)).items():
                yield Shown("chart", caption, f"{self._address}/{file.name}", machine=machine)

    def diagrams(self, name: str, drawn: Sequence[StepDiagram]) -> list[tuple[StepDiagram, Shown]]:
        """Return diagrams with their pictures."""
        shown = []
        for at, of in enumerate(drawn, 1):
            file = self._folder / f"{name}-diagram-{at}.svg"
            file.write_text(of.svg, encoding="utf-8")
            shown.append((of, Shown("diagram", of.described, f"{self._address}/{file.name}", says=of.says)))
        return shown
