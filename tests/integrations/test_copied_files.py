"""The files that users copy from the package: the steps of the action, the workflow, and the hooks of pre-commit."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.findings.test_findings import PROGRAM, RACING_LINE, places
from tests.forks import own_environment

pytestmark = pytest.mark.needs("profile")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "cudart_py" / "integrations"
ACTION = FOLDER / "github" / "cudart-py"
BENCHMARK = """
import numpy as np
import cudart_py as cuda

SOURCE = '''
extern "C" __global__ void copy(const float* x, float* y)
{
    y[threadIdx.x] = x[STRIDE * threadIdx.x];
}
'''


def test_copy(gpu_benchmark):
    kernel = cuda.compile(SOURCE, define={"STRIDE": 1})["copy"]
    x, y = cuda.zeros(256, np.float32), cuda.zeros(32, np.float32)
    gpu_benchmark(lambda: kernel[1, 32](x, y))
"""

# The racing line of each kernel but the first is like a line of the first, which has no mistake.
LOOK_ALIKES = """
from pathlib import Path
import numpy as np
import pytest
import cudart_py as cuda

GOOD = '''
extern "C" __global__ void good(float* x)
{
    __shared__ float t[64];
    t[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = t[63 - threadIdx.x];
}
'''
OTHER = '''
  extern "C" __global__ void other(float* x)
  {
      __shared__ float t[64];
      t[threadIdx.x] = x[threadIdx.x];
      x[threadIdx.x] = t[63 - threadIdx.x]; // in OTHER
  }
'''


@pytest.mark.parametrize("source", [GOOD, OTHER, GOOD.replace("    __syncthreads();", ""), Path("k.cu").read_text()])
def test_reverse(source):
    module = cuda.compile(source)  # compiled here
    module[module.kernels[0]][1, 64](cuda.zeros(64, np.float32))
