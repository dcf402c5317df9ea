"""The debugger's full-screen interface: its keys, its commands and its panes."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.debugging.conftest import KERNELS, column

pytest.importorskip("textual", reason="Textual is not installed")
from cudart_py.debugging.interfaces.screen import Screen  # needs Textual
from cudart_py.host.programs import Program  # as above

pytestmark = pytest.mark.needs("debugger")

PROGRAM = """
from pathlib import Path

import numpy as np

import cudart_py as cuda

module = cuda.compile(Path(__file__).with_name("kernels.cu"))
x = cuda.to_device(np.arange(1, 65, dtype=np.float32))
out = cuda.zeros(1, np.float32)
module["total"][1, 64](x, out, 64)
print("total", out.to_host()[0])
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "kernels.cu").write_text(KERNELS)
    (tmp_path / "program.py").write_text(PROGRAM)
    return Program(str(tmp_path / "program.py"), [], is_module=False)


def test_keys_step_both_ways_and_the_panes_follow(program):
    numbers = np.arange(1, 65, dtype=np.float32)
    folded = numbers[:32] + numbers[32:]

    async def session() -> None:
        screen = Screen(program, ["kernels.cu:15 if step == 16"])
        async with screen.run_test(size=(120, 40)) as pilot:
            await screen.settled()
            assert "active lanes 0x0000ffff" in screen.text_of("place")
            assert ">   15              tile[threadIdx.x] += tile[threadIdx.x + step];" in screen.text_of("lines")
            assert list(map(float, column(screen.text_of("lanes"), "value"))) == numbers[:16].tolist()
            await pilot.press(*"print", "space", *"tile", "left_square_bracket", "0", "right_square_bracket", "enter")
            assert screen.said[-1] == f"{folded[0]:g}"
            await pilot.press("up", "enter")
            assert screen.said[-2:] == ["> print tile[0]", f"{folded[0]:g}"]
            await pilot.press("up", "up", "up", "down", "down")
            assert screen.query_one("#command").value == ""
            for command, shown in (("print/x step", "0x10"), ("x/dw &i", "has no address"), ("ptype i", "type = int")):
                screen.action_command(command)
                assert shown in screen.said[-1], command
            await pilot.press("f8")
            await screen.settled()
            await pilot.press(*"delete", "enter", "f7")
            await pilot.pause()
            assert "[in the past]" in screen.text_of("place")
            assert ">   15" in screen.text_of("lines")
            await pilot.press("f5")
            await pilot.pause()
            assert "[in the past]" not in screen.text_of("place")
            await pilot.press("f5")
            await screen.settled()
            assert screen.said[-2:] == [f"total {numbers.sum()}", "The program has ended with status 0."]

    with program.place():
        asyncio.run(session())
