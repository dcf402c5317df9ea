"""Pages of the documentation, each run by a process of its own that begins with everything imported.

Run as a program, this is a server: it imports the toolkit once, and forks for each line of its standard input. CUDA is
not touched before that.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.documentation import blocks

RUNNERS = {"blocks": blocks.run_page, "coming_from": blocks.run_table}
LIMIT_S = 300


class Pages:
    """The server, and the file to which each page's process writes."""

    def __init__(self, written: Path) -> None:
        self._written = written
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.documentation.pages"],
            env=blocks.own_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, runner: str, page: Path, folder: Path, environment: dict[str, str]) -> str:
        """Run a page in a folder; return what went wrong."""
        assert self._server.stdin
        assert self._server.stdout
        request = {"runner": runner, "page": str(page), "folder": str(folder), "written": str(self._written)}
        print(json.dumps(request | {"environment": environment}), file=self._server.stdin, flush=True)
        status = int(self._server.stdout.readline())
        return f"status {status}\n{self._written.read_text(encoding='utf-8')}" if status else ""

    def close(self) -> None:
        """End the server."""
        self._server.communicate(timeout=LIMIT_S)


def begin(request: dict[str, object]) -> None:
    """Make this process one that has just been started in its folder and environment."""
    file = os.open(str(request["written"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, replaced in enumerate((nothing, file, file)):
        os.dup2(replaced, number)
    os.chdir(str(request["folder"]))
    sys.path[0] = str(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]  # it is a dictionary
    signal.alarm(LIMIT_S)


def serve() -> None:
    """Run the pages that are asked for, and print the status with which each process ends."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            begin(request)
            RUNNERS[request["runner"]](Path(request["page"]))
            return  # and end as any program does
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
