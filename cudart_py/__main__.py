"""The command `cudart-py`: profile a program on the simulator, gate benchmarks by a baseline, report their history."""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .benchmark import gate_command
from .benchmark.history import report_command
from .driver import seam
from .profiling.annotated_source import annotated_sources
from .profiling.profiles import Profile, profile
from .version import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the program's exit status."""
    parser = argparse.ArgumentParser(prog="cudart-py", description="Tools around cudart_py.")
    parser.add_argument("--version", action="version", version=f"cudart-py {__version__}")
    commands = parser.add_subparsers(title="commands", required=True)
    profiled = commands.add_parser(
        "profile", help="count what a program's launches do, launch by launch and line by line"
    )
    profiled.add_argument("script", type=_program, help="the Python program")
    profiled.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is given")
    profiled.set_defaults(run=_profile)
    gate_command.add_command(commands)
    report_command.add_command(commands)
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status


def _program(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return path


def _profile(options: argparse.Namespace) -> int:
    """Profile a program on the driver that counts, whatever devices there are, unless another one is asked for."""
    if not os.environ.get(seam.ENVIRONMENT_VARIABLE):
        seam.select("simulator")
    return _profiled(options.script, options.arguments)


def _profiled(script: Path, arguments: Sequence[str]) -> int:
    """Run a program as Python runs it, then print what its launches did; return its exit status."""
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [str(script), *arguments], str(script.resolve().parent)
    status = 0
    counted = profile()
    try:
        with counted:
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as end:
                status = _status(end.code)
    finally:
        sys.argv, sys.path[0] = before
        # After the program's own output, also when it failed.
        _print(counted)
    return status


def _status(code: object) -> int:
    """Return the exit status for what a program passes to sys.exit; print a value that is no number, as Python does."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)  # noqa: T201  # because it is what Python prints
    return 1


_LEGEND = """\
sectors a load, a store: pieces of 32 bytes of global memory that a warp's
    instruction touches; 4 are enough for 32 lanes of 4 bytes
bank conflicts: turns that shared memory took beyond those that it must
active lanes: of a warp's 32, on average over instructions
Lines have the sum of all launches."""


def _print(counted: Profile) -> None:
    text = f"\n{counted}"
    if counted.launches:
        text += f"\n\n{_LEGEND}\n\n{annotated_sources(counted.launches)}"
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in text.splitlines())
    print(text)  # noqa: T201  # because it is the command's result


if __name__ == "__main__":
    sys.exit(main())
