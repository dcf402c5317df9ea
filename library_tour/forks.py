"""Processes that start quickly: a server imports modules once, and forks for each function that is to run.

Run as a program, this is the server. It imports the modules named on its command line, and reads one request per line
of its standard input. It makes no CUDA call itself, because a fork of a process that has used CUDA cannot use it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Forks:
    """A server, which starts at the first request and ends with this process, however that ends.

    Requests from several threads run one after another.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._lock = threading.Lock()
        # The server's process, and the folder that it has made for input and output.
        self._server: tuple[subprocess.Popen[str], Path] | None = None

    def run(
        self,
        function: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        seconds: float,
        folder: str | None = None,
        input: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a function, named "module:function", in a new process, with its arguments in `sys.argv`.

        With a `folder`, the process begins there, and finds the folder's modules first. It reads `input` from its
        standard input. Raises subprocess.TimeoutExpired if it does not end within `seconds`.
        """
        with self._lock:
            server, exchanged = self._server = self._server or self._start()
            given, *written = (exchanged / name for name in ("input.txt", "output.txt", "errors.txt"))
            given.write_text(input, encoding="utf-8")
            request: dict[str, Any] = {
                "function": function,
                "arguments": list(arguments),
                "environment": dict(environment),
            }
            request |= {"seconds": seconds, "folder": folder}
            request |= {"files": [str(path) for path in (given, *written)]}
            assert server.stdin
            assert server.stdout
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            status = int(server.stdout.readline())
            output, errors = (path.read_text(encoding="utf-8") for path in written)
        if status == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(function, seconds)
        return subprocess.CompletedProcess([function, *arguments], status, output, errors)

    def _start(self) -> tuple[subprocess.Popen[str], Path]:
        # -P keeps the working directory off the path, because a file there may have the name of a module. The folder of
        # the package comes first, so that a checkout works without being installed.
        command = [sys.executable, "-P", "-m", __name__, *self._modules]
        path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path}
        pipe = subprocess.PIPE
        server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        assert server.stdout
        atexit.register(self.close)
        return server, Path(server.stdout.readline().rstrip("\n"))

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            server, _ = self._server
            server.terminate()
            server.communicate()
            self._server = None
            atexit.unregister(self.close)


def _begin(request: Mapping[str, Any]) -> None:
    """Make this process look as if it had just been started."""
    given, *written = request["files"]
    os.dup2(os.open(given, os.O_RDONLY), 0)
    for number, path in enumerate(written, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if request["folder"] is not None:
        os.chdir(request["folder"])
        sys.path.insert(0, request["folder"])
    sys.argv = [request["function"], *request["arguments"]]
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])


def main() -> None:
    """Serve until the standard input ends, which it does with the process that makes requests, or until SIGTERM."""
    # Ctrl-C ends the function's process, and the process that has requested it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    server, folder = os.getpid(), tempfile.mkdtemp()
    try:
        _answer(folder)
        for module in sys.argv[1:]:
            with contextlib.suppress(ImportError):  # llvmlite is an extra
                importlib.import_module(module)
        # The garbage collector would touch, and thus copy, the memory that forks share with this process.
        gc.freeze()
        for line in sys.stdin:
            request = json.loads(line)
            child = os.fork()
            if not child:
                _begin(request)
                module, name = request["function"].split(":")
                getattr(importlib.import_module(module), name)()
                return  # and exit as any program does
            _answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    finally:
        if os.getpid() == server:
            shutil.rmtree(folder)


def _answer(value: object) -> None:
    """Write the folder, or a function's exit status, for the process that makes requests."""
    with contextlib.suppress(BrokenPipeError):  # that process has been killed
        os.write(1, f"{value}\n".encode())


if __name__ == "__main__":
    main()
