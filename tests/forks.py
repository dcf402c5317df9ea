"""Functions that run in separate processes, each of which starts with everything imported."""

import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from library_tour import forks

ROOT = Path(__file__).parents[1]
LIMIT_S = 300
PACKAGES = ("cudart_py.simulator", "library_tour.course")


def own_environment() -> dict[str, str]:
    """Return this process's environment, with the checkout added to PYTHONPATH."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


class Forks:
    """A server that has imported the simulator and the tour."""

    def __init__(self) -> None:
        found = (pkgutil.walk_packages(import_module(package).__path__, f"{package}.") for package in PACKAGES)
        self._server = forks.Forks([module.name for modules in found for module in modules])
        self.close = self._server.close

    def run(
        self,
        function: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | str = ".",
        input: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a function, named "module:function", in a new process, with its arguments in `sys.argv`."""
        place = os.path.abspath(folder)
        return self._server.run(function, arguments, environment, seconds=LIMIT_S, folder=place, input=input)


def run_program() -> None:
    """Run the program that is the last argument, as `python -c` does."""
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    program = sys.argv.pop()
    sys.argv[0] = "-c"
    exec(compile(program, "<string>", "exec"), vars(main))


def run_command() -> None:
    """Run a command of `cudart-py`, with the arguments in `sys.argv`."""
    sys.exit(import_module("cudart_py.__main__").main())
