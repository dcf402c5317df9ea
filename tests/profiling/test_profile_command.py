"""`cudart-py profile`: the programs it runs, the reports it writes, and the arguments it rejects."""

import contextlib
import functools
import io
import json
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from cudart_py.__main__ import main
from cudart_py.driver import program_command
from cudart_py.profiling.report.launch_table import shortened, shortened_kernel
from tests.documentation.blocks import blocks_of
from tests.profiling.conftest import KERNELS, Program

pytestmark = pytest.mark.needs("profile")

ROOT = Path(__file__).parents[2]
LANES = "smsp__thread_inst_executed.sum"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the printed report of one launch per kernel, and the same as parsed JSON."""
    program = Program(tmp_path_factory.mktemp("reports"))
    done = program.profile("slow.py", "transpose", "tiled")
    assert done.returncode == 0, done.stderr
    return done.stdout, program.data("slow.py", "transpose", "tiled")


def test_a_module_runs_as_python_runs_it(program):
    (program.folder / "package").mkdir()
    (program.folder / "package" / "__init__.py").touch()
    (program.folder / "package" / "__main__.py").write_text("import runpy, slow\nprint('the package ran')\n")
    done = program.profile("-m", "slow", "transpose")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("arguments ['transpose'] __main__\n")
    assert "out[x * n + y] = in[y * n + x];" in done.stdout
    assert "the package ran" in program.profile("-m", "package").stdout


def test_loads_and_stores_stand_apart_on_one_line_and_advice_follows(reports):
    text, _ = reports
    lines = text.splitlines()
    at = lines.index("slow.cu")
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["sect.", "sect.", "eff.%", "eff.%", "bank", "active"],
        ["load", "store", "load", "store", "confl.", "lanes", "line"],
    ]
    line = next(line for line in lines if "in[y * n + x];" in line)
    assert re.findall(r"[\d.]+", line)[:6] == ["4.0", "32.0", "100.0", "12.5", "32.0", "4"]
    assert "No cache is modelled" in " ".join(text.split())
    assert "- slow.cu:4: The stores use 12.5 %" in text
    assert "- slow.cu:13: Accesses to shared memory take 32.0 times" in text
    assert max(map(len, text.split("Advice")[1].splitlines())) <= 80


def test_a_program_without_mistakes_gets_no_advice_and_is_told_so(program):
    (program.folder / "good.py").write_text(
        "import cudart_py as cuda\n"
        "source = 'extern \"C\" __global__ void k(int* x) { x[threadIdx.x] = threadIdx.x; }'\n"
        "cuda.compile(source)['k'][1, 64](cuda.zeros(64, 'i4'))\n"
    )
    done = program.profile("good.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("No advice: no rule applies.\n")


def test_json_has_the_launches_the_lines_ranked_and_the_advice(reports):
    _, data = reports
    assert data["format"] == 2
    launches = [(launch["kernel"], launch["grid"], launch["block"]) for launch in data["launches"]]
    assert launches == [("transpose", [2, 2, 1], [32, 32, 1]), ("tiled", [2, 2, 1], [32, 32, 1])]
    assert any("No cache is modelled" in limit for limit in data["limits"])
    assert [(line["file"], line["line"]) for line in data["lines"][:2]] == [("slow.cu", 4), ("slow.cu", 13)]
    assert data["lines"][1]["text"] == "out[y * n + x] = tile[threadIdx.x][threadIdx.y];"
    assert sum(line["share"] for line in data["lines"]) == pytest.approx(1)
    assert [advice["line"] for advice in data["advice"]] == [4, 13]
    assert "bank conflicts" in data["advice"][1]["rule"]
    for launch in data["launches"]:
        assert sum(line["metrics"][LANES] for line in launch["lines"]) == launch["metrics"][LANES]


@pytest.mark.parametrize(
    ("chosen", "head"),
    [
        ("lanes", "active lanes line"),
        ("conflicts,instructions", "bank warp confl. instr. line"),
        ("smsp__inst_executed.sum", "smsp__inst_executed.sum line"),
    ],
)
def test_metrics_are_chosen_by_short_names_and_by_full_ones(program, chosen, head):
    lines = program.profile("--metrics", chosen, "slow.py", "tiled").stdout.splitlines()
    at = lines.index("slow.cu")
    assert " ".join(" ".join(lines[at + 1 : at + 3]).split()) == head
    table_of_launches = " ".join(" ".join(lines[2:4]).split())
    assert ("sectors" in table_of_launches, "kernel grid block" in table_of_launches) == (False, True)


@pytest.mark.parametrize("chosen", ["*", "*global_op_ld.sum", "smsp__inst_executed.sum,l1tex__t_sectors*"])
def test_the_choice_is_that_of_the_launches_and_of_json_too(program, reports, chosen):
    found = program.data("--metrics", chosen, "slow.py", "transpose")
    names = set(found["launches"][0]["metrics"])
    known = reports[1]["launches"][0]["metrics"]
    assert names == {name for name in known if any(fnmatchcase(name, part) for part in chosen.split(","))}
    assert "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum" in names
    assert set(found["lines"][0]["metrics"]) <= names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.py"], "nowhere.py does not exist"),
        (["-m", "nowhere.at.all"], "the module nowhere.at.all does not exist"),
        (["--metrics", "lane", "slow.py"], "'lane' is not a metric"),
        (["--metrics", ",", "slow.py"], "no metric is named"),
        (["--metrics", "no__metric", "slow.py", "transpose"], "no metric is named no__metric"),
        (["--html", "no/folder.html", "slow.py", "transpose"], "no/folder.html cannot be written"),
        (["--json", "/dev/full", "slow.py", "transpose"], "/dev/full cannot be written: No space"),
        (["--trace", "no/trace.json", "slow.py", "transpose"], "no/trace.json cannot be written"),
        (["--sanitize-report", "no/f.sarif", "slow.py", "transpose"], "no/f.sarif cannot be written"),
        (["--sanitize-format", "github", "slow.py"], "--sanitize-format is the format of --sanitize-report"),
        (["app.cu"], "takes a Python program, and app.cu is C++"),
        (["app"], "takes a Python program, and app is an executable"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line_that_names_it(program, arguments, message):
    for name in ("app.cu", "app"):
        (program.folder / name).write_bytes(b"\x7fELF")
    done = program.profile(*arguments)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]


def test_a_status_for_findings_needs_the_checks(program, monkeypatch):
    monkeypatch.setenv("CUDART_PY_SANITIZER", "off")
    done = program.profile("--fail-on-findings", "slow.py", "transpose")
    assert done.returncode == 2
    assert done.stderr.startswith("cudart-py profile: --fail-on-findings needs the simulator's checks")


def test_a_source_that_the_terminal_cannot_show_costs_no_table(program):
    source = (program.folder / "slow.cu").read_text().replace("// A transpose", "// Größe: 転置")
    line = "out[x * n + y] = in[y * n + x];"
    (program.folder / "slow.cu").write_text(source.replace(line, f"{line}  // Größe"), encoding="utf-8")
    done = program.profile("slow.py", "transpose", encoding="ascii")
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


def test_names_that_the_locale_has_no_encoding_for_cost_no_report(python, tmp_path):
    (tmp_path / "größe.py").write_text(NAMED, encoding="utf-8")
    # The form in which a process gets it from a shell: bytes that its locale cannot decode.
    name = "größe.py".encode().decode("ascii", "surrogateescape")
    done = python(
        f"import os; os.chdir({str(tmp_path)!r}); from cudart_py.__main__ import main\n"
        f"for options in [], ['--json', 'json', '--html', 'html']: assert main(['profile', *options, {name!r}]) == 0",
        own_imports=True,
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    reports = [done.stdout, *((tmp_path / name).read_text(encoding="utf-8") for name in ("json", "html"))]
    for report, shown in zip(reports, ["Gr??e.cuh", r"Gr\u00f6\u00dfe.cuh", "Größe.cuh"], strict=True):
        assert "x[threadIdx.x] = threadIdx.x;" in report
        assert shown in report


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


@pytest.mark.parametrize(
    ("options", "output", "status", "said"),
    [
        ([], contextlib.nullcontext, 2, "standard output is closed"),
        (["--json", "-"], contextlib.nullcontext, 2, "standard output is closed"),
        ([], functools.partial(open, "/dev/full", "w"), 2, "standard output cannot be written: No space"),
        (["--html", "page.html"], contextlib.nullcontext, 0, ""),
        ([], broken_pipe, 0, ""),
    ],
)
def test_output_that_goes_nowhere_ends_in_one_line_or_none(program, options, output, status, said):
    err = io.StringIO()
    with output() as stream:
        assert program.profile_into(stream, *options, "slow.py", "transpose", err=err) == status
    assert said in err.getvalue()
    assert len(err.getvalue().splitlines()) == bool(said)


def test_python_has_nothing_to_add_where_the_reader_has_gone(program):
    """Python flushes the program's buffered output at exit, when the pipe is already closed."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shlex.quote(sys.executable)} -m cudart_py profile slow.py | :"],
        cwd=program.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDART_PY_DRIVER": "simulator", "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_that_fails_is_profiled_as_far_as_it_came(program):
    (program.folder / "failing.py").write_text("import sys\nsys.argv[1:] = ['transpose']\nimport slow\n1 / 0\n")
    done = program.profile("--html", "found.html", "failing.py")
    assert "ZeroDivisionError" in done.stderr
    assert done.stderr.count("File ") == 1  # the program's own line
    assert done.returncode == 1
    assert "transpose" in (program.folder / "found.html").read_text()
    (program.folder / "broken.py").write_text("x = (\n")
    done = program.profile("broken.py")
    assert done.stderr.startswith('  File "broken.py", line 1')
    assert done.returncode == 1


