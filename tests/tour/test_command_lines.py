"""The command lines of docs/command-lines.md, for nvcc and for the tour, are right."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from library_tour import counters, stops
from library_tour.command import build_parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command-lines.md").read_text(encoding="utf-8")
BLOCKS = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", "")
COMMANDS = [shlex.split(line, comments=True) for line in BLOCKS.splitlines()]


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=() if "-cubin" in command else pytest.mark.exhaustive)
        for command in COMMANDS
        if command[0] == "nvcc"
    ],
    ids=" ".join,
)
def test_nvcc_compiles_what_the_page_says(command, tmp_path):
    done = subprocess.run([*command[:-1], str(ROOT / command[-1])], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / command[command.index("-o") + 1]).stat().st_size


def test_the_tours_command_lines_are_valid():
    tours = [command[command.index("library-tour") + 1 :] for command in COMMANDS if "library-tour" in command]
    assert len(tours) > 5
    for arguments in tours:
        assert set(build_parser().parse_args(arguments).stops) <= set(stops.names())


def test_the_metrics_are_those_of_the_tour():
    known = {metric for column in counters.COLUMNS.values() for metric in (*column.over, *column.under)}
    [metrics] = [command[command.index("--metrics") + 1] for command in COMMANDS if "--metrics" in command]
    assert set(metrics.split(",")) <= known
