"""The part that commands share which run a Python program on the simulator."""

from __future__ import annotations

import argparse
import os
import sys

from ..host.programs import Program
from . import backend
from .capabilities import capabilities

REFUSED = 2


class CommandRefusedError(Exception):
    """The reason why a command cannot do what was requested."""


def add_program_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the arguments that name a program, after all other arguments of a command."""
    parser.add_argument("-m", action="store_true", dest="as_module", help="the program is a module, as for python -m")
    parser.add_argument(
        "program", nargs="?" if optional else None, help="the Python program: a file, or with -m a module"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for the program")


def require(capability: str, otherwise: str) -> None:
    """Select the simulator, even on a machine with GPUs, unless the environment selects a driver.

    Raises CommandRefusedError if the driver lacks a capability; `otherwise` says what it lacks, and the remedy.
    """
    if not os.environ.get(backend.ENVIRONMENT_VARIABLE):
        backend.select("simulator")
    if capability not in capabilities():
        raise CommandRefusedError(f"the driver that {backend.ENVIRONMENT_VARIABLE} names {otherwise}")


def program_of(options: argparse.Namespace) -> Program:
    """Return the program that the arguments name."""
    return Program(options.program, options.arguments, is_module=options.as_module)


def check_program(program: Program, options: argparse.Namespace, command: str) -> None:
    """Check inside `program.place()` that a program exists and is in Python.

    A missing program is a usage error. Raises CommandRefusedError for a program in another language.
    """
    if not program.exists:
        options.parser.error(f"{program} does not exist")
    other = program.other_language
    if other is not None:
        raise CommandRefusedError(
            f"{command} takes a Python program, and {options.program} is {other}. {command.capitalize()} a program "
            "that compiles the kernels with cudart_py.compile and launches them"
        )


def refuse(command: str, why: object) -> int:
    """Print why a command cannot do what was requested, and return its exit status."""
    print(f"cudart-py {command}: {why}", file=sys.stderr, flush=True)  # noqa: T201  # for the user
    return REFUSED
