"""Findings for other programs: their places in files, SARIF, annotations, and what writes these."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.errors import SimulatorWarning
from cudart_py.findings.annotations import annotation_lines
from cudart_py.findings.records import KINDS, Finding, collected, read_report
from cudart_py.findings.sarif import sarif
from tests.forks import own_environment

# The simulator alone checks kernels.
pytestmark = pytest.mark.needs("profile")

RACING = """
extern "C" __global__ void reverse(float* x)
{
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x]; // racing
}
"""
WRONG = """
extern "C" __global__ void beyond(int* x, int n)
{
    x[threadIdx.x + n] = 1; // beyond the end
}
"""
PROGRAM = f'''
import numpy as np
import cudart_py as cuda

SOURCE = """{RACING}"""


def test_reverse():
    cuda.compile(SOURCE)["reverse"][1, 64](cuda.zeros(64, np.float32))
    cuda.current_device().synchronize()


def test_reverse_again():
    test_reverse()
'''
RACING_LINE = PROGRAM[: PROGRAM.index("// racing")].count("\n") + 1


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write the program with a race to `test_reverse.py`, and return its path; its folder is the working one."""
    path = tmp_path / "test_reverse.py"
    path.write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    return path


def findings_of(source, *arguments, mode="warn"):
    """Launch the only kernel of a source with 64 threads; return the findings."""
    module = cuda.compile(source)
    with collected() as found, cuda.sanitizer(mode):
        module[module.kernels[0]][1, 64](*arguments)
        cuda.current_device().synchronize()
    return found


def places(log):
    """Check what SARIF 2.1.0 requires of a log, and return the rule, the path and the line of each result."""
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = [rule["id"] for rule in driver["rules"]]
    base = Path(unquote(urlparse(run["originalUriBaseIds"]["SRCROOT"]["uri"]).path))
    found = []
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        for location in result.get("locations", [{}]):
            physical = location.get("physicalLocation")
            path = physical and base / unquote(urlparse(physical["artifactLocation"]["uri"]).path)
            line = physical and physical["region"]["startLine"]
            assert line is None or line >= 1
            found.append((result["ruleId"], path, line))
    return found


@pytest.mark.filterwarnings("ignore::cudart_py.errors.SimulatorWarning")  # the findings are the result
def test_a_finding_has_the_line_of_a_source_file(tmp_path):
    path = tmp_path / "reverse.cu"
    path.write_text(RACING)
    (found,) = findings_of(path, cuda.zeros(64, np.float32))
    assert (found.kind, found.kernel, found.in_a_file()) == ("race", "reverse", (str(path), 6))
    assert found.code == "x[threadIdx.x] = s[63 - threadIdx.x]; // racing"
    assert found.message.startswith("it reads 4 bytes of shared memory")


def test_a_finding_in_a_source_that_is_text_has_the_line_of_the_program():
    with pytest.raises(SimulatorWarning), collected() as found:
        findings_of(RACING, cuda.zeros(64, np.float32), mode="error")
    (finding,) = found
    here = Path(__file__).read_text().splitlines()
    assert finding.in_a_file() == (__file__, here.index("    " + finding.code) + 1)
    assert (finding.file, finding.line) == ("kernel.cu", 6)


@pytest.mark.filterwarnings("ignore::cudart_py.errors.SimulatorWarning")  # the findings are the result
@pytest.mark.parametrize("in_a_file", [True, False])
def test_a_race_has_the_line_of_the_other_access_and_paths_relative_to_the_checkout(tmp_path, monkeypatch, in_a_file):
    path = tmp_path / "reverse.cu"
    path.write_text(RACING)
    checkout = tmp_path if in_a_file else Path(__file__).parent
    monkeypatch.setenv("GITHUB_WORKSPACE", str(checkout))
    found = findings_of(path if in_a_file else RACING, cuda.zeros(64, np.float32))
    (result,) = sarif(found)["runs"][0]["results"]
    assert str(checkout) not in result["message"]["text"]
    (related,) = result["relatedLocations"]
    physical = related["physicalLocation"]
    file = checkout / physical["artifactLocation"]["uri"]
    assert "s[threadIdx.x] = x[threadIdx.x];" in file.read_text().splitlines()[physical["region"]["startLine"] - 1]
    assert related["message"]["text"]


def print_fault():
    with collected() as found, contextlib.suppress(cuda.errors.IllegalAddressError):  # the finding is the result
        findings_of(WRONG, cuda.zeros(64, np.int32), 1 << 24)
    print([(one.kind, one.kernel, one.line) for one in found])


def test_a_fault_is_a_finding(forks):
    done = forks.run(f"{__name__}:print_fault", [], own_environment())
    assert done.stdout.splitlines()[-1:] == ["[('bounds', 'beyond', 4)]"]


