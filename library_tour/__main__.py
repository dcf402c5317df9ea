"""The command `library-tour`: run the stops of the tour, list them, write what they found."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

import cudart_py as cuda

from . import plots, ranks, record, report, stops, timing
from .runner import Outcome, run_stop

__all__ = ["main"]

GOOD, BAD, USAGE = 0, 1, 2
USAGE_ERRORS = (
    stops.UnknownStopError,
    plots.MissingPlotExtraError,
    ranks.MissingMpiError,
    ValueError,
    OSError,
    cuda.NoDeviceError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 for a failed check or an error of a stop, or 2 for wrong usage."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        if options.command == "list":
            list_stops(as_json=options.json)
            return GOOD
        names = names_to_run(options.stops)
        check_outputs(options.json, options.plot)
        if options.driver:
            # Read at the first CUDA call, and nothing has made one yet.
            os.environ["CUDART_PY_DRIVER"] = options.driver
        if options.untimed:
            timing.turn_off()
        together = ranks.world()
    except USAGE_ERRORS as error:
        parser.exit(USAGE, f"library-tour: {error}\n")
    with together.ending_together() if together else nullcontext():
        try:
            number = options.device
            device = together.own_device() if together and number is None else cuda.Device(number or 0)
        except USAGE_ERRORS as error:
            parser.exit(USAGE, f"library-tour: {error}\n")
        return run_stops(device, names, options, together)


def names_to_run(asked: Sequence[str]) -> Sequence[str]:
    """Return the stops that are asked for, or all, or all that ranks can run together where mpiexec has started this.

    Raises UnknownStopError for a name that no stop has, and ValueError for one that ranks cannot run.
    """
    for name in asked:
        stops.module_name(name)
    if not ranks.started_by_mpi():
        return list(dict.fromkeys(asked)) or stops.names()
    alone = [name for name in asked if name not in stops.SEVERAL_DEVICES]
    if alone:
        raise ValueError(
            f"{alone[0]} runs in one process: start it without mpiexec, which is for {', '.join(stops.SEVERAL_DEVICES)}"
        )
    return list(dict.fromkeys(asked)) or stops.SEVERAL_DEVICES


def run_stops(
    device: cuda.Device, names: Sequence[str], options: argparse.Namespace, together: ranks.Ranks | None
) -> int:
    """Run stops on a device, and write what the options ask for; return the command's status."""
    if together:
        together.warn_of_same_devices(device)
    environment = record.environment(device) if options.json else {}
    writes = not (together and together.rank)  # of ranks the first one
    drawn: list[Path] = []

    def keep(outcomes: Sequence[Outcome]) -> None:
        """Write what is known after each stop, so that a tour that is broken off leaves it."""
        if writes and options.json:
            record.write(options.json, record.record(environment, outcomes))
        if writes and options.plot:
            done = outcomes[-1]
            drawn.extend(plots.draw(done.name, done.title, done.result, options.plot))

    outcomes = tour(device, names, options.size, together, keep)
    if writes:
        tell_files(options.json, options.plot, drawn)
    return BAD if any(outcome.bad for outcome in outcomes) else GOOD


def build_parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    parser = argparse.ArgumentParser(
        prog="library-tour", description="Tour CUDA, one topic a stop. Without a command, run every stop."
    )
    parser.add_argument("--version", action="version", version=f"library-tour {cuda.__version__}")
    parser.set_defaults(
        command="run", stops=[], size=None, json=None, plot=None, driver=None, device=None, untimed=False
    )
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
    run.add_argument(
        "--device", type=int, metavar="N", help="the device's number, 0 at first; ranks take a host's devices in turn"
    )
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


def tour(
    device: cuda.Device,
    names: Sequence[str],
    size: int | None,
    together: ranks.Ranks | None,
    keep: Callable[[Sequence[Outcome]], None],
) -> list[Outcome]:
    """Run stops one after the other; print each one's report as it ends, and a closing summary of several.

    `keep` is called with the outcomes so far after each stop.
    Of ranks the first one prints, and the others only what is wrong. One that cannot run a stop ends all.
    """
    console = Console(highlight=False, quiet=bool(together and together.rank))
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
            if together and outcome.message:
                together.end(f"{name}: {outcome.message}")
            console.quiet = console.quiet and not outcome.bad
            console.print(report.outcome(outcome))
            keep(outcomes)
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


def tell_files(json_file: Path | None, plot_folder: Path | None, drawn: Sequence[Path]) -> None:
    """Print the names of the files that were written and drawn."""
    console = Console(highlight=False)
    if json_file:
        console.print(Text(f"written: {json_file}"), soft_wrap=True)
    for file in drawn:
        console.print(Text(f"drawn: {file}"), soft_wrap=True)
    if plot_folder and not drawn:
        console.print(Text("drawn: nothing, for these stops' pictures are of a GPU's rates"))


if __name__ == "__main__":
    raise SystemExit(main())
