"""`cuda.debugger()`: the debugger inside a program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from ..base import arguments
from ..compilation.requests import texts


def debugger(*breakpoints: str, commands: Sequence[str] | None = None) -> AbstractContextManager[None]:
    """Stop the kernels that are launched inside the block, and execute the debugger's commands.

        with cuda.debugger("scan.cu:12 if threadIdx.x == 3"):
            kernel = cuda.compile(Path("scan.cu"))["scan"]
            kernel[grid, block](x)

    Each of `breakpoints` is a line, as FILE:LINE or LINE, or the name of a kernel, with the same conditions as the
    command `break`; without one, the first kernel stops at its first line. Kernels also stop at the sanitizer's
    findings and at faults. `commands` are executed one after another, and the launches then go on without further
    stops. Without them, commands are read from standard input, and `help` lists them.

    Sources that are compiled inside the block are compiled with `-G`, so that their variables have names; for other
    kernels, the debugger knows only the lines and the registers. Work that was queued before the block runs first, and
    the end of the block waits for the work queued inside.

    Entering the block raises NotSupportedError if the driver lacks the capability `debugger`, as a GPU's driver does:
    use cuda-gdb there. The call raises ValueError for a breakpoint that is not understood.
    """
    from .breakpoints import Breakpoints  # imported late, like the modules below, because few programs need them

    for position, text in enumerate(breakpoints):
        arguments.text("debugger", f"breakpoints[{position}]", text)
        try:
            Breakpoints().read(text)
        except ValueError as error:
            raise arguments.unusable("debugger", f"breakpoints[{position}]", f"name a place: {error}", text) from None
    return _debugging(breakpoints, None if commands is None else texts("debugger", "commands", commands))


@contextlib.contextmanager
def _debugging(breakpoints: Sequence[str], commands: Sequence[str] | None) -> Iterator[None]:
    # Imported late, as above.
    from .attaching import attached
    from .interfaces.command_line import CommandLine
    from .interfaces.terminal import interrupting
    from .session import Session

    frontend = CommandLine(commands)
    frontend.running = True
    session = Session(frontend, stop_at_entry=not breakpoints)
    frontend.attach(session)
    for text in breakpoints:
        session.breakpoints.read(text)
    with attached(session), interrupting(session, frontend):
        yield
