"""Draws the picture in the guide to the debugger: `python -m tests.debugging.picture` (needs Textual)."""

import asyncio
import os
import re
import tempfile
from pathlib import Path

from cudart_py.debugging.interfaces.screen import Screen
from cudart_py.driver import backend
from cudart_py.host.programs import Program
from tests.debugging.test_guide import FILE, PAGE

PICTURE = PAGE.with_suffix(".svg")


async def drawn(program: Program) -> str:
    """Return the picture of a launch that has stopped at a race, with its shared memory."""
    screen = Screen(program, ["rotate if threadIdx.x == 0"])
    with program.place():
        async with screen.run_test(size=(160, 44)) as pilot:
            await screen.settled()
            await pilot.press("f5")
            await screen.settled()
            screen.show_pane("Shared")
            await pilot.pause(0.3)
            picture = screen.export_screenshot()
            await pilot.press("f5")
            return picture


def main() -> None:
    """Draw the picture of the page's program."""
    backend.select("simulator")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for match in FILE.finditer(PAGE.read_text()):
            Path(match[1]).write_text(match[2])
        picture = asyncio.run(drawn(Program("steps.py", ["rotate"], is_module=False)))
        os.chdir(PAGE.parent)
    # A picture in a page loads no fonts from elsewhere.
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    PICTURE.write_text("\n".join(line.rstrip() for line in picture.splitlines() if line.strip()) + "\n")


if __name__ == "__main__":
    main()
