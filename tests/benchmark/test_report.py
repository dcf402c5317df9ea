"""`cudart-py report`: the contents of its page, and its errors if there is nothing to report."""

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cudart_py.__main__ import main

pytest_plugins = ["pytester"]

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


class Page:
    """A page, parsed as XML after removing its void elements, which have no end tags."""

    def __init__(self, html):
        self.html = html
        self.root = ElementTree.fromstring(re.sub(r"<!DOCTYPE html>|<(meta|wbr|br)\b[^>]*>", "", html))

    def all(self, path):
        """Return the texts of the elements that match an XPath expression."""
        return ["".join(found.itertext()) for found in self.root.findall(f".//{path}")]

    @property
    def text(self):
        return "".join(self.root.itertext())

    def rows(self, kind):
        rows = self.root.findall(f".//table[@class='{kind}']//tr")
        return [["".join(cell.itertext()) for cell in row] for row in rows]


@pytest.fixture
def report(store, tmp_path, capsys):
    """Return a function that makes the report of the store."""

    def make():
        path = tmp_path / "page.html"
        assert main(["report", str(store.folder), "-o", str(path)]) == 0
        assert capsys.readouterr().out.endswith(f"written: {path}\n")
        return Page(path.read_text(encoding="utf-8"))

    return make


def launch(sectors):
    return {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], SECTORS: sectors}


def test_a_step_is_marked_with_its_commit(store, report):
    for seconds in [1e-3] * 7 + [1.1e-3] * 6:
        store.add({"t.py::a": seconds, "t.py::b": 2e-3})
    page = report()
    assert page.rows("steps")[1:] == [
        ["t.py::a", "+10.0 % worse", "time", "1 ms", "1.1 ms", "00000080", "2026-03-09", "0008_run"]
    ]
    assert page.all("svg/text[@class='worse']") == ["00000080"]
    assert page.all("svg/path[@class='step worse']") == [""]
    assert page.all("figure/ul/li[@class='worse']") == [
        "+10.0 %, worse: 1 ms to 1.1 ms at commit 00000080, after 00000070 (2026-03-09, run 0008_run)"
    ]


@pytest.mark.parametrize(
    ("runs", "said"),
    [(6, "No benchmark has a step in these 6 runs."), (1, "Steps can be detected after 6 runs of a benchmark.")],
)
def test_a_history_without_steps_says_so_or_how_many_runs_are_needed(store, report, runs, said):
    for _ in range(runs):
        store.add({"t.py::a": 1e-3})
    page = report()
    assert said in page.text
    assert 'path class="step' not in page.html


def test_the_latest_run_is_beside_the_one_before(store, report):
    single = [(seconds, {}, {"q1": seconds, "q3": seconds}) for seconds in (1e-3, 2e-3)]
    store.add({"t.py::a": 1e-3, "t.py::gone": 1, "t.py::same": 1e-6, "t.py::single": single[0], "t.py::unsteady": 1e-3})
    unsteady = (1.02e-3, {}, {"q1": 0.0009})
    times = {"t.py::a": 1.2e-3, "t.py::new": 1, "t.py::same": 1.001e-6}
    store.add(times | {"t.py::single": single[1], "t.py::unsteady": unsteady})
    page = report()
    assert [row[:4] for row in page.rows("latest")] == [
        ["benchmark", "now", "change", "before"],
        ["t.py::a", "1.2 ms", "+20.0 % slower", "1 ms"],
        ["t.py::new", "1 s", "new", ""],
        ["t.py::same", "1.001 us", "+0.1 %", "1 us"],
        ["t.py::single", "2 ms", "+100.0 %", "1 ms"],
        ["t.py::unsteady", "1.02 ms", "+2.0 %", "1 ms"],
    ]
    assert [row[4] for row in page.rows("latest")[:2]] == ["spread", "0.2 %"]
    assert "Benchmarks of earlier runs that it does not have: 1." in page.text