FAULTY = """
import sys
import numpy as np, cudart_py as cuda

source = 'extern "C" __global__ void fill(int* x, int at) { x[at + threadIdx.x] = at; }'
fill, x = cuda.compile(source)["fill"], cuda.zeros(64, np.int32)
fill[1, 32](x, 0)
fill[2, 64](x, 0)
fill[1, 32](x, 1 << 24)
if "waits" in sys.argv:
    cuda.current_device().synchronize()
"""


@pytest.mark.parametrize("waits", [["waits"], []])
def test_a_program_whose_kernel_fails_shows_the_launches_before_it_and_the_fault(tmp_path, python, waits):
    path = tmp_path / "faulty.py"
    path.write_text(FAULTY)
    files = [str(tmp_path / name) for name in ("found.html", "found.json")]
    command = ["profile", "--html", files[0], "--json", files[1], str(path), *waits]
    done = python(f"import sys; from cudart_py.__main__ import main; sys.exit(main({command}))", check=False)
    assert done.returncode == 1
    data = json.loads(Path(files[1]).read_text())
    assert [(one["kernel"], one["grid"][0]) for one in data["launches"]] == [("fill", 1), ("fill", 2)]
    assert "IllegalAddressError" in data["failure"]
    page = Path(files[0]).read_text()
    assert page.count("IllegalAddressError") == 1
    assert page.count('<td class="name">fill</td>') == 2


