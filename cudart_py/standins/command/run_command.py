"""The command `cudart-py run`: run any CUDA program, with the simulator as its driver."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...compilation import cache
from ...driver.backend import ENVIRONMENT_VARIABLE
from ...findings import reports
from ...findings.options import add_report_options, report_format
from .. import profile_report
from ..library import StandInError, libraries, preloaded
from ..library_names import ASSEMBLER
from ..messages import say
from . import executables
from .nvcc import CompilationError, compile_program

REFUSED = 2
_INTERRUPTED = 130
_CANNOT_EXECUTE = 126
_SANITIZER_VARIABLE = "CUDART_PY_SANITIZER"
_LIBRARY_PATH = "LD_LIBRARY_PATH"
_PRELOAD = "LD_PRELOAD"
_ASSEMBLERS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
_COMPILED = (".cu", ".cpp", ".cc", ".c")  # by nvcc
_WITH_VALUE = ("--sanitizer", "--sanitize-report", "--sanitize-format")


def add_command(commands: Any) -> None:
    """Add `run` to the subcommands of `cudart-py`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="run a CUDA program without a GPU: an executable, a Python script or a .cu file",
        description="Run a program with the simulator as its CUDA driver. PROGRAM is an executable that uses libcuda "
        "or the shared CUDA runtime (nvcc's option --cudart shared) and contains PTX, a Python script, or a .cu file, "
        "which is compiled with nvcc first. Mistakes that the simulator finds in kernels are reported on standard "
        "error. The exit status is the program's, 126 if the system cannot execute it, or 2 if something else keeps it "
        "from being started.",
        usage="cudart-py run [-h] [--sanitizer MODE] [--sanitize-report FILE] [--sanitize-format FORMAT] "
        "[--profile[=FILE.html]] [-m] PROGRAM [ARGUMENTS ...]",
        allow_abbrev=False,  # `with_explicit_file` knows the options by their whole names
    )
    parser.add_argument(
        "-m", action="store_true", dest="as_module", help="PROGRAM is a Python module, as for python -m"
    )
    parser.add_argument(
        "--sanitizer",
        choices=("warn", "error", "off"),
        help="report mistakes in kernels (warn, the default), let the call that finds one fail (error), or do not "
        "look for them (off)",
    )
    parser.add_argument(
        "--profile",
        nargs="?",
        const=profile_report.TERMINAL,
        metavar="=FILE.html",
        help="at the end, print what the launches did on standard error, or write it as a page to a file, whose name "
        "must follow an equals sign",
    )
    add_report_options(parser, file=str)  # the file is begun, and thus checked, before the program starts
    parser.add_argument("program", metavar="PROGRAM", help="the program")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="its arguments")
    rest.required = False  # a missing PROGRAM is reported without them
    parser.set_defaults(run=_run)


