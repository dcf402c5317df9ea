"""`cudart-py profile`: what it runs, what it writes and where, and what it refuses."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cudart_py.__main__ import main
from cudart_py.driver import seam
from cudart_py.profiling.report.launch_table import shortened
from tests.documentation.blocks import blocks_of

pytestmark = pytest.mark.needs("profile")

ROOT = Path(__file__).parents[2]
LANES = "smsp__thread_inst_executed.sum"


def test_a_module_runs_as_python_runs_it(program):
    (program.folder / "package").mkdir()
    (program.folder / "package" / "__init__.py").touch()
    (program.folder / "package" / "__main__.py").write_text("import runpy, slow\nprint('the package ran')\n")
    done = program.profile("-m", "slow", "transpose")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("arguments ['transpose'] __main__\n")
    assert "out[x * n + y] = in[y * n + x];" in done.stdout
    assert "the package ran" in program.profile("-m", "package").stdout


def test_loads_and_stores_stand_apart_on_one_line(program):
    lines = program.profile("slow.py", "transpose").stdout.splitlines()
    at = lines.index("slow.cu")
    assert lines[at + 1 : at + 3] == ["sect. sect. used% used% active", " load store  load store  lanes  line"]
    line = next(line for line in lines if "in[y * n + x]" in line)
    assert line.split()[:6] == ["4.0", "32.0", "100.0", "12.5", "32.0", "4"]


def test_the_text_says_that_no_cache_is_modelled(program):
    text = " ".join(program.profile("slow.py", "transpose").stdout.split())
    assert "No cache is modelled: sectors that the first-level cache (L1) would serve are counted all the same" in text
    assert "what L1 would serve is counted as sectors all the same" in " ".join(
        program.profile("--help").stdout.split()
    )


def test_the_text_ends_with_advice(program):
    text = program.profile("slow.py", "transpose", "tiled").stdout
    assert "- slow.cu:4: The stores use 12.5 % of the bytes that they move" in text
    assert "- slow.cu:13: Shared memory makes 32.0 passes where one is enough" in text
    assert max(map(len, text.split("Advice")[1].splitlines())) <= 80


def test_standard_output_is_the_jsons_alone(program):
    done = program.profile("--json", "-", "slow.py", "transpose")
    found = json.loads(done.stdout)
    assert "arguments ['transpose']" in done.stderr
    assert found["format"] == 1
    assert found["launches"][0]["kernel"] == "transpose"
    assert found["launches"][0]["grid"] == [2, 2, 1]
    assert found["launches"][0]["block"] == [32, 32, 1]
    assert any("No cache is modelled" in limit for limit in found["limits"])


def test_json_has_the_lines_ranked_and_the_advice(program):
    found = program.data("slow.py", "transpose", "tiled")
    assert [(line["file"], line["line"]) for line in found["lines"][:2]] == [("slow.cu", 13), ("slow.cu", 4)]
    assert found["lines"][0]["text"] == "out[y * n + x] = tile[threadIdx.x][threadIdx.y];"
    assert sum(line["share"] for line in found["lines"]) == pytest.approx(1)
    assert [(advice["line"], advice["rule"]) for advice in found["advice"]] == [
        (13, "accesses of shared memory that take 1.5 times the passes without bank conflicts, or more"),
        (4, "stores of more than 1 sector of global memory that use less than 50 % of the bytes moved"),
    ]


def test_the_lines_of_a_launch_add_up_in_json(program):
    launch = program.data("slow.py", "tiled")["launches"][0]
    assert sum(line["metrics"][LANES] for line in launch["lines"]) == launch["metrics"][LANES]


def test_files_are_written_and_named(program):
    done = program.profile("--json", "found.json", "--html", "found.html", "slow.py", "transpose")
    assert done.stdout.splitlines()[1:] == ["written: found.json", "written: found.html"]
    assert json.loads((program.folder / "found.json").read_text())["launches"]
    assert "<title>Profile of slow.py</title>" in (program.folder / "found.html").read_text()


@pytest.mark.parametrize(
    ("chosen", "head"),
    [
        ("lanes", ["active lanes line"]),
        ("conflicts,instructions", ["bank warp", "confl. instr. line"]),
        ("smsp__inst_executed.sum", ["", "smsp__inst_executed.sum line"]),
    ],
)
def test_metrics_are_chosen_by_short_names_and_by_full_ones(program, chosen, head):
    lines = program.profile("--metrics", chosen, "slow.py", "tiled").stdout.splitlines()
    at = lines.index("slow.cu")
    assert " ".join(" ".join(lines[at + 1 : at + 3]).split()) == " ".join(" ".join(head).split())


@pytest.mark.parametrize("chosen", ["*", "*global_op_ld.sum"])
def test_a_choice_may_begin_with_any_characters(program, chosen):
    names = set(program.data("--metrics", chosen, "slow.py", "transpose")["launches"][0]["metrics"])
    assert "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum" in names
    assert ("smsp__inst_executed.sum" in names) == (chosen == "*")


def test_a_choice_is_that_of_the_launches_and_of_json_too(program):
    chosen = "smsp__inst_executed.sum,l1tex__t_sectors*"
    found = program.data("--metrics", chosen, "slow.py", "transpose")
    names = set(found["launches"][0]["metrics"])
    assert "smsp__inst_executed.sum" in names
    assert len(names) > 3
    assert all(name.startswith(("smsp__inst_executed.sum", "l1tex__t_sectors")) for name in names)
    assert set(found["lines"][0]["metrics"]) <= names
    heads = program.profile("--metrics", "lanes", "slow.py", "transpose").stdout.splitlines()[2:4]
    assert [head.split() for head in heads] == [["active"], ["kernel", "grid", "block", "lanes"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "there is no file nowhere.py"),
        (["-m", "nowhere"], "there is no module nowhere"),
        (["-m", "nowhere.at.all"], "there is no module nowhere.at.all"),
        (["--metrics", "lane", "slow.py"], "'lane' is no metric: it is one of sectors, efficiency"),
        (["--metrics", ",", "slow.py"], "no metric is named"),
        (["--metrics", "no__metric", "slow.py", "transpose"], "no metric is named no__metric; there are: "),
        (["--html", "no/folder.html", "slow.py", "transpose"], "no/folder.html cannot be written: No such file"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line_that_names_it(program, arguments, message):
    done = program.profile(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("app.cu", b"__global__ void k() {}\n", "C++"),
        ("app.PTX", b".version 8.0\n", "PTX"),
        ("app", b"\x7fELF\x02\x01", "an executable or a cubin"),
    ],
)
def test_a_program_of_another_language_is_refused_as_such(program, name, content, kind):
    (program.folder / name).write_bytes(content)
    done = program.profile(name)
    assert done.returncode == 2
    assert f"profile takes a Python program, and {name} is {kind}" in done.stderr
    assert "Error" not in done.stderr


def test_a_source_that_the_terminal_cannot_show_costs_no_table(program, monkeypatch):
    source = (program.folder / "slow.cu").read_text().replace("// A transpose", "// Größe: 転置")
    line = "out[x * n + y] = in[y * n + x];"
    (program.folder / "slow.cu").write_text(source.replace(line, f"{line}  // Größe"), encoding="utf-8")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = program.profile("slow.py", "transpose")
    assert done.returncode == 0, done.stderr
    assert f"{line}  // Gr??e" in done.stdout
    assert "- slow.cu:4: The stores use 12.5 %" in done.stdout


NAMED = r"""
import cudart_py as cuda
source = 'extern "C" __global__ void k(int* x) {\n    x[threadIdx.x] = threadIdx.x;\n}\n'
x = cuda.zeros(32, "i4")
for start in ("", '#line 1 "/tmp/Gr\u00f6\u00dfe.cuh"\n'):
    cuda.compile(start + source, name="Gr\u00f6\u00dfe.cu")["k"][1, 32](x)