def test_ratios_to_others_are_in_the_table_and_have_trends(store, report):
    peers = {name: {"median": 1.0, "ratio": ratio, "spread": 0.01} for name, ratio in {"CuPy": 0.9, "C": 1.25}.items()}
    for _ in range(2):
        store.add({"t.py::a": (1e-3, {"beside": peers})})
    page = report()
    assert page.rows("latest")[1][-1] == "1.25 × C, 0.9 × CuPy"
    assert page.all("figcaption") == ["time, at last 1 ms", "ratio to C, at last 1.25", "ratio to CuPy, at last 0.9"]


def test_memory_is_beside_times_and_its_increase_is_a_step(store, report):
    for memory in (0, 0, 4096):
        store.add({"t.py::a": (1e-3, {"memory": memory})})
    page = report()
    assert page.rows("latest")[1][page.rows("latest")[0].index("memory")] == "4,096 bytes"
    assert page.rows("steps")[1][:5] == ["t.py::a", "+4,096 worse", "memory", "0", "4,096"]


def test_counts_have_a_table_trends_and_their_steps(store, report):
    for sectors, added in ((100, 0), (100, 0), (150, 12)):
        store.add(counted={"t.py::a": [launch(sectors)], "t.py::b": [launch(7)], "t.py::zero": [launch(added)]})
    page = report()
    assert page.all("h2") == ["Counts of a simulator", "Runs"]
    assert page.rows("latest") == [
        ["benchmark", "sectors"],
        ["t.py::a", "150 (+50.0 % since run 0002_run, worse)"],
        ["t.py::b", "7"],
        ["t.py::zero", "12 (+12 since run 0002_run, worse)"],
    ]
    assert [row[:3] for row in page.rows("steps")[1:]] == [
        ["t.py::a", "+50.0 % worse", "sectors"],
        ["t.py::zero", "+12 worse", "sectors"],
    ]
    assert page.all("figcaption") == ["sectors, at last 150", "sectors, at last 12"]
    assert page.all("article/p") == ["The same in every run: sectors 7."]


def test_a_step_of_counts_names_the_versions_of_nvrtc_where_they_differ(store, report):
    for sectors, nvrtc in ((1, "13.0.88"), (2, "13.5.37"), (3, "13.5.37")):
        store.add(counted={"t.py::a": [launch(sectors)]}, nvrtc=nvrtc)
    first, second = report().all("figure/ul/li[@class='worse']")
    assert first.endswith("compiled by NVRTC 13.5.37 instead of 13.0.88")
    assert "NVRTC" not in second


BENCHMARK = """
import numpy as np
import cudart_py as cuda

def test_fill(gpu_benchmark):
    x = cuda.zeros(1000, np.float32)
    kernel = cuda.compile('extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1; }')["fill"]
    gpu_benchmark(kernel[1, 256].bind(x), bytes=1024)
"""


def test_what_the_plugin_stores_can_be_reported(run, store, report):
    """The plugin stores times if the driver has device times, and counts if it has counters."""
    for _ in range(2):
        options = ["--benchmark-max-time=0.01", "--benchmark-save=run", f"--benchmark-storage={store.folder}"]
        run(BENCHMARK, *options).assert_outcomes(passed=1)
    page = report()
    assert page.rows("latest")[1][0] == "test_it.py::test_fill"
    assert [row[0] for row in page.rows("runs")[1:]] == ["0002_run", "0001_run"]


@pytest.mark.parametrize("ceilings", [True, False])
def test_the_roofline_has_the_kernels_whose_rates_are_known_and_the_ceilings(store, report, ceilings):
    known = {"ceiling": "copy", "of ceiling": 4 / 4.2}, {"ceiling": "fp32", "of ceiling": 40 / 60}
    of_sum, of_matmul = known if ceilings else ({}, {})
    store.add(
        {
            "t.py::sum": (1e-3, {"GB/s": 4000, "TFLOP/s": 1, **of_sum}),
            "t.py::matmul": (1e-2, {"GB/s": 100, "TFLOP/s": 40, **of_matmul}),
            "t.py::plain": (1.0, {}),
        }
    )
    page = report()
    assert page.all("div[@class='roofline']/ol/li") == [
        "t.py::sum: 0.25 operations per byte, 1 TFLOP/s",
        "t.py::matmul: 400 operations per byte, 40 TFLOP/s",
    ]
    assert page.all("text[@class='number']") == ["1", "2"]
    assert ("copy 4,200 GB/s, fp32 60 TFLOP/s" in page.text) == ceilings
    assert ("This run measured no ceilings." in page.text) != ceilings
    assert page.all("path[@class='roof']") == ["", ""] * ceilings


