"""Fixtures and hooks shared by all tests, including a separate compile cache and skips for missing capabilities.

The same tests run on the simulator and on a GPU. A test that needs a capability that not every driver has names it,
for example `@pytest.mark.needs("gpu_timing")`.
"""

import contextlib
import fcntl
import gc
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import cudart_py as cuda
from cudart_py.benchmark import measuring, peers
from cudart_py.benchmark.device import ceilings as device_ceilings
from cudart_py.benchmark.device import samples as device_samples
from cudart_py.compilation import compiler, programs
from cudart_py.driver import backend, calls, enums, sanitizer
from cudart_py.driver.calls import api, raw
from cudart_py.memory import pools
from cudart_py.simulator.calls.launches import launches
from tests import durations, levels, processors, workers
from tests.browser import Browser
from tests.forks import Forks

settings.register_profile(
    "default", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("short", settings.get_profile("default"), max_examples=10)
settings.register_profile("long", settings.get_profile("default"), max_examples=10_000)
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests' compiled kernels out of the user's cache, and their progress in the tour out of the user's.

    If CUDART_PY_CACHE is set, the tests use that cache. Otherwise the workers of pytest-xdist share a temporary one,
    whose path has a blank, which must not matter to anything that compiles or starts programs.

    If PYTHONDONTWRITEBYTECODE is set, the hundreds of processes that tests start write bytecode to a temporary folder
    and share it, because otherwise each process would compile all the modules that it imports.
    """
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDART_PY_CACHE", os.environ.get("CUDART_PY_CACHE", str(folder / "compile cache")))
        patch.setenv("CUDART_PY_PROGRESS", str(base / "progress.json"))
        # The workers share the processors; with two threads, each still runs launches in several.
        share = (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        threads = os.environ.get(launches.THREADS_VARIABLE, str(min(max(share, 2), 8)))
        patch.setenv(launches.THREADS_VARIABLE, threads)
        if os.environ.get("PYTHONDONTWRITEBYTECODE"):
            patch.delenv("PYTHONDONTWRITEBYTECODE")
            patch.setenv("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins that choose the files, limit the tests' duration and distribute them among the workers."""
    config.pluginmanager.register(levels)
    config.pluginmanager.register(durations)
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(workers)
    # If the arguments for one folder are not adjacent, pytest 9.1 makes a second node for the folder, and gives the
    # fixtures of the folder's conftest.py only to the first node. So sort the arguments by folder.
    first: dict[Path, int] = {}
    for number, argument in enumerate(config.args):
        for folder in Path(argument).parents:
            first.setdefault(folder, number)
    config.args.sort(key=lambda argument: [first[folder] for folder in reversed(Path(argument).parents)])
    let_children_be_interrupted()
    # By default, a collection follows every 700 new objects, nearly all of which are then still in use.
    gc.set_threshold(20_000, 10, 10)


def let_children_be_interrupted() -> None:
    """Let Ctrl-C interrupt the processes that tests start, even if a shell started this one in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run timed benchmarks in a single process, because benchmarks in other processes would distort the times."""
    return 0 if config.getoption("benchmark_enable", False) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Make the garbage collector examine only objects that tests create.

    Hundreds of tests run a collection, and the collected tests themselves are 400,000 objects that live until the end.
    """
    _freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """After the last test of a file, exempt the objects that its tests left in caches from garbage collection."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        _freeze()
    return result


def _freeze() -> None:
    gc.collect()
    gc.freeze()


# Descriptors of two files that the workers of pytest-xdist lock. A worker holds a lock on the first while it runs a
# test: a shared lock, or an exclusive one if the test must run alone. It acquires that lock while it holds the second,
# and a test that runs alone keeps both, so that the other workers queue at the second.
_locks: list[int] = []


def _counts_free_memory(item: pytest.Item | None) -> bool:
    return item is not None and any("free memory" in mark.args for mark in item.iter_markers("xdist_group"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Run a test that asks how much memory is free while no other worker of pytest-xdist runs a test.

    The workers share the memory of a GPU. With `--dist loadgroup`, such tests run one after another, and the other
    workers wait only once.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or "in_process" in cuda.capabilities():
        return (yield)
    if not _locks:
        _locks.extend(
            os.open(f"{os.path.dirname(__file__)}/{name}", os.O_RDONLY) for name in ("conftest.py", "browser.py")
        )
    running, queue = _locks
    alone = _counts_free_memory(item)
    fcntl.flock(queue, fcntl.LOCK_EX)
    fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    if not alone:
        fcntl.flock(queue, fcntl.LOCK_UN)
    try:
        return (yield)
    finally:
        if not (alone and _counts_free_memory(nextitem)):
            fcntl.flock(running, fcntl.LOCK_UN)
            fcntl.flock(queue, fcntl.LOCK_UN)


class _WatchedApi:
    """The driver's functions as `memory.pools` calls them, with a check when a pool is destroyed."""

    def __init__(self) -> None:
        self.outstanding: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(api, name)

    def cuMemPoolDestroy(self, pool: int) -> None:
        """Record the bytes that the driver could not release because arrays use them or their frees are in flight."""
        reserved = enums.CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
        with contextlib.suppress(cuda.CudaError):  # tests plant failures of any call
            api.cuMemPoolTrimTo(pool, 0)
            self.outstanding.append(int(api.cuMemPoolGetAttribute(pool, reserved)))
        api.cuMemPoolDestroy(pool)


@pytest.fixture(scope="session")
def watched_api() -> Iterator[_WatchedApi]:
    """Return the driver functions that check each destroyed pool, and make `memory.pools` call them."""
    with pytest.MonkeyPatch.context() as patch:
        watched = _WatchedApi()
        patch.setattr(pools, "api", watched)
        yield watched


@pytest.fixture(autouse=True)
def pools_end_empty(watched_api: _WatchedApi) -> Iterator[None]:
    """Fail a test that destroyed a pool with memory in use or frees in flight, which crashes NVIDIA's driver later."""
    watched_api.outstanding.clear()
    yield
    assert not any(watched_api.outstanding), "a pool was destroyed while its memory was in use or frees were in flight"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a capability that the driver lacks, before any fixture of its module is created."""
    needed = {name for mark in item.iter_markers("needs") for name in mark.args}
    if missing := sorted(filter(_is_missing, needed)):
        pytest.skip(f"this driver or device lacks: {', '.join(missing)}")


def _is_missing(name: str) -> bool:
    """Return whether the driver lacks a capability, or device 0 an architecture.

    With "sm_90", the device's compute capability must be at least 9.0, and with "sm_90a", exactly 9.0.
    """
    if not name.startswith("sm_"):
        return name not in cuda.capabilities()
    least, here = divmod(int(name.strip("sm_a")), 10), cuda.Device(0).compute_capability
    return here != least if name.endswith("a") else here < least


@pytest.fixture(autouse=True)
def sanitizer_is_left_as_it_was() -> Iterator[None]:
    """Fail a test that leaves the sanitizer's mode changed, which would change what later tests report or raise."""
    before = sanitizer._of_process.mode, [*sanitizer._blocks]
    yield
    after = sanitizer._of_process.mode, [*sanitizer._blocks]
    if after != before:
        mode, sanitizer._blocks[:] = before
        sanitizer._of_process = sanitizer._Modes(mode)
        sanitizer._apply()
        pytest.fail(f"the test left the sanitizer's mode as {after[0]!r}, with {len(after[1])} open blocks")


@pytest.fixture(autouse=True)
def no_debugger() -> Iterator[None]:
    """Reset the flag that a compile with -G sets, because no later compile in the process would be cached."""
    yield  # without monkeypatch, which would then undo every test's changes only after other fixtures' teardown
    programs._for_debugger = False


@pytest.fixture
def device() -> Iterator[cuda.Device]:
    """Make device 0 current, and return it."""
    with cuda.Device(0) as current:
        yield current


@pytest.fixture
def stream(device: cuda.Device) -> Iterator[cuda.Stream]:
    """Return a non-blocking stream: it does not synchronize even with the legacy default stream."""
    with cuda.Stream(non_blocking=True) as made:
        yield made


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a new random seed, which pytest shows if the test fails."""
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    return np.random.default_rng(seed)


@pytest.fixture(params=processors.LEVELS, ids=str)
def processor_level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[processors.Level]:
    """Run the test once for each combination of CPU features and optimisation level for which machine code is made.

    The kernels that the test launches run in the native engine, even those that were compiled to machine code before.
    A level that this processor does not support is skipped, and on a GPU all of them are.
    """
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    level: processors.Level = request.param
    if "in_process" not in cuda.capabilities():
        pytest.skip("kernels do not run on this processor")
    if not processors.runs_here(level):
        pytest.skip(f"this processor is not {level.features}")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native")
    with processors.compiled_for(level):
        yield level


@pytest.fixture
def event_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `measure` accept the event times of any driver as a device's times, so that all of its code runs.

    The device's clock rate is not read, so no samples are discarded because it changed.
    """
    for module in (measuring, device_ceilings, device_samples, peers):
        monkeypatch.setattr(module, "has_capability", lambda name: name == "gpu_timing")
    monkeypatch.setattr(device_samples, "clock_reader", lambda device: lambda: None)


@pytest.fixture
def python(forks: Forks) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a program in a separate process, with a time limit, and returns its output.

    The process starts with everything imported. With `own_imports`, it starts with only the program's own imports.
    """

    def run(
        program: str, *, check: bool = True, own_imports: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **environment}
        if own_imports:
            command = [sys.executable, "-c", program]
            return subprocess.run(command, capture_output=True, text=True, check=check, timeout=120, env=env)
        ended = forks.run("tests.forks:run_program", [program], env)
        if check:
            print(ended.stderr, file=sys.stderr)  # pytest shows it if the test fails
            ended.check_returncode()
        return ended

    return run


@pytest.fixture
def fresh_driver() -> None:
    """Replace the plugin's fixture, whose reset would close the modules that other tests keep."""
    pytest.fail("a test that ends the context runs in a process of its own: see the fixtures python and forks")


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Return a server that runs each function in its own process, without the time that imports would take."""
    server = Forks()
    yield server
    server.close()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """Return a headless browser; a test that uses it is skipped if none is installed."""
    return Browser(tmp_path_factory.mktemp("browser"))


class MakeFatbin(Protocol):
    """A function that packs codes, each with an architecture such as "90", into a fatbin, as `nvcc -fatbin` does."""

    def __call__(self, *codes: tuple[bytes, str], compress: str = "none") -> bytes: ...


@pytest.fixture
def fatbin() -> MakeFatbin:
    """Return a function that makes fatbins, with a compression mode such as "none", "speed" or "size"."""
    nvfatbin = pytest.importorskip("cuda.bindings.nvfatbin", reason="the oldest bindings cannot make fatbins")

    def make(*codes: tuple[bytes, str], compress: str = "none") -> bytes:
        handle = nvfatbin.create(["-64", f"-compress-mode={compress}"], 2)
        for code, arch in codes:
            if code.startswith(b"\x7fELF"):
                nvfatbin.add_cubin(handle, code, len(code), arch, "made.cubin")
            else:
                nvfatbin.add_ptx(handle, code, len(code), arch, "made.ptx", "")
        content = bytearray(nvfatbin.size(handle))
        nvfatbin.get(handle, content)
        nvfatbin.destroy(handle)
        return bytes(content)

    return make


class DriverCalls(Counter[str]):
    """The number of successful calls of each driver function; `fails` chooses calls that fail without being made."""

    @staticmethod
    def fails(name: str) -> bool:
        """Return whether this call of a function fails; a test may replace this function."""
        return False


@pytest.fixture
def driver_calls(monkeypatch: pytest.MonkeyPatch) -> DriverCalls:
    """Count the calls of every driver function, and fail those that the test chooses."""
    counted = DriverCalls()
    outputs: dict[str, int] = {}

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if counted.fails(name):
                if name == "cuStreamEndCapture":  # it ends the capture even if it fails
                    driver.cuGraphDestroy(function(*arguments)[1])
                return (enums.CUresult.CUDA_ERROR_UNKNOWN, *[None] * outputs.get(name, 1))
            result = function(*arguments)
            outputs[name] = len(result) - 1
            counted[name] += not result[0]
            return result

        return call

    driver = backend.chosen().functions
    for name in dir(driver):
        if re.match("cu[A-Z]", name):
            call = counting(name, getattr(driver, name))
            monkeypatch.setattr(raw, name, call)
            monkeypatch.setitem(vars(api), name, calls._unwrapped(call, name))  # api may have cached the original
    return counted


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives the source name of each compile that was not answered from the cache."""
    counted: list[str] = []
    build = compiler._compile

    def counting(request: Any, inclusions: Any) -> Any:
        counted.append(request.name)
        return build(request, inclusions)

    monkeypatch.setattr(compiler, "_compile", counting)
    return counted


KERNELS = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

template <class T, int N> __global__ void fill(T *out, T value) {
    int i = blockIdx.x * N + threadIdx.x;
    if (threadIdx.x < N) out[i] = value;
}

struct Pair { float a; double b; };
struct Wide { char bytes[4096]; };

namespace deep { __global__ void pair(double *out, Pair p) { *out = p.a + p.b; } }

extern "C" __global__ void scalars(long long *out, bool b, signed char c, short s, int i, long long l,
                                   unsigned char uc, unsigned short us, unsigned int ui, unsigned long long ul) {
    out[0] = b; out[1] = c; out[2] = s; out[3] = i; out[4] = l;
    out[5] = uc; out[6] = us; out[7] = ui; out[8] = (long long)ul;
}

extern "C" __global__ void doubles(double *out, float f, double d) { out[0] = f; out[1] = d; }

extern "C" __global__ void anything(void *p, char *q) { if (p && q) q[0] = ((char *)p)[0]; }

extern "C" __global__ void wide(Wide w, char *out) { out[threadIdx.x] = w.bytes[threadIdx.x]; }

extern "C" __global__ void dynamic(int *out, int n) {
    extern __shared__ int buffer[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) buffer[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) *out = buffer[n - 1];
}

__constant__ float coefficients[4];
__device__ int counter = 7;
extern "C" __global__ void apply(float *out) { out[threadIdx.x] = coefficients[threadIdx.x] * counter; }

extern "C" __global__ void __launch_bounds__(64) bounded(int *out) { out[threadIdx.x] = 1; }

__global__ void overloaded(int *p) { *p = 1; }
__global__ void overloaded(float *p) { *p = 2; }
"""


@pytest.fixture(scope="session")
def module() -> cuda.Module:
    """Return a module of small kernels that many tests launch."""
    with cuda.Device(0):
        return cuda.compile(KERNELS, names=["fill<float, 32>", "fill<long long, 7>"])


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> cuda.Module:
    """Return the compiled KERNELS of the test's module: a source or a file, with its COMPILE_OPTIONS."""
    with cuda.Device(0):
        return cuda.compile(request.module.KERNELS, **getattr(request.module, "COMPILE_OPTIONS", {}))