def test_names_are_cut_in_the_middle_since_instances_of_a_template_end_differently():
    names = [f"histogram<64, 128, 16, {last}>" for last in ("false", "true")]
    assert [shortened(name, 20) for name in names] == ["histogram<…6, false>", "histogram<…16, true>"]
    assert shortened(names[0], len(names[0])) == names[0]
    assert [len(shortened(names[0], width)) for width in (8, 9, 20)] == [8, 9, 20]


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("cub::detail::scan<int, 3>", 12, "scan<int, 3>"),
        ("cub::detail::scan<cub::Policy<int>, (Order)0, float>", 14, "scan<…, float>"),
        ("(anonymous namespace)::first_step", 12, "first_step"),
        ("cub::DeviceRadixSortSingleTileKernel<int>", 22, "DeviceRadix…TileKernel"),
        ("saxpy", 5, "saxpy"),
    ],
)
def test_kernels_are_shortened_without_namespaces_and_first_template_arguments(name, width, short):
    assert shortened_kernel(name, width) == short


def test_diagrams_are_drawn_where_they_are_asked_for(program):
    caption = "32 sectors, 128 of 1,024 bytes written (12.5 %)."
    assert caption in program.profile("--draw", "slow.py", "transpose").stdout
    assert caption not in program.profile("slow.py", "transpose").stdout


def test_a_driver_that_counts_nothing_is_refused_before_the_program_runs(program, monkeypatch, capsys):
    monkeypatch.setattr(program_command, "capabilities", frozenset)
    monkeypatch.setenv("CUDART_PY_DRIVER", "cuda")
    assert main(["profile", str(program.folder / "slow.py")]) == 2
    assert "counts nothing" in capsys.readouterr().err


def test_a_program_without_launches_says_so_and_files_are_named(program):
    assert program.profile("slow.py").stdout.splitlines()[-1] == "no launches"
    done = program.profile("--json", "-", "--html", "found.html", "slow.py")
    assert json.loads(done.stdout)["launches"] == []
    assert done.stderr.splitlines() == ["arguments [] __main__", "written: found.html"]
    page = (program.folder / "found.html").read_text()
    assert "<title>Profile of slow.py</title>" in page
    assert "The program launched no kernels." in page


def test_the_guides_page_shows_what_is_printed(program):
    blocks = blocks_of(ROOT / "docs" / "guide" / "profiling.md")
    text = blocks[0].text.partition("with cuda.profile()")[0]
    (program.folder / "double.py").write_text(text + 'kernels["by_column"][8, 32](x, y, rows, columns)\n')
    printed = program.profile("double.py").stdout.splitlines()
    shown = next(block.text for block in blocks if block.text.startswith("double.cu"))
    assert [line for line in shown.splitlines() if line not in printed] == []


@pytest.mark.filterwarnings("ignore::cudart_py.errors.SimulatorWarning")  # the findings are the result
def test_findings_are_in_every_report_at_their_lines_and_fail_the_command_if_asked(program):
    racing = KERNELS.replace("    __syncthreads();\n", "    // no barrier\n")
    (program.folder / "slow.cu").write_text(racing)
    done = program.profile("slow.py", "tiled")
    assert done.returncode == 0
    assert "Findings of the simulator's checks:\nkernel tiled at" in done.stdout
    done = program.profile("--fail-on-findings", "--json", "found.json", "--html", "found.html", "slow.py", "tiled")
    assert done.returncode == 1
    data = json.loads((program.folder / "found.json").read_text())
    (found,) = data["findings"]
    assert (found["kind"], found["kernel"], found["file"], found["line"]) == ("race", "tiled", "slow.cu", 13)
    html = (program.folder / "found.html").read_text()
    row = html[html.index('<div class="row found" id="source-1-13">') :]
    assert (
        row.index("tile[threadIdx.x][threadIdx.y]") < row.index('<div class="row finding">') < row.index("source-1-14")
    )
    assert program.profile("--fail-on-findings", "slow.py", "transpose").returncode == 0