def test_runs_of_dirty_work_trees_are_marked_and_other_drivers_have_a_section_of_their_own(store, report):
    for driver, dirty in (("570.1", False), ("580.2", False), ("580.2", True)):
        gpu = {"devices": ["NVIDIA H200"], "driver": driver}
        store.add({"t.py::a": 1.0}, machine=store.machine | {"gpu": gpu}, dirty=dirty)
    page = report()
    assert "Roofline" not in page.text
    assert page.rows("runs")[1:3] == [
        ["0003_run", "2026-03-04 12:00 UTC", "00000030+", "uncommitted changes", "1"],
        ["0002_run", "2026-03-03 12:00 UTC", "00000020", "", "1"],
    ]
    assert len(page.all("circle[@class='point dirty']/title")) == 1
    assert "The latest is 0003_run (2026-03-04, commit 00000030+, uncommitted changes)." in page.text
    assert page.all("section[@class='setup']/h2") == ["Times on NVIDIA H200"] * 2
    facts = [text for text in page.all("section[@class='setup']/p") if text.startswith("driver")]
    assert facts == [f"driver {driver}, A processor, CPython 3.12" for driver in ("580.2", "570.1")]


@pytest.mark.parametrize("runs", [1, 2])
def test_the_page_needs_nothing_else_and_names_are_text(store, report, runs):
    name = "t.py::a[<script>alert(1)</script>&\"']"
    for sectors in range(runs):
        store.add({name: (1.0, {"device": "<b>"})}, counted={name: [launch(sectors)]})
    page = report()
    elements = list(page.root.iter())
    leading = [each for each in elements if each.attrib.keys() & {"href", "src"}]
    assert {each.tag for each in leading} == {"a"}
    assert {each.get("href") for each in leading} <= {f"#{each.get('id')}" for each in elements}
    for absent in ("url(", "@import", "<script"):
        assert absent not in page.html
    assert name in page.text
    assert "Times on <b>" in page.text


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.0, 1e-3], [1e-9, 5.0], [1e-3] * 40])
def test_any_times_can_be_drawn(store, report, values):
    for value in values:
        store.add({"t.py::a": value})
    page = report()
    assert len(page.all("circle[@class='point']/title")) == len(values)
    assert not re.search(r"\b(nan|inf)\b", page.html)


@pytest.mark.parametrize(
    ("content", "page", "message"),
    [
        (None, "page.html", "the folder "),
        ({}, "page.html", "has no stored runs"),
        ({"0001_x.json": "{"}, "page.html", "0001_x.json is not a run"),
        ("a run", "nowhere/page.html", "page.html cannot be written: No such file"),
    ],
    ids=["missing", "empty", "broken", "no place for the page"],
)
def test_what_cannot_be_reported_is_named_in_one_line(store, tmp_path, capsys, content, page, message):
    if content == "a run":
        store.add({"t.py::a": 1.0})
    elif content is not None:
        store.folder.mkdir()
        for name, text in content.items():
            (store.folder / name).write_text(text)
    assert main(["report", str(store.folder), "-o", str(tmp_path / page)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("cudart-py report: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / page).exists()


def test_the_guides_command_writes_the_page_that_it_names_and_report_html_is_the_usual_one(store, monkeypatch):
    guide = (Path(__file__).parents[2] / "docs" / "tracking.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^cudart-py (report .*)$", guide, re.MULTILINE)
    store.add({"t.py::a": 1.0})
    monkeypatch.chdir(store.folder.parent)
    for words, written in ((shlex.split(command), "benchmarks.html"), (["report"], "report.html")):
        assert main(words) == 0
        assert Path(written).is_file()
