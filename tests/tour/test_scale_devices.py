"""The benchmark of the stops for several devices: its runs, its tables, and the model that they are compared with."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cudart_py as cuda
from tests.benchmarks.peers import device_model as model
from tests.benchmarks.peers.report import Report

ROOT = Path(__file__).parents[2]


def documented(heading: str) -> list[list[float]]:
    """Return the rows of numbers of the table of docs/many-devices.md whose first line begins with `heading`."""
    lines = (ROOT / "docs" / "many-devices.md").read_text().split(heading)[1].split("\n\n")[0].splitlines()[2:]
    return [[float(number.replace(",", "")) for number in re.findall(r"[\d,.]*\d", line)] for line in lines]


def test_the_model_is_that_of_the_guide():
    alone = model.halo_seconds(1, 16384, 16384)["computing"]
    for gpus, *numbers in documented("| GPUs | strong: computation"):
        strong, weak = (model.halo_seconds(int(gpus), rows, 16384) for rows in (16384 / gpus, 16384))
        expected = [1e6 * seconds for seconds in strong.values()]
        expected += [alone / gpus / strong["overlapped"], 1e6 * weak["overlapped"]]
        expected += [alone / weak[way] for way in ("overlapped", "sequential")]
        assert numbers == pytest.approx(expected, abs=0.051, rel=0.006)
    for gpus, *numbers in documented("| GPUs | 4 KiB"):
        seconds = [model.all_reduce_seconds(int(gpus), nbytes) for nbytes in (2**12, 2**22, 2**30)]
        bandwidth = 1e-9 * model.bus_bandwidth(gpus, 2**30, seconds[-1])
        assert numbers == pytest.approx([*(1e3 * each for each in seconds), bandwidth], rel=0.003)
    for gpus, *numbers in documented("| GPUs | 8,192 rows"):
        expected = []
        for size in (8192, 16384, 32768):
            taken = model.product_seconds(int(gpus), size)
            expected += [1e3 * taken, model.product_seconds(1, size) / gpus / taken]
        assert numbers == pytest.approx(expected, rel=0.002, abs=0.0051)


@pytest.mark.exhaustive  # three interpreters, two of which compile
def test_the_command_runs_a_stop_in_two_ranks(mpiexec, tmp_path):
    file = tmp_path / "devices.json"
    command = [sys.executable, "-m", "tests.benchmarks.peers", "devices", "--counts", "2", "--modes", "ranks"]
    command += ["--stops", "monte_carlo_ranks", "--size", "61", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = Report.read(file)
    if "in_process" not in cuda.capabilities() and len(cuda.devices()) < 2:
        assert "want of devices: 2" in found.where
        return
    [ran] = found.tables[0].rows
    assert ran[0] == "monte_carlo_ranks on 2, ranks, size 61"
    assert "passed" in ran[-1]
