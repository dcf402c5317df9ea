"""`cudart-py find`, `continuous` and `history`, in temporary repositories with a benchmark that becomes worse."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from cudart_py.__main__ import main
from cudart_py.benchmark.commits.bisection import bisect
from cudart_py.benchmark.commits.environments import BuildError, default_requirements, make_environment
from cudart_py.benchmark.gates.pytest_runs import PytestFailedError, PytestRuns
from cudart_py.benchmark.history import read_store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"


class Repository:
    """A temporary repository, in which each commit replaces one file."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "--quiet")
        self.count = 0

    def git(self, *arguments):
        # Fixed dates, so that the history has an order; and no settings of the user.
        names = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        date = f"2026-03-{1 + getattr(self, 'count', 0):02}T12:00:00Z"
        environment = os.environ | names | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(["git", *arguments], cwd=self.folder, env=environment, check=True, capture_output=True)
        return done.stdout.decode().strip()

    def commit(self, name, text):
        """Commit a file, and return the first digits of the commit."""
        self.count += 1
        (self.folder / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"number {self.count}", "--allow-empty", "--no-gpg-sign")
        return self.git("rev-parse", "HEAD")[:8]

    @property
    def worktrees(self):
        return len(self.git("worktree", "list").splitlines())


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # as a hook of git sets them
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Repository(folder)


@pytest.fixture
def taken(monkeypatch):
    """Replace runs of pytest by the figures in the worktree's file `figures.json`; return the list of these runs.

    The file maps the names of benchmarks to their sectors and bank conflicts, or to their times in seconds.
    """
    runs = []

    def take(self, *options, names=(), silent=False):
        text = (self.directory / "figures.json").read_text()
        runs.append(text)
        if text == "empty":
            raise PytestFailedError(5, "no tests ran", self.directory)
        if text == "broken":
            raise PytestFailedError(
                1, "E   first\nFAILED b.py::test - AssertionError: planted\n== 1 failed ==", self.directory
            )
        run = {"machine_info": {}, "commit_info": {}, "datetime": "", "version": "5", "benchmarks": [], "counted": []}
        for name, value in json.loads(text).items():
            named = {"name": name, "fullname": name, "group": None, "param": None, "extra_info": {}}
            if isinstance(value, float):
                stats = {"median": value, "iqr": value / 1000, "rounds": 40, "q1": value, "q3": value}
                run["benchmarks"].append(named | {"stats": stats})
            else:
                run["counted"].append(named | {"counters": [{SECTORS: value[0], CONFLICTS: value[1]}]})
        return run

    monkeypatch.setattr(PytestRuns, "take", take)
    return runs


def command(*arguments):
    name, *rest = arguments
    return main([name, "--environment", "existing", *rest])


@pytest.mark.parametrize("unknown", [set(), {4}, {3, 4, 5}, {0, 9, 10, 19}])
@pytest.mark.parametrize("first", [0, 1, 5, 12, 19])
def test_bisection_judges_few_items_and_names_those_before_the_first_bad_one_that_it_cannot_judge(first, unknown):
    unknown = unknown - {19}  # the last item is known to be bad
    asked = []

    def is_bad(item):
        asked.append(item)
        return None if item in unknown else item >= first

    found = bisect(range(20), is_bad)
    assert found.first_bad == min(set(range(first, 20)) - unknown)
    good = max(set(range(first)) - unknown, default=-1)
    assert found.skipped == list(range(good + 1, found.first_bad))
    assert len(asked) == len(set(asked)) <= 5 + len(unknown)


def test_each_figure_is_traced_to_its_commit_and_commits_that_fail_are_skipped_and_named(repository, taken, capsys):
    steps = [(10, 0), (10, 0), "broken", (40, 0), (40, 0), (40, 0), (40, 7), (40, 7)]
    ids = [
        repository.commit("figures.json", step if step == "broken" else json.dumps({"b.py::test": step}))
        for step in steps
    ]
    assert command("find", ids[0], "HEAD") == 0
    text = capsys.readouterr().out
    assert f"b.py::test: sectors became worse (10 to 40) at {ids[3]} (number 4)" in text
    assert f"  {ids[2]} (number 3): the benchmarks failed: FAILED b.py::test - AssertionError: planted\n" in text
    assert f"b.py::test: conflicts became worse (0 to 7) at {ids[6]} (number 7)" in text
    assert len(taken) < len(steps), "no commit is measured twice"
    assert repository.worktrees == 1
    assert command("find", "--counter", "conflicts:5", ids[0], ids[5]) == 1
    assert "nothing is worse" in capsys.readouterr().out