def with_explicit_file(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `cudart-py` with `run --profile` written so that PROGRAM is not taken for its file."""
    if arguments[:1] != ["run"]:
        return list(arguments)
    program = 1
    while program < len(arguments) and arguments[program].startswith("-"):
        program += 2 if arguments[program] in _WITH_VALUE else 1
    explicit = f"--profile={profile_report.TERMINAL}"
    options = [explicit if text == "--profile" else text for text in arguments[:program]]
    return [*options, *arguments[program:]]


def _run(options: argparse.Namespace) -> int:
    try:
        options.sanitize_format = report_format(options.sanitize_report, options.sanitize_format, options.sanitizer)
    except ValueError as error:
        return _refuse(str(error))
    try:
        program, arguments = _command(options)
        environment = _environment(options)
        _begin_files(options)
    except (StandInError, CompilationError, profile_report.NotAPageError, OSError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:  # while something is compiled
        return _INTERRUPTED
    if isinstance(program, str):
        if reason := executables.why_not(Path(program)):
            return _refuse(f"{options.program!r} cannot be executed: {reason}", _CANNOT_EXECUTE)
        if executables.is_static(Path(program)):
            say(f"{options.program!r} is linked statically, so the simulator can serve only programs that it starts")
    # Python ignores these signals, and a program would inherit that.
    ignored = {which: signal.signal(which, signal.SIG_DFL) for which in (signal.SIGPIPE, signal.SIGXFSZ)}
    try:
        # The program takes the place of this process, so signals reach it and its exit status is the command's.
        os.execve(program, arguments, environment)
    except OSError as error:
        for which, handler in ignored.items():
            signal.signal(which, handler)
        return _refuse(f"{arguments[0]!r} cannot be executed: {error.strerror}", _CANNOT_EXECUTE)


def _begin_files(options: argparse.Namespace) -> None:
    """Write the report and the profile without content, since a program that never uses CUDA has them too.

    Raises OSError if a file cannot be written, and NotAPageError if the profile would replace another file.
    """
    place = options.sanitize_report or options.profile
    try:
        if options.sanitize_report:
            reports.write_file([], options.sanitize_report, options.sanitize_format)
        if options.profile not in (None, profile_report.TERMINAL):
            place = options.profile
            profile_report.begin_page(place)
    except OSError as error:
        raise OSError(f"{place!r} cannot be written: {error.strerror}") from error


def _command(options: argparse.Namespace) -> tuple[str | int, list[str]]:
    """Return an executable, by its path or as an open file, and the program's name and arguments."""
    if options.as_module:
        return sys.executable, [sys.executable, "-m", options.program, *options.arguments]
    source = Path(options.program)
    if source.suffix not in (".py", *_COMPILED):
        found = str(source) if source.is_file() else shutil.which(options.program)
        if found is None and source.is_dir():
            raise FileNotFoundError(f"{options.program!r} is a folder, not a program")
        if found is None:
            raise FileNotFoundError(f"there is no program {options.program!r}")
        return os.path.abspath(found), [options.program, *options.arguments]
    if not source.is_file():
        kind = "is a folder, not a file" if source.is_dir() else "does not exist"
        raise FileNotFoundError(f"{options.program!r} {kind}")
    if source.suffix == ".py":
        return sys.executable, [sys.executable, options.program, *options.arguments]
    with tempfile.TemporaryDirectory(prefix="cudart-py-") as folder:
        # The open file outlives its name, so that nothing is left to be removed after the program.
        program = os.open(compile_program(source, Path(folder), libraries()), os.O_RDONLY)
    return program, [source.stem, *options.arguments]


def _environment(options: argparse.Namespace) -> dict[str, str]:
    """Return the environment of the program: the stand-ins come first where the loader looks for libraries."""
    folder = libraries()
    if not {":", ";"}.isdisjoint(str(folder)):
        raise StandInError(
            f"the loader finds no libraries in {str(folder)!r}, because its name has a colon or a semicolon; set "
            f"{cache.ENVIRONMENT_VARIABLE} to another folder"
        )
    environment = dict(os.environ)
    _prepend(environment, _LIBRARY_PATH, str(folder))
    # Python packages load these by their paths, unless a library of that name is loaded already. Blanks separate the
    # paths in this variable, so libraries in a folder with a blank are found by their names.
    has_blank = any(letter.isspace() for letter in str(folder))
    _prepend(environment, _PRELOAD, *(path.name if has_blank else str(path) for path in preloaded(folder)))
    if (folder / ASSEMBLER).is_file():
        environment.update(dict.fromkeys(_ASSEMBLERS, str(folder / ASSEMBLER)))
    environment[ENVIRONMENT_VARIABLE] = "simulator"
    if options.sanitizer:
        environment[_SANITIZER_VARIABLE] = options.sanitizer
    if options.sanitize_report:
        place = options.sanitize_report
        environment[reports.FILE_VARIABLE] = place if place == reports.STANDARD_OUTPUT else os.path.abspath(place)
        environment[reports.FORMAT_VARIABLE] = options.sanitize_format
    if options.profile:
        place = options.profile
        environment[profile_report.VARIABLE] = place if place == profile_report.TERMINAL else os.path.abspath(place)
        # The program takes the place of this process. Its children have other numbers.
        environment[profile_report.PROCESS_VARIABLE] = str(os.getpid())
    return environment


def _prepend(environment: dict[str, str], name: str, *values: str) -> None:
    parts = [*values, environment.get(name, "")]
    environment[name] = os.pathsep.join(part for part in parts if part)


def _refuse(why: str, status: int = REFUSED) -> int:
    print(f"cudart-py run: {why}", file=sys.stderr)  # noqa: T201  # the command's own message
    return status
