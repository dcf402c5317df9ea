"""The command `cudart-py`: run, profile or debug programs on the simulator; check, compare and report benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from .benchmark.commits import continuous_command, find_command, history_command
from .benchmark.gates import gate_command
from .benchmark.history import report_command
from .debugging import debug_command
from .profiling import profile_command
from .standins.command import run_command
from .version import __version__


class _CommandParser(argparse.ArgumentParser):
    """The parser of one command, whose errors show the usage of that command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; argparse would leave unknown ones to the parser of all commands."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the program's exit status."""
    parser = argparse.ArgumentParser(prog="cudart-py", description="Tools around cudart_py.")
    parser.add_argument("--version", action="version", version=f"cudart-py {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, parser_class=_CommandParser)
    profile_command.add_command(commands)
    debug_command.add_command(commands)
    gate_command.add_command(commands)
    find_command.add_command(commands)
    continuous_command.add_command(commands)
    history_command.add_command(commands)
    report_command.add_command(commands)
    run_command.add_command(commands)
    options = parser.parse_args(run_command.with_explicit_file(sys.argv[1:] if arguments is None else arguments))
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
