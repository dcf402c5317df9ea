"""The command `library-tour`: run the tour's stops, show one with its lesson, check an exercise, explain a term."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.text import Text

import cudart_py as cuda

from . import glossary, lesson, listing, logbook, path, plots, ranks, showing, stops, timing
from .ranks import Ranks
from .report import console
from .roofline import CARDS
from .tour import INTERRUPTED, Files, run_stops
from .usage import UsageError, wrong_usage_if

GOOD, USAGE = 0, 2
COMMANDS = ("list", "run", "show", "exercise", "glossary", "progress")
WHOLE_PATH = "all"
# Only the tour's own classes: a KeyError or an OSError in a stop is not wrong usage, and keeps its traceback.
USAGE_ERRORS = (
    UsageError,
    stops.UnknownStopError,
    path.UnknownRouteError,
    lesson.MissingLessonError,
    lesson.UnknownExerciseError,
    glossary.UnknownTermError,
    logbook.UnreadableProgressError,
    plots.MissingPlotExtraError,
    ranks.MissingMpiError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Return 0 for success, 1 for a failed check, an error in a stop or a wrong answer, 2 for wrong usage, or 130 after
    Ctrl-C.
    """
    try:
        return run_command(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("library-tour: interrupted\n")
        return INTERRUPTED


def run_command(arguments: Sequence[str] | None) -> int:
    """Run the command that the arguments name; return its status."""
    parser = build_parser()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and (advice := meant(words[0])):
        parser.exit(USAGE, f"library-tour: {advice}\n")
    options = parser.parse_args(words)
    try:
        if options.command == "list":
            listing.print_stops(options.route, as_json=options.json)
            return GOOD
        if options.command == "progress":
            print_progress(options.route, reset=options.reset)
            return GOOD
        if options.command == "glossary":
            showing.explain(" ".join(options.term))
            return GOOD
        if options.command == "exercise":
            return showing.exercise(options.exercise, options.file, hint=options.hint, solution=options.solution)
        names = names_to_run([options.stop] if options.command == "show" else options.stops)
        files = Files(options.json, options.plot, options.html, CARDS[options.card])
        files.check()
        if options.driver:
            # The variable is read at the first CUDA call, which is still to come.
            os.environ["CUDART_PY_DRIVER"] = options.driver
        if options.untimed:
            timing.turn_off()
        together = ranks.world()
    except USAGE_ERRORS as error:
        parser.exit(USAGE, f"library-tour: {error}\n")
    with together.ending_together() if together else nullcontext():
        try:
            device = chosen_device(options.device, together)
        except USAGE_ERRORS as error:
            parser.exit(USAGE, f"library-tour: {error}\n")
        if options.command == "show":
            return showing.show(options.stop, device, options.size, together, draw=options.draw)
        return run_stops(device, names, options.size, files, together)


def chosen_device(number: int | None, together: Ranks | None) -> cuda.Device:
    """Return device `number`; without a number, this rank's device or device 0. Raise UsageError if there is none."""
    with wrong_usage_if(ValueError, cuda.errors.NoDeviceError):
        return together.own_device() if together and number is None else cuda.Device(number or 0)


def meant(word: str) -> str:
    """Return what to type instead if the word is a stop's name, or similar to one, and not a command; "" otherwise."""
    if word in COMMANDS or word.startswith("-"):
        return ""
    if word in stops.names():
        return f"{word} is a stop: `library-tour run {word}` runs it, and `library-tour show {word}` explains it"
    near = difflib.get_close_matches(word, [*COMMANDS, *stops.names()], n=1)
    if not near or near[0] in COMMANDS:
        return ""
    return f"there is no command {word!r}; did you mean `library-tour run {near[0]}`?"


def names_to_run(asked: Sequence[str]) -> Sequence[str]:
    """Return the requested stops; without a request all stops, or under mpiexec those that ranks can run together.

    Raises UnknownStopError for a name that no stop has, and UsageError for a stop that ranks cannot run.
    """
    for name in asked:
        stops.module_name(name)
    if not ranks.started_by_mpi():
        return list(dict.fromkeys(asked)) or stops.names()
    alone = [name for name in asked if name not in stops.SEVERAL_DEVICES]
    if alone:
        raise UsageError(
            f"{alone[0]} runs in one process: start it without mpiexec, which is for {', '.join(stops.SEVERAL_DEVICES)}"
        )
    return list(dict.fromkeys(asked)) or stops.SEVERAL_DEVICES


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="library-tour", description="Tour CUDA, one topic per stop. Without a command, run every stop."
    )
    parser.add_argument("--version", action="version", version=f"library-tour {cuda.__version__}")
    parser.set_defaults(
        command="run", stops=[], size=None, json=None, plot=None, html=None, driver=None, device=None, untimed=False,
        card="h200",
    )  # fmt: skip  # grouped by meaning
    commands = parser.add_subparsers(title="commands")
    list_ = commands.add_parser("list", help="list the stops by chapter")
    list_.add_argument(
        "--route",
        type=route_name,
        default="",
        metavar="ROUTE",
        help=f"the stops of one route: {', '.join(path.ROUTES)}; or {WHOLE_PATH} for the whole path",
    )
    list_.add_argument("--json", action="store_true", help="write JSON to standard output")
    list_.set_defaults(command="list")
    run = commands.add_parser("run", help="run the given stops, or all of them")
    run.add_argument("stops", nargs="*", metavar="STOP", help="the name of a stop, as listed by `library-tour list`")
    run.add_argument(
        "--json", type=Path, metavar="FILE", help="write rows, checks and versions to this file; - is standard output"
    )
    run.add_argument(
        "--plot", type=Path, metavar="DIR", help="write plots to this folder, as SVG and PNG (needs matplotlib)"
    )
    run.add_argument(
        "--card",
        choices=CARDS,
        default="h200",
        help="the GPU for which --plot draws the roofline if kernels are counted; by default h200",
    )
    run.add_argument("--html", type=Path, metavar="DIR", help="write one page per stop to this folder, with its lesson")
    run.add_argument(
        "--untimed", action="store_true", help="check small sizes without timing them, for example under a sanitizer"
    )
    show_ = commands.add_parser("show", help="run a stop and explain it: its code step by step, and its exercise")
    show_.add_argument("stop", metavar="STOP", help="the name of a stop, as listed by `library-tour list`")
    show_.add_argument("--draw", action="store_true", help="draw how the kernels of the steps access memory")
    show_.set_defaults(command="show")
    for command in (run, show_):
        command.add_argument(
            "--size", type=positive, metavar="N", help="the size of the problem, in the unit that the stop uses"
        )
        command.add_argument("--driver", choices=("cuda", "simulator"), help="a GPU or the simulator")
        command.add_argument(
            "--device",
            type=int,
            metavar="N",
            help="the device's number, by default 0; ranks take the devices of a host one after another",
        )
    exercise = commands.add_parser("exercise", help="start a stop's exercise, or check an answer on the simulator")
    exercise.add_argument("exercise", metavar="STOP", help="a stop's name; some stops have STOP/easy and STOP/hard too")
    exercise.add_argument("file", nargs="?", type=Path, metavar="FILE", help="an answer to check")
    exercise.add_argument(
        "--hint",
        type=int,
        nargs="?",
        const=1,
        default=0,
        choices=(1, 2, 3),
        metavar="N",
        help="print a hint: the first, second or third",
    )
    exercise.add_argument("--solution", action="store_true", help="print the solution and why it is right")
    exercise.set_defaults(command="exercise")
    explain = commands.add_parser("glossary", help="explain a CUDA term")
    explain.add_argument(
        "term", nargs="*", metavar="TERM", help="a term such as bank conflict; by default, list all terms"
    )
    explain.set_defaults(command="glossary")
    progress = commands.add_parser(
        "progress", help="list the stops that you have seen, and your passed and open exercises"
    )
    progress.add_argument(
        "--route",
        type=route_name,
        metavar="ROUTE",
        help=f"follow one route from now on: {', '.join(path.ROUTES)}; or {WHOLE_PATH} for the whole path",
    )
    progress.add_argument("--reset", action="store_true", help="forget the progress and the route")
    progress.set_defaults(command="progress")
    return parser


def print_progress(route: str | None, *, reset: bool) -> None:
    """Print the reader's progress, after switching to `route` if one is given, or reset the progress.

    Raises UnknownRouteError, UnreadableProgressError or UsageError.
    """
    if reset:
        logbook.reset()
        console().print(f"reset: {logbook.file()}", soft_wrap=True)
        return
    if route is not None:
        logbook.follow(route)
    for part in logbook.summary():
        console().print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))


def route_name(text: str) -> str:
    """Return the name of a route, "" for the whole path."""
    return "" if text == WHOLE_PATH else text


def positive(text: str) -> int:
    """Parse an integer that must be at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
