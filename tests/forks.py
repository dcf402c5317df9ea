"""Functions that run in processes of their own, each of which begins with everything imported.

Run as a program, this is a server: it imports the toolkit and the tour once, and forks for each line of its standard
input. CUDA is not touched before that.
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
    """Return this process's environment, in which the checkout's modules are found."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


class Forks:
    """The server, which starts when it is first asked, and the files in a folder to which each process writes.

    Threads that ask at the same time wait for each other.
    """

    def __init__(self, folder: Path) -> None:
        self._written = [folder / name for name in ("output.txt", "errors.txt")]
        self._lock = threading.Lock()
        self._server: subprocess.Popen[str] | None = None

    def run(
        self, function: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path | str = "."
    ) -> subprocess.CompletedProcess[str]:
        """Run a function, named "module:function", with its arguments in `sys.argv`."""
        request = {"function": function, "arguments": arguments, "environment": dict(environment)}
        places = {"folder": os.path.abspath(folder), "written": [*map(str, self._written)]}
        with self._lock:
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
    """Make this process one that has just been started in its folder and environment."""
    written = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in request["written"]]
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, replaced in enumerate((nothing, *written)):
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


def serve() -> None:
    """Run the functions that are asked for, and print the status with which each process ends."""
    import_everything()
    # Else each process would look at all that is imported when it ends, in pages of its own.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            begin(request)
            module, name = request["function"].split(":")
            getattr(importlib.import_module(module), name)()
            return  # and end as any program does
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
