"""Fixtures: a store of runs in pytest-benchmark's format, runs of pytest, and work that counts its calls."""

import gc
import json
import warnings
from datetime import UTC, datetime, timedelta

import _pytest.pytester
import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.benchmark import measuring, peers

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
GPU = {"devices": ["NVIDIA H200"], "driver": "580.159.04"}
MACHINE = {
    "python_implementation": "CPython",
    "python_version": "3.12.4",
    "cpu": {"brand_raw": "A processor"},
    "gpu": GPU,
}


class Store:
    """Writes runs on consecutive days to the store `folder`; the commit of the seventh run starts with 0000007."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.machine = MACHINE

    def add(self, timed=(), counted=(), *, machine=MACHINE, dirty=False, folder="Linux-CPython-3.12-64bit", **more):
        """Store a run: `timed` maps names to seconds or (seconds, extra_info, stats), and `counted` to launches."""
        self.count += 1
        number = f"{self.count:04}"
        content = {
            "machine_info": machine,
            "commit_info": {"id": number.rjust(7, "0") * 6, "dirty": dirty, "project": "a project"},
            "benchmarks": [self._timed(name, found) for name, found in dict(timed).items()],
            "datetime": (BEGIN + timedelta(days=self.count)).isoformat(),
            "version": "5.3.1",
        }
        if counted:
            pairs = counted.items() if isinstance(counted, dict) else counted
            content["counted"] = [
                {"name": name, "fullname": name, "group": None, "device": "a simulator", "counters": launches}
                for name, launches in pairs
            ]
        path = self.folder / folder / f"{number}_run.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content | more))
        return path

    @staticmethod
    def _timed(name, found):
        seconds, extra, stats = (*found, {})[:3] if isinstance(found, tuple) else (found, {}, {})
        stats = {"median": seconds, "q1": seconds * 0.999, "q3": seconds * 1.001, **stats}
        info = {"device": "NVIDIA H200", **extra}
        return {"name": name, "fullname": name, "group": None, "param": None, "extra_info": info, "stats": stats}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / ".benchmarks")


@pytest.fixture(autouse=True)
def files_of_runs_closed(request):
    """After a test that runs pytest, and after its other fixtures, collect the garbage that these runs have left.

    Versions of pytest-benchmark before 5.3 do not close their JSON file, which would cause a warning in a later test.
    """
    yield
    if "run" in request.fixturenames:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # from pytest-benchmark's unclosed files
            gc.collect()


@pytest.fixture(autouse=True)
def modules_stay(monkeypatch):
    """Make pytest runs in this process keep the modules that they import, except their tests.

    pytester would remove these modules, and importing them again would create a second copy of each class.
    """
    snapshot = _pytest.pytester.SysModulesSnapshot

    def take(preserve):
        return snapshot(lambda name: not name.startswith(("test_", "bench_")))

    monkeypatch.setattr(_pytest.pytester, "SysModulesSnapshot", take)


@pytest.fixture
def run(pytester, monkeypatch):
    """Return a function that runs the tests of a file, `test_it.py`, in this process.

    Only this plugin and, by default, pytest-benchmark are loaded.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # In a worker of pytest-xdist, pytest-benchmark would disable itself in these runs too.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    # Reading the processor's name and the commit takes long, and starts processes.
    monkeypatch.setattr("pytest_benchmark.plugin.get_cpu_info", lambda: {"brand_raw": "A processor"})
    monkeypatch.setattr("pytest_benchmark.plugin.get_commit_info", lambda *_: {"id": "unversioned", "dirty": False})

    def run(source, *arguments, benchmark=True):
        pytester.makepyfile(test_it=source)
        plugins = ["-p", "benchmark"] if benchmark else []
        return pytester.runpytest_inprocess(*plugins, "-p", "cudart_py.benchmark.pytest_plugin", *arguments)

    return run


@pytest.fixture
def no_times(monkeypatch):
    """Make the driver in use appear to have no device times."""
    for module in (measuring, peers):
        monkeypatch.setattr(module, "has_capability", lambda name: False)


class Counting:
    """Work for a stream: each call adds 1 to a number on the device, and records its stream on the host."""

    def __init__(self, stream=None):
        self.stream = stream
        self.streams = []
        self.number = cuda.zeros(1, np.int32, stream=stream)
        source = 'extern "C" __global__ void add(int *number) { atomicAdd(number, 1); }'
        self._kernel = cuda.compile(source)["add"]

    def __call__(self, stream=None):
        self.streams.append(stream or self.stream)
        self._kernel[1, 1, 0, self.streams[-1]](self.number)


@pytest.fixture
def counting(device):
    """Return the class of work that counts its calls, with a device current."""
    return Counting
