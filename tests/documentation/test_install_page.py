"""docs/guide/install.md lists every extra, every capability and every variable of the environment."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import cudart_py as cuda

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "install.md").read_text(encoding="utf-8")
FIRST_CELLS = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")]
NAMES = [name for cell in FIRST_CELLS for name in re.findall(r"`([^`]+)`", cell)]


def test_every_extra_is_listed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) <= set(NAMES)


def test_every_capability_is_listed():
    assert set(re.findall(r"^    \| `(\w+)`", cuda.capabilities.__doc__, re.MULTILINE)) <= set(NAMES)


def test_the_variables_are_those_of_the_package():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "cudart_py").rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"\bCUDART_PY_[A-Z]+(?:_[A-Z]+)*\b", source)}
    assert used == {name for name in NAMES if name.startswith("CUDART_PY_")}
