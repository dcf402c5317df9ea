"""The command `library-tour`: run the stops of the tour, list them, write what they found."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

import cudart_py as cuda

from . import plots, record, report, stops, timing
from .runner import Outcome, run_stop

__all__ = ["main"]

GOOD, BAD, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 for a failed check or an error of a stop, or 2 for wrong usage."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        if options.command == "list":
            list_stops(as_json=options.json)
            return GOOD
        for name in options.stops:
            stops.module_name(name)
        check_outputs(options.json, options.plot)
        if options.driver:
            # Read at the first CUDA call, and nothing has made one yet.
            os.environ["CUDART_PY_DRIVER"] = options.driver
        if options.untimed:
            timing.turn_off()
        device = cuda.Device(options.device)
    except (stops.UnknownStopError, plots.MissingPlotExtraError, ValueError, OSError, cuda.NoDeviceError) as error:
        parser.exit(USAGE, f"library-tour: {error}\n")
    names = list(dict.fromkeys(options.stops)) or stops.names()
    environment = record.environment(device) if options.json else {}
    outcomes = tour(device, names, options.size)
    console = Console(highlight=False)
    if options.json:
        record.write(options.json, record.record(environment, outcomes))
        console.print(Text(f"written: {options.json}"), soft_wrap=True)
    if options.plot:
        draw(console, outcomes, options.plot)
    return BAD if any(outcome.bad for outcome in outcomes) else GOOD


def build_parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    parser = argparse.ArgumentParser(
        prog="library-tour", description="Tour CUDA, one topic a stop. Without a command, run every stop."
    )
    parser.add_argument("--version", action="version", version=f"library-tour {cuda.__version__}")
    parser.set_defaults(command="run", stops=[], size=None, json=None, plot=None, driver=None, device=0, untimed=False)
    commands = parser.add_subparsers(title="commands")
    list_ = commands.add_parser("list", help="name the stops")
    list_.add_argument("--json", action="store_true", help="as JSON on standard output")
    list_.set_defaults(command="list")
    run = commands.add_parser("run", help="run the named stops, or all")
    run.add_argument("stops", nargs="*", metavar="STOP", help="a name that `library-tour list` shows")
    run.add_argument("--size", type=positive, metavar="N", help="how much of what the stop counts")
    run.add_argument("--json", type=Path, metavar="FILE", help="write rows, checks and versions there")
    run.add_argument("--plot", type=Path, metavar="DIR", help="draw SVG and PNG there (needs matplotlib)")
    run.add_argument("--driver", choices=("cuda", "simulator"), help="a GPU or the software driver")
    run.add_argument("--untimed", action="store_true", help="check small sizes and time nothing, as under a sanitizer")
    run.add_argument("--device", type=int, default=0, metavar="N", help="the device's number, 0 at first")
    return parser


def positive(text: str) -> int:
    """Parse a whole number of at least one."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def check_outputs(json_file: Path | None, plot_folder: Path | None) -> None:
    """Refuse what could not be written later, before anything runs; make the folder of the plots."""
    if json_file:
        json_file.open("a").close()
    if plot_folder:
        plots.require()
        plot_folder.mkdir(parents=True, exist_ok=True)


def list_stops(*, as_json: bool) -> None:
    """Print every stop's name and title, in the tour's order."""
    if as_json:
        listed = []
        for name in stops.names():
            stop = stops.load(name)
            size = stop.SIZE and {"counts": stop.SIZE.counts, "full": stop.SIZE.full, "small": stop.SIZE.small}
            listed.append({"name": name, "title": stop.TITLE, "size": size})
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
        return
    Console(highlight=False).print(report.listing({name: stops.load(name).TITLE for name in stops.names()}))


def tour(device: cuda.Device, names: Sequence[str], size: int | None) -> list[Outcome]:
    """Run stops one after the other; print each one's report as it ends, and a closing summary of several."""
    console = Console(highlight=False)
    console.print(Text(title(device) + "\n", "bold"))
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip  # grouped by meaning
    outcomes = []
    with progress:
        task = progress.add_task("", total=len(names))
        for name in names:
            progress.update(task, description=name)
            outcome = run_stop(name, device, size)
            outcomes.append(outcome)
            console.print(report.outcome(outcome))
            progress.advance(task)
    if len(outcomes) > 1:
        console.print(report.summary(outcomes))
    return outcomes


def title(device: cuda.Device) -> str:
    """Return what the tour runs on, and whether its times mean anything."""
    major, minor = device.compute_capability
    driver = ".".join(map(str, cuda.driver_version()))
    text = f"{device.name}, compute capability {major}.{minor}, {device.sm_count} SMs, CUDA {driver}"
    if timing.available():
        return text
    reason = "" if "gpu_timing" in cuda.capabilities() else "This driver has no GPU's clock. "
    return f"{text}\n{reason}Results are checked, not timed."


def draw(console: Console, outcomes: Sequence[Outcome], folder: Path) -> None:
    """Draw every stop's pictures and name the files."""
    files = [file for done in outcomes for file in plots.draw(done.name, done.title, done.result, folder)]
    for file in files:
        console.print(Text(f"drawn: {file}"), soft_wrap=True)
    if not files:
        console.print(Text("drawn: nothing, for these stops' pictures are of a GPU's rates"))


if __name__ == "__main__":
    raise SystemExit(main())