x.to_host()
"""


@pytest.mark.parametrize("options", [(), ("--json", "report"), ("--html", "report")])
def test_names_that_the_locale_has_no_encoding_for_cost_no_report(program, monkeypatch, options):
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)
    (program.folder / "größe.py").write_text(NAMED)
    # As the process gets it from a shell: bytes that are no text in its locale.
    done = program.profile(*options, "größe.py".encode().decode("ascii", "surrogateescape"))
    assert done.returncode == 0, done.stderr
    report = (program.folder / "report").read_text() if options else done.stdout
    assert "x[threadIdx.x] = threadIdx.x;" in report
    assert {(): "Gr??e.cuh", "--json": r"Gr\u00f6\u00dfe.cuh", "--html": "Größe.cuh"}[options and options[0]] in report


@pytest.mark.parametrize(
    ("options", "output", "status", "said"),
    [
        ("", ">&-", 2, "standard output is closed, and the profile would go there; name a file"),
        ("--json -", ">&-", 2, "standard output is closed"),
        ("", ">/dev/full", 2, "standard output cannot be written: No space left on device"),
        ("--html /dev/full", ">/dev/null", 2, "/dev/full cannot be written: No space left on device"),
        ("--json /dev/full", ">/dev/null", 2, "/dev/full cannot be written: No space left on device"),
        ("--html page.html", ">&-", 0, ""),
        ("", "| :", 0, ""),
    ],
)
def test_output_that_goes_nowhere_ends_in_one_line_or_none(program, options, output, status, said):
    command = f"{shlex.quote(sys.executable)} -m cudart_py profile {options} slow.py transpose"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} {output}"],
        cwd=program.folder,
        # What the program itself prints waits in the buffer.
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDART_PY_DRIVER": "simulator", "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == bool(said)


def test_a_program_that_fails_is_profiled_as_far_as_it_came(program):
    (program.folder / "failing.py").write_text("import sys\nsys.argv[1:] = ['transpose']\nimport slow\n1 / 0\n")
    done = program.profile("--html", "found.html", "failing.py")
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.count("File ") == 1  # the program's own line
    assert done.returncode == 1
    assert "transpose" in (program.folder / "found.html").read_text()


def test_a_program_that_is_no_python_has_the_place_of_the_mistake_alone(program):
    (program.folder / "broken.py").write_text("x = (\n")
    done = program.profile("broken.py")
    assert done.stderr.startswith('  File "broken.py", line 1')
    assert done.returncode == 1


def test_the_legend_says_that_bulk_copies_touch_no_sectors(program):
    text = " ".join(program.profile("slow.py", "transpose").stdout.split())
    assert "Bulk copies (cp.async.bulk) count as instructions alone, and touch no sectors here." in text


def test_names_are_cut_in_the_middle_since_instances_of_a_template_end_differently():
    names = [f"histogram<64, 128, 16, {last}>" for last in ("false", "true")]
    assert [shortened(name, 20) for name in names] == ["histogram<…6, false>", "histogram<…16, true>"]
    assert shortened(names[0], len(names[0])) == names[0]
    assert [len(shortened(names[0], width)) for width in (8, 9, 20)] == [8, 9, 20]


def test_a_driver_that_counts_nothing_is_refused_before_the_program_runs(program, monkeypatch, capsys):
    monkeypatch.setattr(seam, "capabilities", frozenset)
    monkeypatch.setenv("CUDART_PY_DRIVER", "cuda")
    assert main(["profile", str(program.folder / "slow.py")]) == 2
    assert "counts nothing; on a GPU, use ncu" in capsys.readouterr().err


def test_a_program_without_launches_says_so(program):
    done = program.profile("slow.py")
    assert done.stdout.splitlines()[-1] == "no launches"
    assert program.data("slow.py")["launches"] == []
    assert program.profile("--html", "found.html", "slow.py").returncode == 0
    assert "The program launched no kernels." in (program.folder / "found.html").read_text()


def test_the_guides_page_shows_what_is_printed(program):
    blocks = blocks_of(ROOT / "docs" / "guide" / "profiling.md")
    text = blocks[0].text.partition("with cuda.profile()")[0]
    (program.folder / "double.py").write_text(text + 'kernels["by_column"][8, 32](x, y, rows, columns)\n')
    printed = program.profile("double.py").stdout.splitlines()
    shown = next(block.text for block in blocks if block.text.startswith("double.cu"))
    assert [line for line in shown.splitlines() if line not in printed] == []
