"""The example on the page that explains how to add a PTX instruction works."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from cudart_py.simulator.ptx.compiling.opcode_table import opcodes, video_opcodes
from cudart_py.simulator.ptx.instructions import video
from tests.simulator.checks import test_uninitialised
from tests.simulator.ptx.machine import Kernels
from tests.simulator.ptx.operations import test_integers

PAGE = Path(__file__).parents[3] / "docs" / "adding-a-ptx-instruction.md"
TEXT = PAGE.read_text()
[KERNEL] = re.findall(r"```cpp\n(.*?)```", TEXT, re.DOTALL)
[ERROR] = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
LOAD, *_ = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
LOWERING, ROW, TEST, DEFINED, UNDEFINED = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def added(monkeypatch):
    """Add the page's lowering and its row of the table for one test."""
    names = dict(vars(video))
    exec(LOWERING, names)
    monkeypatch.setattr(video, "vavrg4", names["vavrg4"], raising=False)
    monkeypatch.setitem(opcodes.TABLE, "vavrg4", [eval(ROW, dict(vars(video_opcodes)))])
    opcodes.find_forms.cache_clear()
    yield
    opcodes.find_forms.cache_clear()


def test_the_pages_command_fails_with_the_pages_error(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("average.cu").write_text(KERNEL)
    setting, *command, program = shlex.split(LOAD)
    assert (setting, command) == ("CUDART_PY_DRIVER=simulator", ["uv", "run", "python", "-c"])
    done = python(program, check=False, CUDART_PY_DRIVER="simulator")
    expected = re.escape(ERROR).replace("…", ".*")
    assert re.search(rf"^{expected}\Z", done.stderr, re.MULTILINE), done.stderr


def test_the_pages_instruction_runs(added, engine):
    kernels = Kernels(KERNEL, engine=engine)
    a, b = np.random.default_rng().integers(0, 256, (2, 33, 4), np.uint8)
    out = kernels.zeros(33)
    kernels.launch("average", 1, 33, out, kernels.put(a), kernels.put(b))
    expected = (a.astype(int) + b + 1) // 2
    assert (kernels.get(out, 132, np.uint8).reshape(33, 4) == expected).all()


def test_the_pages_case_passes(added, engine, monkeypatch):
    [text] = case = eval(TEST)
    monkeypatch.setattr(test_integers, "CASES", case)
    [(_, operands, rows)] = test_integers.run([text], engine)
    test_integers.check(text, engine, operands, rows)


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("a kernel is wrong on purpose")
def test_the_pages_bytes_are_followed(added, device):
    [defined] = eval(DEFINED).values()
    [undefined] = eval(UNDEFINED).values()
    module = test_uninitialised.loaded([defined, undefined])
    assert not test_uninitialised.reported(module, 0)
    assert "uninitialised value reaches a store" in test_uninitialised.reported(module, 1)[0]


def test_the_page_names_what_is_there():
    for path in re.findall(r"`((?:cudart_py|tests|docs)/[\w./-]+)`", TEXT):
        assert (PAGE.parents[1] / path).exists(), path
