"""Functions that run in separate processes, each of which starts with everything imported.

Run as a program, this is a server: it imports the toolkit and the tour once, and forks once per line of its standard
input. The server itself makes no CUDA call.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
LIMIT_S = 300


def own_environment() -> dict[str, str]:
    """Return this process's environment, with the checkout added to PYTHONPATH."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


class Forks:
    """A server that starts at the first request, and the files with the input and the output of each process.

    Requests from several threads run one after another.
    """

    def __init__(self, folder: Path) -> None:
        self._input, *self._written = [folder / name for name in ("input.txt", "output.txt", "errors.txt")]
        self._lock = threading.Lock()
        self._server: subprocess.Popen[str] | None = None

    def run(
        self,
        function: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | str = ".",
        input: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a function, named "module:function", in a new process, with its arguments in `sys.argv`."""
        request = {"function": function, "arguments": arguments, "environment": dict(environment)}
        files = {"input": str(self._input), "written": [*map(str, self._written)]}
        places = {"folder": os.path.abspath(folder), **files}
        with self._lock:
            self._input.write_text(input, encoding="utf-8")
            self._server = self._server or start()
            assert self._server.stdin
            assert self._server.stdout
            print(json.dumps(request | places), file=self._server.stdin, flush=True)
            status = int(self._server.stdout.readline())
            output, errors = (path.read_text(encoding="utf-8") for path in self._written)
        return subprocess.CompletedProcess([function, *arguments], status, output, errors)

    def close(self) -> None:
        if self._server:
            self._server.communicate(timeout=LIMIT_S)


def start() -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-m", "tests.forks"], subprocess.PIPE
    return subprocess.Popen(command, env=own_environment(), stdin=pipe, stdout=pipe, text=True)


def import_everything() -> None:
    for package in ("cudart_py.simulator", "library_tour.course"):
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            with contextlib.suppress(ImportError):  # llvmlite is an extra
                importlib.import_module(module.name)


def begin(request: Mapping[str, object]) -> None:
    """Make this process look as if it had just been started in the request's folder and environment."""
    written = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in request["written"]]
    given = os.open(request["input"], os.O_RDONLY)
    for number, replaced in enumerate((given, *written)):
        os.dup2(replaced, number)
    os.chdir(request["folder"])
    sys.argv = [request["function"], *request["arguments"]]
    sys.path[0] = request["folder"]
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.alarm(LIMIT_S)


def run_program() -> None:
    """Run the program that is the last argument, as `python -c` does."""
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    program = sys.argv.pop()
    sys.argv[0] = "-c"
    exec(compile(program, "<string>", "exec"), vars(main))


def run_command() -> None:
    """Run a command of `cudart-py`, with the arguments in `sys.argv`."""
    sys.exit(importlib.import_module("cudart_py.__main__").main())


def serve() -> None:
    """Run each requested function in a fork, and print the exit status of its process."""
    import_everything()
    # Otherwise the last collection of each process would visit all imported objects, and so copy their memory pages.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            begin(request)
            module, name = request["function"].split(":")
            getattr(importlib.import_module(module), name)()
            return  # and exit as any program does
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
