"""Run stops, report what each found in their order, and write the requested files after each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

import cudart_py as cuda

from . import logbook, plots, processes, progress, ranks, record, report, timing
from .pages import folder as pages
from .roofline import CARDS, Card, draw_roofline, kernels_of
from .runner import Outcome
from .usage import wrong_usage_if

GOOD, BAD = 0, 1
# The status that a shell reports after SIGINT, which Ctrl-C sends.
INTERRUPTED = 130
STANDARD_OUTPUT = Path("-")


@dataclass
class Files:
    """Outputs besides the report: a JSON file or standard output, a folder of pictures, a folder of pages.

    `card` is the card whose roofline is drawn among the pictures.
    """

    json: Path | None = None
    plots: Path | None = None
    pages: Path | None = None
    card: Card = CARDS["h200"]
    drawn: list[Path] = field(default_factory=list)

    def check(self) -> None:
        """Reject outputs that cannot be written before anything runs, and create the folders.

        Raises UsageError for outputs that cannot be written, and MissingPlotExtraError if pictures are requested and
        matplotlib is missing.
        """
        if self.plots:
            plots.require()
        with wrong_usage_if(OSError):
            if self.json and self.json != STANDARD_OUTPUT:
                self.json.open("a").close()
            for folder in filter(None, (self.plots, self.pages)):
                folder.mkdir(parents=True, exist_ok=True)

    @property
    def console(self) -> Console:
        """The console for the report: standard error if the JSON goes to standard output."""
        return report.console(stderr=self.json == STANDARD_OUTPUT)

    def keep(self, environment: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
        """Write the results so far after each stop, so that an interrupted tour keeps them."""
        done = outcomes[-1]
        if self.json and self.json != STANDARD_OUTPUT:
            record.write(self.json, record.record(environment, outcomes))
        if self.plots:
            self.drawn += plots.draw(done.name, done.title, done.result, self.plots)
        if self.pages:
            pages.write_stop(self.pages, outcomes, environment)
            pages.write_index(self.pages, outcomes, environment)

    def end(self, environment: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
        """Write what goes to standard output, and print the names of the files that were written."""
        if self.json == STANDARD_OUTPUT:
            sys.stdout.write(record.text(record.record(environment, outcomes)))
            sys.stdout.flush()
        elif self.json:
            self._tell(f"written: {self.json}")
        if self.pages and outcomes:
            self._tell(f"written: {self.pages / 'index.html'}, and one page per stop")
        if self.plots:
            kernels = [kernel for done in outcomes for kernel in kernels_of(done.name, done.result.all_rows)]
            self.drawn += draw_roofline(kernels, self.plots, self.card)
        for file in self.drawn:
            self._tell(f"drawn: {file}")
        if self.plots and not self.drawn:
            self._tell("drawn: nothing, because these stops have no pictures or counters here")

    def _tell(self, line: str) -> None:
        self.console.print(Text(line), soft_wrap=True)


def run_stops(
    device: cuda.Device, names: Sequence[str], size: int | None, files: Files, together: ranks.Ranks | None
) -> int:
    """Run stops on a device; print each one's report, in their order, and a closing summary of several.

    Return the command's status. Among MPI ranks, the first one prints and writes, and the others print only what is
    wrong. A rank that cannot run a stop ends all ranks. Ctrl-C ends the tour with one line, and so does the end of a
    process that runs stops; reported stops are kept.
    """
    if together:
        together.warn_of_same_devices(device)
    writes = not (together and together.rank)
    environment = record.environment(device) if files.json or files.pages else {}
    console = files.console
    console.quiet = not writes
    console.print(Text(title(device) + "\n", "bold"))
    outcomes: list[Outcome] = []
    expected = {} if size else progress.recorded_seconds(names)
    name = ""
    try:
        with (
            progress.bar(console, names, expected) as steps,
            processes.outcomes_of(names, device, size) as found,
        ):
            for name in names:
                steps.begin(name)
                outcome = next(found)
                outcomes.append(outcome)
                if together and outcome.message:
                    together.end(f"{name}: {outcome.message}")
                console.quiet = console.quiet and not outcome.bad
                console.print(report.outcome(outcome))
                if writes:
                    files.keep(environment, outcomes)
                    logbook.add(run=[name] if outcome.state == "passed" else [])
                steps.end()
    except (KeyboardInterrupt, BrokenProcessPool) as end:
        if together:
            raise
        files.end(environment, outcomes)
        interrupted = isinstance(end, KeyboardInterrupt)
        what = "interrupted" if interrupted else "a process that ran stops was killed, perhaps because memory ran out,"
        sys.stderr.write(f"library-tour: {what} in {name}; {len(outcomes)} of {len(names)} stops have run\n")
        return INTERRUPTED if interrupted else BAD
    if len(outcomes) > 1:
        console.print(report.summary(outcomes))
    if writes:
        files.end(environment, outcomes)
    return BAD if any(outcome.bad for outcome in outcomes) else GOOD


def title(device: cuda.Device) -> str:
    """Return a line about the device, and one that says if results are not timed."""
    major, minor = device.compute_capability
    driver = ".".join(map(str, cuda.driver_version()))
    text = f"{device.name}, compute capability {major}.{minor}, {device.sm_count} SMs, CUDA {driver}"
    if timing.available():
        return text
    reason = "" if "gpu_timing" in cuda.capabilities() else "This driver has no GPU clock. "
    return f"{text}\n{reason}Results are checked, not timed."