@pytest.mark.filterwarnings("ignore::cudart_py.errors.SimulatorWarning")  # the findings are the result
def test_a_race_between_streams_has_the_line_that_queued_the_work():
    x = cuda.zeros(64, np.float32)
    cuda.current_device().synchronize()
    with cuda.Stream(non_blocking=True) as one, cuda.Stream(non_blocking=True) as two, collected() as found:
        x.fill(1, stream=one)  # queued here
        x.fill(2, stream=two)  # and here
        cuda.current_device().synchronize()
    (finding,) = found
    path, line = finding.in_a_file()
    assert (finding.kind, path) == ("race", __file__)
    assert "queued here" in Path(path).read_text().splitlines()[line - 1]


def test_a_log_has_one_result_per_place_and_kind(program):
    """An annotation of GitHub encodes the characters that would end it or its properties."""
    text = "kernel k<int, 2> at kernel.cu:6: race: it reads 100 % of\tit; block (0, 0, 0), instruction 'ld'\n"
    text += f"    kernel.cu was compiled at {program}:13, and begins at line 5 of this file"
    here = [read_report("race", text)] * 3
    nowhere = Finding("argument", "cusparseXgtsv2StridedBatch: the first element must be zero")
    found = [*here, nowhere]
    log = sarif(found)
    assert places(log) == [("race", program, 10), ("argument", None, None)]
    assert log["runs"][0]["results"][0]["occurrenceCount"] == 3
    assert annotation_lines(found) == [
        "::error file=test_reverse.py,line=10,title=race in k<int%2C 2>::it reads 100 %25 of\tit; block (0, 0, 0)",
        "::error title=argument::cusparseXgtsv2StridedBatch: the first element must be zero",
    ]


def test_every_kind_that_the_checks_report_has_a_rule():
    simulator = Path(cuda.__file__).parent / "simulator"
    text = "".join(path.read_text() for path in simulator.rglob("*.py"))
    for kind in KINDS:
        assert f'"{kind}"' in text, kind


def check_report(folder, output, severity):
    """Check the report of a pytest run in a workflow: both tests run the racing kernel."""
    log = json.loads((folder / "out.sarif").read_text())
    assert places(log) == [("race", folder / "test_reverse.py", RACING_LINE)]
    assert log["runs"][0]["results"][0]["occurrenceCount"] == 2
    # GitHub recognises an annotation only at the beginning of a line.
    (line,) = (line for line in output if f"::{severity}" in line)
    assert line.startswith(f"::{severity} file=test_reverse.py,line={RACING_LINE},title=race in reverse::")


@pytest.mark.exhaustive
@pytest.mark.unsanitized("pytest runs in processes of its own")
def test_pytest_writes_the_findings_of_all_workers(program, monkeypatch):
    monkeypatch.setenv("CUDART_PY_SANITIZER", "error")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n2", "--sanitize-report=out.sarif", f"--rootdir={program.parent}"],
        env=own_environment(),
        cwd=program.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    check_report(program.parent, done.stdout.splitlines(), "error")


@pytest.mark.exhaustive
@pytest.mark.unsanitized("the commands run programs in processes of their own")
def test_run_reports_the_findings_of_every_process(program, tmp_path):
    (tmp_path / "both.py").write_text(
        "import subprocess, sys\nimport test_reverse\n"
        "if len(sys.argv) == 1:\n    subprocess.run([sys.executable, __file__, 'child'], check=True)\n"
        "test_reverse.test_reverse()\n"
    )
    report = tmp_path / "run.sarif"
    report.write_text("from an earlier run")
    command = [sys.executable, "-m", "cudart_py", "run", f"--sanitize-report={report}", "both.py"]
    done = subprocess.run(command, env=own_environment(), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert places(json.loads(report.read_text())) == [("race", program, RACING_LINE)] * 2


FORKING = f"""
import os
import sys
import numpy as np
import cudart_py as cuda

x = cuda.zeros(64, np.float32)
cuda.compile({RACING!r})["reverse"][1, 64](x)
x.device.synchronize()
child = os.fork()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)
"""


def test_a_forked_child_reports_neither_the_findings_nor_the_leaks_of_its_parent(python, tmp_path):
    report = tmp_path / "run.sarif"
    options = {"CUDART_PY_SANITIZER_REPORT": str(report), "CUDART_PY_SIMULATOR_LEAKS": "1"}
    ended = python(FORKING, own_imports=True, **options)
    assert ended.stderr.count("leaked: ") == 1
    assert len(json.loads(report.read_text())["runs"][0]["results"]) == 1


@pytest.mark.exhaustive
def test_a_report_that_cannot_be_written_is_a_usage_error(program):
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--sanitize-report=no/such.sarif", "-k", "nothing"]
    done = subprocess.run(command, env=own_environment(), cwd=program.parent, capture_output=True, text=True)
    assert done.returncode == 4, done.stdout
    assert "no/such.sarif cannot be written" in done.stderr
