"""Control of external profilers: start and stop, and NVTX ranges, with and without the package `nvtx`."""

import sys
from types import ModuleType

import pytest

import cudart_py as cuda
from cudart_py.host import nvtx


def test_a_profiler_is_started_and_stopped_any_number_of_times_and_behind_an_error(device, monkeypatch):
    cuda.profiling.profiler_start()
    cuda.profiling.profiler_start()
    cuda.profiling.profiler_stop()
    cuda.profiling.profiler_stop()
    calls = []
    monkeypatch.setattr("cudart_py.profiling.profiler.profiler_start", lambda: calls.append("start"))
    monkeypatch.setattr("cudart_py.profiling.profiler.profiler_stop", lambda: calls.append("stop"))
    with pytest.raises(KeyError), cuda.profiling.profiler_range():
        raise KeyError
    assert calls == ["start", "stop"]


def test_the_first_call_of_a_process_may_start_the_profiler(python):
    program = "import cudart_py as cuda\nwith cuda.profiling.profiler_range():\n    print(cuda.zeros(3).to_host())"
    assert python(program).stdout == "[0. 0. 0.]\n"


@pytest.fixture
def log(monkeypatch):
    """Replace the package `nvtx`, and return a list of the calls made to it."""
    calls = []
    fake = ModuleType("nvtx")
    fake.push_range = lambda message, color=None, domain=None: calls.append(("push", message, color, domain))
    fake.pop_range = lambda domain=None: calls.append(("pop", domain))
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    nvtx._library.cache_clear()
    yield calls
    nvtx._library.cache_clear()


def test_a_block_and_a_function_are_ranges_that_end_with_an_error_too(log):
    @cuda.nvtx_range("count")
    def count(n):
        if not n:
            raise KeyError
        count(n - 1)

    with pytest.raises(KeyError), cuda.nvtx_range("outer", color="green", domain="tour"):
        count(1)
    pushed, popped = ("push", "count", None, None), ("pop", None)
    assert log == [("push", "outer", "green", "tour"), pushed, pushed, popped, popped, ("pop", "tour")]


def test_without_the_package_nothing_happens(log, monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with cuda.nvtx_range("outer"):
        result = cuda.nvtx_range("f")(lambda x: x + 1)(2)
    assert (result, log) == (3, [])


def test_the_real_package_takes_it():
    pytest.importorskip("nvtx", reason="the extra nvtx is not installed")
    with cuda.nvtx_range("outer", color="green", domain="tour"), cuda.nvtx_range("inner", color=0xFF0000):
        pass
