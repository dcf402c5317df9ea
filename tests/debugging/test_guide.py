"""The sessions in the guide to the debugger."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("debugger")

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "debugger.md"
FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
_SESSION = re.compile(r"<!-- session: (\S+) -->\n```text\n(.*?)```", re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


# All sessions in one process, because starting one takes longer than a session.
RUNNER = """
import io
import sys

import cudart_py as cuda
from cudart_py.__main__ import main

for path in sys.argv[1:]:
    with open(path) as file:
        sys.stdin = io.StringIO(file.read())
    with open(path, "w") as sys.stdout:
        main(["debug", "steps.py", path])
    cuda.reset()
"""


def test_the_sessions_on_the_page_show_what_the_debugger_shows(tmp_path):
    page = PAGE.read_text()
    for match in FILE.finditer(page):
        (tmp_path / match[1]).write_text(match[2])
    sessions = dict(match.groups() for match in _SESSION.finditer(page))
    for name, shown in sessions.items():
        commands = re.findall(r"^\(cudart-py\) (.*)$", shown, re.MULTILINE)
        (tmp_path / name).write_text("".join(f"{command}\n" for command in commands))
    command = [sys.executable, "-c", RUNNER, *sessions]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    # The program fails as it does without the debugger.
    assert "IllegalAddressError" in done.stderr
    for name, shown in sessions.items():
        # The page leaves out the lines of source that a report quotes, as these are shown below it.
        output = re.sub(r"^    \d+ \| .*\n", "", (tmp_path / name).read_text(), flags=re.MULTILINE)
        assert doctest.OutputChecker().check_output(shown, output, OPTIONS), f"{output}\n{done.stderr}"
