"""Run a program for a client of the Debug Adapter Protocol."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from typing import Any

from ...host.programs import Program
from ..attaching import attached
from .connection import Connection, OutputEvents
from .server import Adapter


def on_standard_streams() -> Connection:
    """Return the connection to a client that has started this process; nothing else may write to its output then."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return Connection(sys.stdin.buffer, target)


def on_port(port: int) -> Connection:
    """Wait for a client at a TCP port of this machine; port 0 stands for any port that is free."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        port = listening.getsockname()[1]
        print(f"waiting at port {port}", file=sys.stderr, flush=True)  # noqa: T201  # the client may not know the port
        connected, _ = listening.accept()
    return Connection(connected.makefile("rb"), connected.makefile("wb"))


def run_for_client(connection: Connection, program: Program | None, *, optimized: bool) -> int:
    """Run a program, or the one that the client's launch request names, and return its exit status."""
    adapter = Adapter(connection)
    serving = threading.Thread(target=adapter.serve, name="cudart_py debug adapter", daemon=True)
    serving.start()
    launch = adapter.configured.get()
    status = 1
    output, errors = (OutputEvents(connection, category) for category in ("stdout", "stderr"))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        chosen = program or _program_of(launch)
        if chosen is None or not chosen.exists:
            print(f"the program {launch.get('program', '')!r} does not exist", file=sys.stderr)  # noqa: T201  # for the user
        else:
            status = _run(adapter, chosen, optimized=optimized or bool(launch.get("optimized")))
    adapter.ended(status)
    serving.join()
    return status


def _program_of(launch: dict[str, Any]) -> Program | None:
    """Return the program that a launch request names by `program` or `module`, with `args`, `cwd` and `env`."""
    os.environ.update({name: str(value) for name, value in (launch.get("env") or {}).items()})
    if launch.get("cwd"):
        os.chdir(launch["cwd"])
    name = launch.get("program") or launch.get("module")
    return Program(name, launch.get("args") or [], is_module="module" in launch) if name else None


def _run(adapter: Adapter, program: Program, *, optimized: bool) -> int:
    with program.place(), attached(adapter.session, optimized=optimized):
        try:
            return program.run()
        except Exception as failure:
            return program.failed(failure)
