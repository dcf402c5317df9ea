"""The benchmark of the stops for several devices: its runs, its tables, and the model beside them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cudart_py as cuda
from tests.benchmarks.peers import device_model as model
from tests.benchmarks.peers import device_tables as tables
from tests.benchmarks.peers import devices
from tests.benchmarks.peers.report import Report

ROOT = Path(__file__).parents[2]
PERF = """
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
        1024           256     float     sum      -1    12.34    0.08    0.09      0    12.20    0.08    0.10      0
  1073741824     268435456     float     sum      -1   2856.1  375.95  375.95      0   2860.3  375.39  375.39    N/A
# Avg bus bandwidth    : 187.9
"""


def documented(heading: str) -> list[list[float]]:
    """Return the numbers of the guide's table whose first line begins with a text."""
    lines = (ROOT / "docs" / "many-devices.md").read_text().split(heading)[1].split("\n\n")[0].splitlines()[2:]
    return [[float(number.replace(",", "")) for number in re.findall(r"[\d,.]*\d", line)] for line in lines]


def test_the_model_is_that_of_the_guide():
    alone = model.halo_seconds(1, 16384, 16384)["computing"]
    for gpus, *numbers in documented("| GPUs | strong: computing"):
        strong, weak = (model.halo_seconds(int(gpus), rows, 16384) for rows in (16384 / gpus, 16384))
        expected = [1e6 * seconds for seconds in strong.values()]
        expected += [alone / gpus / strong["overlapped"], 1e6 * weak["overlapped"]]
        expected += [alone / weak[way] for way in ("overlapped", "in turn")]
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


def test_the_lines_of_nccls_tests_are_read():
    assert tables.perf_lines(PERF) == [(1024.0, 0.09), (2.0**30, 375.95)]


def test_a_weak_product_has_the_work_of_so_many():
    assert [tables.weak_size(8192, count) for count in (1, 2, 4, 8)] == [8192, 10240, 13056, 16384]


def a_run(stop: str, count: int, rows: dict, size: int = 16384, pictures: dict | None = None) -> dict:
    """Return what a run on so many GPUs leaves, as the benchmark keeps it."""
    outcome = {
        "state": "passed",
        "size": size,
        "checks": [{"holds": True}, {"holds": True}],
        "rows": [{"name": name, "values": values} for name, values in rows.items()],
        "pictures": [{"name": name, "lines": lines} for name, lines in (pictures or {}).items()],
    }
    return {"stop": stop, "mode": "one process", "count": count, "seconds": 9.0, "state": "passed", "outcome": outcome}


def test_figures_are_those_of_all_devices_with_their_predictions_and_the_report_says_what_did_not_run():
    overlapped = {"ms": 0.26, "GB/s": 8259.0, "efficiency": 0.97, "hidden": 0.95}
    plates = {"one strip": {"ms": 0.5, "efficiency": 1.0}, "overlapped": overlapped, "larger plate": overlapped}
    rates = {"one device": [[8192, 50.0], [10240, 50.0]], "SUMMA": [[8192, 90.0], [10240, 96.0]]}
    found = {
        "left_out": [4, 8],
        "without_ranks": True,
        "nccl_tests": {"2": [[4096, 0.5]]},
        "runs": [
            a_run("halo", 1, {"overlapped": overlapped}),
            a_run("halo", 2, plates),
            a_run("all_reduce", 2, {"NCCL": {"ms": 3.0, "GB/s": 357.0}}, 2**28, {"bandwidth": {"NCCL": [[4096, 0.4]]}}),
            a_run("distributed_gemm", 2, {}, 10240, {"rates": rates}),
            a_run("monte_carlo_ranks", 2, {"weak scaling": {"ms": 1.0, "efficiency": 0.99, "devices": 2}}),
            {"stop": "halo", "mode": "ranks", "count": 2, "seconds": 1.0, "state": "failed", "said": ["no"]},
        ],
    }
    figures = list(tables.figures(found))
    assert [(each.stop, each.way, each.scaling, each.size, each.efficiency) for each in figures] == [
        ("halo", "overlapped", "strong", 16384, 0.97),
        ("halo", "larger plate", "weak", 16384, 0.97),
        ("all_reduce", "NCCL", "", 2**28, None),
        ("distributed_gemm", "SUMMA", "strong", 8192, 0.9),
        ("distributed_gemm", "SUMMA", "strong", 10240, 0.96),
        ("distributed_gemm", "SUMMA", "weak", 10240, 0.96),
        ("monte_carlo_ranks", "weak scaling", "weak", 16384, 0.99),
    ]
    predicted = {(each.stop, each.way): each.predicted for each in figures if each.predicted}
    assert predicted[("halo", "overlapped")] == pytest.approx(1)
    assert predicted[("distributed_gemm", "SUMMA")] == pytest.approx(0.995, abs=0.003)
    assert predicted[("all_reduce", "NCCL")] == pytest.approx(392.5, rel=0.001)
    report = Report.of("devices", "two GPUs" + tables.left_out(found), tables.tables(found))
    page = str(report)
    assert all(
        text in page for text in ("two GPUs; ", "want of devices: 4, 8", "no ranks ran", "failed", "0.96", "392")
    )
    assert report.tables[-1].headings == ["bytes", "NCCL, one process", "model", "NCCL's tests"]
    assert report.status == 1


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


def test_a_run_that_takes_too_long_ends_with_its_ranks():
    ran = devices.run("halo", 61, 1, "one process", 0.01)
    assert ran["state"] == "failed"
    assert ran["said"][-1] == "ended after 0.01 seconds"