"""


@pytest.fixture(autouse=True)
def own_runs(monkeypatch):
    """Let the runs of pytest be those of a user, whose benchmarks are enabled."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def run_step(script, folder, **inputs):
    """Run a step of the action as a runner does: in bash, with its inputs and the runner's variables."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    runner = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(folder), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    given = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
    return subprocess.run(
        ["bash", str(ACTION / script)],
        env={**own_environment(), "PATH": path, **runner, **given},
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_the_commands_of_the_guide_copy_the_files_to_the_places_that_its_table_names(tmp_path):
    guide = (ROOT / "docs" / "guide" / "ci.md").read_text()
    (commands,) = re.findall(r"```sh\n(files=.*?)```", guide, re.DOTALL)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**own_environment(), "PATH": path}
    subprocess.run(["bash", "-e", "-c", commands], env=environment, cwd=tmp_path, check=True)
    rows = re.findall(r"^\| `((?:github|pre-commit)/[^`]+)` \| `([^`]+)` \|", guide, re.MULTILINE)
    assert len(rows) == 4
    for source, target in rows:
        for file in (FOLDER / source).rglob("*") if source.endswith("/") else [FOLDER / source]:
            copy = tmp_path / target / file.relative_to(FOLDER / source)
            assert copy.read_bytes() == file.read_bytes()


def test_each_step_of_the_action_passes_every_input_that_its_script_reads():
    text = (ACTION / "action.yml").read_text()
    steps = [
        (re.search(r'run: bash "\$GITHUB_ACTION_PATH/(\w+\.sh)"\n', step)[1], step)
        for step in text.split("    - name: ")[1:]
    ]
    assert {script for script, _ in steps} == {path.name for path in ACTION.glob("*.sh")}
    inputs = set(re.findall(r"^  (\w+):\n    description", text, re.MULTILINE))
    for script, environment in steps:
        passed = dict(re.findall(r"(INPUT_\w+): \$\{\{ inputs\.(\w+) \}\}", environment))
        assert set(re.findall(r"INPUT_\w+", (ACTION / script).read_text())) == set(passed)
        assert all(name == f"INPUT_{source.upper()}" and source in inputs for name, source in passed.items())


def test_the_files_are_yaml_and_the_workflow_passes_inputs_that_the_action_has():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (the dependency group docs)")
    action, workflow, hooks = (
        yaml.safe_load((FOLDER / name).read_text())
        for name in ("github/cudart-py/action.yml", "github/kernels.yml", "pre-commit/pre-commit-config.yaml")
    )
    assert action["runs"]["using"] == "composite"
    assert all({"run", "shell"} <= set(step) for step in action["runs"]["steps"])
    steps = workflow["jobs"]["simulator"]["steps"]
    (use,) = (step for step in steps if step.get("uses") == "./.github/actions/cudart-py")
    assert set(use["with"]) <= set(action["inputs"])
    for hook in hooks["repos"][0]["hooks"]:
        assert {"id", "name", "language", "entry", "files"} <= set(hook)
        re.compile(hook["files"])


@pytest.mark.exhaustive
@pytest.mark.unsanitized("the steps run pytest in processes of its own")
def test_the_action_fails_for_a_race_and_annotates_its_line(tmp_path):
    (tmp_path / "test_reverse.py").write_text(PROGRAM)
    done = run_step("test_kernels.sh", tmp_path, tests="-q -n 0 test_reverse.py", report="out.sarif")
    assert done.returncode == 1, done.stderr
    assert f"\n::error file=test_reverse.py,line={RACING_LINE},title=race in reverse::" in done.stdout
    log = json.loads((tmp_path / "out.sarif").read_text())
    assert places(log) == [("race", tmp_path / "test_reverse.py", RACING_LINE)]


@pytest.mark.exhaustive
@pytest.mark.unsanitized("as above")
def test_the_action_leaves_no_report_of_an_earlier_run_if_its_tests_do_not_exist(tmp_path):
    (tmp_path / "out.sarif").write_text("of an earlier run")
    done = run_step("test_kernels.sh", tmp_path, tests="-q -n 0 no_such_folder", report="out.sarif")
    assert done.returncode == 4, done.stdout
    assert not (tmp_path / "out.sarif").exists()


@pytest.mark.exhaustive
@pytest.mark.unsanitized("as above")
def test_the_action_annotates_no_line_of_another_kernel(tmp_path):
    """A source that its program's file does not contain as a whole is annotated where it is compiled."""
    (tmp_path / "test_reverse.py").write_text(LOOK_ALIKES)
    kernel = LOOK_ALIKES[LOOK_ALIKES.index("extern") : LOOK_ALIKES.index("'''\nOTHER")]
    # A source that is text is named kernel.cu, and this file is not its source.
    (tmp_path / "kernel.cu").write_text(kernel)
    (tmp_path / "k.cu").write_text(kernel.replace("    __syncthreads();\n", ""))
    done = run_step("test_kernels.sh", tmp_path, tests="-q -n 0 test_reverse.py", report="out.sarif")
    assert done.returncode == 1, done.stderr
    lines = LOOK_ALIKES.splitlines()
    racing, compiled = (
        next(number for number, line in enumerate(lines, 1) if mark in line) for mark in ("// in OTHER", "# compiled")
    )
    log = json.loads((tmp_path / "out.sarif").read_text())
    assert places(log) == [("race", tmp_path / "test_reverse.py", line) for line in (racing, compiled, compiled)]
    results = log["runs"][0]["results"]
    assert ["relatedLocations" in result for result in results] == [True, False, False]
    assert f"wrote at test_reverse.py:{racing - 1}" in results[0]["message"]["text"]
    assert "at kernel.cu:7" in results[1]["message"]["text"]


@pytest.mark.exhaustive
@pytest.mark.unsanitized("as above")
def test_the_action_fails_for_worse_counters_and_writes_a_comment(tmp_path):
    (tmp_path / "bench_copy.py").write_text(BENCHMARK)
    shared = {"benchmarks": "-q -n 0 bench_copy.py", "accepted": "accepted.json", "comment": "comment.md"}
    stored = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "bench_copy.py", "--benchmark-json=accepted.json"],
        env=own_environment(),
        cwd=tmp_path,
    )
    assert stored.returncode == 0
    limits = "sectors:5% conflicts:0"
    assert run_step("compare_counters.sh", tmp_path, **shared, limits=limits).returncode == 0
    assert "nothing has changed" in (tmp_path / "comment.md").read_text()
    (tmp_path / "bench_copy.py").write_text(BENCHMARK.replace('"STRIDE": 1', '"STRIDE": 8'))
    done = run_step("compare_counters.sh", tmp_path, **shared, limits=limits)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "| sectors | 8 | 36 |" in (tmp_path / "comment.md").read_text()
    assert "sectors" in (tmp_path / "summary").read_text()
    line = BENCHMARK[: BENCHMARK.index("def test_copy")].count("\n") + 1
    assert f"\n::error file=bench_copy.py,line={line},title=sectors became worse::" in done.stdout