def test_times_are_compared_with_several_runs_of_the_base_and_confirmed(repository, taken, capsys):
    for seconds in (1e-3, 1.01e-3, 1.2e-3):
        repository.commit("figures.json", json.dumps({"b.py::test": seconds}))
    assert command("continuous", "HEAD~2", "HEAD") == 1
    assert len(taken) == 3 + 1 + 2
    assert "+20.0 %  5.0 %  SLOWER" in capsys.readouterr().out
    assert command("find", "HEAD~2", "HEAD") == 0
    assert "b.py::test: time became worse (+20.0%) at" in capsys.readouterr().out
    assert command("continuous", "HEAD~2", "HEAD~1") == 0


def test_the_history_of_old_commits_is_stored_once_and_dated_by_the_commits(repository, taken, tmp_path, capsys):
    steps = [(10, 0), (10, 0), "broken", (40, 0)]
    ids = [repository.commit("figures.json", step if step == "broken" else json.dumps({"t": step})) for step in steps]
    store = ("history", "--store", str(tmp_path / "store"))
    assert command(*store, "--steps", "2", "HEAD") == 0
    assert command(*store, "HEAD") == 0
    assert f"{ids[2]} (number 3): skipped" in capsys.readouterr().out
    assert len(taken) == 2 + 2, "stored commits are not measured again"
    runs = read_store(tmp_path / "store")
    assert [(run.short_commit, run.when.day) for run in runs] == [(ids[0], 2), (ids[1], 3), (ids[3], 5)]
    assert repository.worktrees == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("find", "nowhere", "HEAD"), "'nowhere' is not a commit of this repository"),
        (("find", "HEAD", "HEAD~1"), "is not an ancestor of"),
        (("continuous", "--copy", "missing.py", "HEAD", "HEAD"), "missing.py is not a file or folder"),
        (("continuous", "HEAD~1", "HEAD"), "(number 2): the benchmarks failed: FAILED"),
        (("continuous", "HEAD", "HEAD~1"), "(number 2): the benchmarks failed: FAILED"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(repository, taken, capsys, arguments, said):
    repository.commit("figures.json", '{"t": [1, 0]}')
    repository.commit("figures.json", "broken")
    assert command(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert repository.worktrees == 1


def test_a_commit_without_benchmarks_asks_for_their_files(repository, taken, capsys):
    repository.commit("figures.json", "empty")
    repository.commit("figures.json", '{"t": [1, 0]}')
    assert command("continuous", "HEAD~1", "HEAD") == 2
    assert "pytest found no benchmarks: name their files" in capsys.readouterr().err


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_worktree_behind(repository, monkeypatch, end):
    repository.commit("figures.json", "{}")
    folders = []

    def take(self, *options, **others):
        folders.append(self.directory)
        assert repository.worktrees == 3
        os.kill(os.getpid(), end)
        raise AssertionError("the signal did not end the command")

    monkeypatch.setattr(PytestRuns, "take", take)
    try:
        status = command("continuous", "HEAD", "HEAD")
    except SystemExit as error:
        status = error.code
    assert status == 128 + end
    assert repository.worktrees == 1
    assert not folders[0].parent.exists()


BENCHMARK = '''
import cudart_py as cuda

SOURCE = """extern "C" __global__ void twice(float* x) { x[threadIdx.x * STRIDE] *= 2; }"""

def test_twice(gpu_benchmark):
    x = cuda.zeros(32 * 8, "float32")
    gpu_benchmark(cuda.compile(SOURCE, define={"STRIDE": STRIDE})["twice"][1, 32].bind(x))
'''


@pytest.mark.needs("profile")
def test_a_planted_commit_is_found_by_runs_of_pytest(repository, monkeypatch, capsys):
    """Commits have only the module, and the benchmark is copied into them; each run is a process on the simulator."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    ids = [repository.commit("stride.py", f"STRIDE = {stride}\n") for stride in (1, 8)]
    (repository.folder / "bench_twice.py").write_text("from stride import STRIDE\n" + BENCHMARK)
    fast = "import pytest_benchmark.plugin\npytest_benchmark.plugin.get_cpu_info = lambda: {}\n"
    (repository.folder / "conftest.py").write_text(fast)
    plugins = ("-p", "benchmark", "-p", "cudart_py.benchmark.pytest_plugin", "-p", "no:cacheprovider")
    copied = ("--copy", "bench_twice.py", "--copy", "conftest.py")
    assert command("find", *copied, "HEAD~1", "HEAD", "bench_twice.py", *plugins) == 0
    found = "bench_twice.py::test_twice: sectors became worse (8 to 64) at"
    assert f"{found} {ids[1]}" in capsys.readouterr().out
    assert repository.worktrees == 1


@pytest.mark.parametrize("kind", ["wheel", "deleted wheel", "folder", "registry"])
def test_environments_get_the_wheel_from_which_the_package_is_installed(tmp_path, monkeypatch, kind):
    wheel = tmp_path / "wheels of today/cudart_py-9-py3-none-any.whl"
    wheel.parent.mkdir()
    if kind != "deleted wheel":
        wheel.touch()
    folder = tmp_path / "installed/cudart_py-9.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: cudart-py\nVersion: 9\n")
    # As PEP 610 describes the file, which is missing if a package comes from a registry.
    if kind == "folder":
        origin = {"url": wheel.parent.as_uri(), "dir_info": {"editable": True}}
    else:
        origin = {"url": wheel.as_uri(), "archive_info": {}}
    if kind != "registry":
        (folder / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(str(folder.parent))
    requirement, *others = default_requirements()
    expected = f"cudart-py @ {wheel.as_uri()}" if kind == "wheel" else "cudart-py"
    assert (requirement, others) == (expected, ["pytest", "pytest-benchmark"])


def test_an_environment_that_cannot_be_built_gives_uvs_reason_and_the_options_that_choose_another(
    repository, tmp_path, monkeypatch, capsys
):
    # What uv printed for a package that its registry does not have.
    reason = "Because cudart-py was not found in the package registry and you require cudart-py, we can conclude"
    uv = tmp_path / "bin/uv"
    uv.parent.mkdir()
    printed = f"error: No solution found when resolving dependencies\n  cause: {reason}"
    uv.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit 1\n")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    repository.commit("figures.json", '{"t": [1, 0]}')
    assert main(["continuous", "--environment", "uv", "HEAD", "HEAD"]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert "--install" in error
    assert "--environment existing" in error


# A build backend that downloads nothing: the module of the wheel has the value that is in a file of the project.
BACKEND = """
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = open("name.txt").read().strip()
    wheel = f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{wheel}", "w") as file:
        file.writestr(f"{name}.py", f"VALUE = {open('value.txt').read()}")
        info = f"{name}-1.0.dist-info"
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        file.writestr(f"{info}/RECORD", "")
    return wheel

build_editable = build_wheel
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def project(folder, name, value):
    folder.mkdir()
    for file, text in (("backend.py", BACKEND), ("pyproject.toml", PYPROJECT), ("name.txt", name)):
        (folder / file).write_text(text)
    (folder / "value.txt").write_text(value)
    return folder


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("uv", marks=pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")),
        pytest.param("venv", marks=pytest.mark.exhaustive),  # pip takes long
    ],
)
def test_each_commit_is_built_in_an_environment_of_its_own(kind, tmp_path):
    required = project(tmp_path / "required", "required", "3")
    printed = []
    for number in (1, 2):
        source = project(tmp_path / f"source{number}", "built", str(number))
        environment = make_environment(kind, source, tmp_path / f"environment{number}", [str(required)])
        text = "import importlib.util as u, built, required; print(built.VALUE, required.VALUE, u.find_spec('numpy'))"
        done = subprocess.run(
            [environment.python, "-c", text], env=environment.variables, capture_output=True, text=True
        )
        printed.append(done.stdout.split())
    assert printed == [["1", "3", "None"], ["2", "3", "None"]]
    (source / "value.txt").unlink()
    with pytest.raises(BuildError) as error:
        make_environment(kind, source, tmp_path / "environment3", [])
    assert "value.txt" in error.value.output
