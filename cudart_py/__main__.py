"""The command `cudart-py`: run, profile or debug programs on the simulator; check, compare and report benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .standins.command import run_command
from .version import __version__

# The module of each command. Importing all of them would take as long as importing the rest of the package.
_MODULES = {
    "profile": "profiling.profile_command",
    "debug": "debugging.debug_command",
    "gate": "benchmark.gates.gate_command",
    "find": "benchmark.commits.find_command",
    "continuous": "benchmark.commits.continuous_command",
    "history": "benchmark.commits.history_command",
    "report": "benchmark.history.report_command",
    "run": "standins.command.run_command",
}


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
    given = list(sys.argv[1:] if arguments is None else arguments)
    # The help and the error for an unknown command list all commands.
    for name in given[:1] if given and given[0] in _MODULES else _MODULES:
        import_module(f".{_MODULES[name]}", __package__).add_command(commands)
    options = parser.parse_args(run_command.with_explicit_file(given))
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
