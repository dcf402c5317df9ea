"""The command `cudart-py debug`: run a Python program under the debugger."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..driver.program_command import (
    CommandRefusedError,
    add_program_arguments,
    check_program,
    program_of,
    refuse,
    require,
)
from ..host.programs import Program

_LAST_PORT = 65535


def add_command(commands: Any) -> None:
    """Add `debug` to the subcommands of `cudart-py`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "debug",
        help="stop a program's kernels at breakpoints and mistakes, and inspect their warps",
        description="Run a Python program on the simulator under a debugger for its kernels. Commands are read from "
        "standard input, as in gdb: break, run, next, print and so on; help lists them. Kernels are compiled with -G. "
        "The exit status is the program's, or 2 if nothing can be debugged.",
    )
    parser.add_argument(
        "--break",
        action="append",
        default=[],
        dest="breakpoints",
        metavar="PLACE",
        help="set a breakpoint as the command break does, and start the program at once; may be repeated",
    )
    parser.add_argument(
        "--optimized",
        action="store_true",
        help="compile kernels with optimisation, as usual: their lines are approximate, and only registers have names",
    )
    parser.add_argument(
        "--no-findings", action="store_true", help="do not stop at the sanitizer's findings or at faults"
    )
    parser.add_argument(
        "--adapter",
        action="store_true",
        help="speak the Debug Adapter Protocol on standard input and output, for an editor, which may name the program",
    )
    parser.add_argument(
        "--screen",
        action="store_true",
        help="use a full-screen interface; needs the `debugger` extra, which installs Textual",
    )
    parser.add_argument(
        "--port", type=_port, help="like --adapter, with an editor that connects to this TCP port (0: any)"
    )
    add_program_arguments(parser, optional=True)
    parser.set_defaults(run=_debug, parser=parser)


def _debug(options: argparse.Namespace) -> int:
    try:
        return _run(options)
    except CommandRefusedError as error:
        return refuse("debug", error)


def _run(options: argparse.Namespace) -> int:
    require("debugger", "has no debugger; on a GPU, use cuda-gdb")
    if options.program is None:
        return _for_client(None, options) if _has_client(options) else options.parser.error("name a program")
    program = program_of(options)
    with program.place():
        check_program(program, options, "debug")
        if options.screen:
            return _on_screen(program, options)
        return _for_client(program, options) if _has_client(options) else _in_terminal(program, options)


def _on_screen(program: Program, options: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandRefusedError("--screen needs a terminal for standard input and output")
    try:
        from .interfaces.screen import Screen  # imported late, because Textual is an extra
    except ImportError as error:
        raise CommandRefusedError("--screen needs Textual: pip install 'cudart-py[debugger]'") from error
    try:
        screen = Screen(
            program, options.breakpoints, optimized=options.optimized, stop_at_findings=not options.no_findings
        )
    except ValueError as error:
        options.parser.error(f"argument --break: {error}")
    return screen.run() or 0


def _has_client(options: argparse.Namespace) -> bool:
    return options.adapter or options.port is not None


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: use a number from 0 to {_LAST_PORT:,}")
    return int(text)


def _for_client(program: Program | None, options: argparse.Namespace) -> int:
    from .adapter import running  # imported late, because other commands don't need it

    connection = running.on_standard_streams() if options.port is None else running.on_port(options.port)
    return running.run_for_client(connection, program, optimized=options.optimized)


def _in_terminal(program: Program, options: argparse.Namespace) -> int:
    from .attaching import attached  # imported late, like the modules below, because other commands don't need it
    from .commands import QuitDebugger
    from .interfaces.command_line import CommandLine
    from .interfaces.terminal import Streams, interrupting
    from .session import Session

    frontend = CommandLine(streams=Streams())
    session = Session(frontend, stop_at_findings=not options.no_findings)
    frontend.attach(session)
    try:
        for text in options.breakpoints:
            session.breakpoints.read(text)
    except ValueError as error:
        options.parser.error(f"argument --break: {error}")
    try:
        if options.breakpoints:
            frontend.running = True
        else:
            frontend.greet(options.program)
            frontend.read_commands()
        with attached(session, optimized=options.optimized), interrupting(session, frontend):
            status = program.run()
    except QuitDebugger:
        return 0
    except Exception as failure:
        status = 0 if frontend.has_quit else program.failed(failure)
    # A program such as pytest catches the end of its launch, and then ends by itself.
    if frontend.has_quit:
        return 0
    frontend.ended(session, status)
    return status
