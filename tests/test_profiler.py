"""Starting and stopping the profilers that watch a process."""

from __future__ import annotations

import pytest

import cudart_py as cuda


def test_a_profiler_is_started_and_stopped_any_number_of_times(device):
    cuda.profiler_start()
    cuda.profiler_start()
    cuda.profiler_stop()
    cuda.profiler_stop()


def test_a_range_stops_the_profiler_behind_a_block_that_raises(device, monkeypatch):
    calls = []
    monkeypatch.setattr("cudart_py.profiling.profiler.profiler_start", lambda: calls.append("start"))
    monkeypatch.setattr("cudart_py.profiling.profiler.profiler_stop", lambda: calls.append("stop"))
    with pytest.raises(KeyError), cuda.profiler_range():
        raise KeyError
    assert calls == ["start", "stop"]


def test_the_first_call_of_a_process_may_start_the_profiler(python):
    program = "import cudart_py as cuda\nwith cuda.profiler_range():\n    print(cuda.zeros(3).to_host())"
    assert python(program).stdout == "[0. 0. 0.]\n"