@pytest.mark.exhaustive
@pytest.mark.unsanitized("as above")
def test_the_action_fails_without_an_accepted_run_even_if_there_are_no_limits(tmp_path):
    (tmp_path / "bench_copy.py").write_text(BENCHMARK)
    (tmp_path / "comment.md").write_text("of an earlier run")
    inputs = {"benchmarks": "-q -n 0 bench_copy.py", "accepted": "accepted.json", "comment": "comment.md"}
    done = run_step("compare_counters.sh", tmp_path, **inputs, limits="")
    assert done.returncode == 4, done.stdout
    assert "accepted.json does not exist" in done.stderr
    assert not (tmp_path / "comment.md").exists()
    assert not (tmp_path / "summary").exists()


@pytest.mark.exhaustive
def test_the_hook_compiles_files_and_shows_the_line_of_an_error(tmp_path):
    shutil.copy(FOLDER / "pre-commit" / "compile_kernels.py", tmp_path)
    (tmp_path / "good.cu").write_text("template <class T> __global__ void k(T* x) { x[0] = N; }\n")
    (tmp_path / "bad.cu").write_text("__global__ void k(int* x)\n{\n    x[0] = y + N;\n}\n")
    for files, status in ((["good.cu"], 0), (["good.cu", "bad.cu"], 1)):
        command = [sys.executable, "compile_kernels.py", "--define", "N=3", *files]
        environment = {**own_environment(), "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path.parent)}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
    assert done.stdout == f'::error file={tmp_path.name}/bad.cu,line=3::identifier "y" is undefined\n'
    assert "  3 |     x[0] = y + N;" in done.stderr


def test_the_hooks_annotations_encode_what_github_decodes(tmp_path):
    """GitHub reads a comma or a colon as the end of a property, and decodes what a percent sign begins."""
    name = "a, b: 50%.cu"
    (tmp_path / name).write_text("struct S {};\n__device__ int f(S x) { return x % x; }\n")
    command = [sys.executable, FOLDER / "pre-commit" / "compile_kernels.py", name]
    environment = {**own_environment(), "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=a%2C b%3A 50%25.cu,line=2::"), done.stderr
    assert 'no operator "%25" matches' in done.stdout


def run_hooks(folder):
    """Run the hooks as pre-commit does, on the files that git has staged; return the status of each that runs."""
    text = (folder / ".pre-commit-config.yaml").read_text()
    staged = git(folder, "diff", "--cached", "--name-only").split()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    statuses = {}
    for part in text.split("- id: ")[1:]:
        hook = dict(re.findall(r"^ +(\w+): (.*)$", part, re.MULTILINE))
        files = [name for name in staged if re.search(hook["files"], name)]
        if files:
            command = shlex.split(hook["entry"]) + (files if hook.get("pass_filenames") != "false" else [])
            environment = {**own_environment(), "PATH": path}
            statuses[part.split()[0]] = subprocess.run(command, env=environment, cwd=folder).returncode
    return statuses


def git(folder, *arguments):
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.mark.exhaustive
@pytest.mark.unsanitized("the hooks run pytest in processes of their own")
def test_the_hooks_fail_for_a_race_in_the_only_file_that_a_commit_changes(tmp_path):
    for folder in ("hooks", "tests"):
        (tmp_path / folder).mkdir()
    shutil.copy(FOLDER / "pre-commit" / "compile_kernels.py", tmp_path / "hooks")
    shutil.copy(FOLDER / "pre-commit" / "pre-commit-config.yaml", tmp_path / ".pre-commit-config.yaml")
    program = LOOK_ALIKES[: LOOK_ALIKES.index("GOOD")] + LOOK_ALIKES[LOOK_ALIKES.index("@pytest") :]
    sources = re.compile(r"\[GOOD.*\]")
    (tmp_path / "tests" / "test_reverse.py").write_text(sources.sub('[Path("k.cu")]', program))
    kernel = LOOK_ALIKES[LOOK_ALIKES.index("extern") : LOOK_ALIKES.index("'''\nOTHER")]
    (tmp_path / "k.cu").write_text(kernel)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    assert run_hooks(tmp_path) == {"compile-kernels": 0, "sanitize-kernels": 0}
    git(tmp_path, "commit", "--quiet", "--message=first")
    (tmp_path / "k.cu").write_text(kernel.replace("    __syncthreads();\n", ""))
    git(tmp_path, "add", "k.cu")
    assert run_hooks(tmp_path) == {"compile-kernels": 0, "sanitize-kernels": 1}
