from __future__ import annotations

import ctypes
import inspect
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator import ptx as machine
from cudart_py.simulator.calls.launches import launches
from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.ptx.running.observer import Observer
from tests.simulator.kernels import INVALID, attribute, function, launch, loaded, value_of, with_counts
from tests.simulator.support import Status, ok, upload


def test_parameters_are_read_at_the_call_from_addresses_values_with_their_types_or_a_buffer(module: Any) -> None:
    address, value, add = upload(np.zeros(4, np.int32)), ctypes.c_int(1), function(module, "add")

    def add_once(parameters: Any = 0, extra: Any = 0) -> Any:
        return driver.cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, 0, parameters, extra)

    launch(add, ctypes.c_void_p(address), value, ctypes.c_uint(1))
    value.value = 1000
    assert value_of(address) == 11
    pointer = bindings.CUdeviceptr(address)
    for first, kind in ((pointer, ctypes.c_void_p), (address, ctypes.c_void_p), (pointer, None)):
        ok(add_once(((first, 1, ctypes.c_uint(1)), (kind, ctypes.c_int, ctypes.c_uint))))
    assert value_of(address) == 44
    packed, size = np.array([address, 1 | 1 << 32], np.uint64), ctypes.c_size_t(16)
    extra = (ctypes.c_size_t * 5)(1, packed.ctypes.data, 2, ctypes.addressof(size), 0)
    ok(add_once(extra=ctypes.addressof(extra)))
    assert value_of(address) == 55
    size.value = 12
    assert add_once(extra=ctypes.addressof(extra)) == (INVALID,)


def test_a_variable_is_reached_through_a_pointer_in_another(module: Any) -> None:
    launch(function(module, "bump"))
    counter, _ = ok(driver.cuModuleGetGlobal(module, b"counter"))
    assert value_of(int(counter)) == 6


def test_launch_bounds_registers_and_the_context_limit_a_launch(two_devices: list[Any], module: Any) -> None:
    kernel = function(module, "bounded")
    assert attribute(kernel, "MAX_THREADS_PER_BLOCK") == 128
    assert launch(kernel, ctypes.c_void_p(upload(np.zeros(256, np.int32))), block=(129, 1, 1)) == INVALID
    kernel = function(ok(driver.cuModuleLoadData(with_counts("bump", 200))), "bump")
    assert attribute(kernel, "MAX_THREADS_PER_BLOCK") == 320
    assert launch(kernel, block=(321, 1, 1)) == Status.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    assert not launch(kernel, block=(320, 1, 1))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    assert launch(kernel) == Status.CUDA_ERROR_INVALID_HANDLE


def test_each_launch_gets_the_engine_that_suits_it_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDART_PY_SIMULATOR_ENGINE", raising=False)
    for has_llvmlite in (True, False):
        monkeypatch.setattr(machine, "has_llvmlite", lambda has_llvmlite=has_llvmlite: has_llvmlite)
        assert launches.engine() == ("auto" if has_llvmlite else "numpy")
    for chosen in ("", "auto", "numpy"):
        monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", chosen)
        assert launches.engine() == "numpy"
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native")
    with pytest.raises(ValueError, match="needs llvmlite: pip install"):
        launches.engine()


SPIN = 'extern "C" __global__ void spin(volatile int *flag) { while (!*flag) { } }'


@pytest.mark.parametrize(("steps", "seconds", "words"), [(1000, None, "spin"), (None, 0.1, "the limit of seconds")])
@pytest.mark.parametrize("chosen", ["numpy", "native"])
def test_a_kernel_that_does_not_end_is_ended_by_a_limit(context, monkeypatch, chosen, steps, seconds, words):
    if chosen == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", chosen)
    monkeypatch.setenv("CUDART_PY_SIMULATOR_CHECKS", "off")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_STEPS", "0")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_SECONDS", "7")
    assert launches.launch_limits() == (None, 7)
    monkeypatch.setattr(launches, "launch_limits", lambda: (steps, seconds))
    launch(function(loaded(SPIN), "spin"), ctypes.c_void_p(upload(np.zeros(1, np.int32))))
    assert driver.cuCtxSynchronize() == (Status.CUDA_ERROR_LAUNCH_TIMEOUT,)
    assert words in (driver.take_report() or "")


def test_counters_and_checks_see_each_event_of_a_launch_one_after_the_other() -> None:
    for event, method in vars(Observer).items():
        # What machine code records is no event: one observer at most, the checks, has records.
        if inspect.isfunction(method) and event != "records":
            seen: list[tuple[Any, ...]] = []
            watching = [Observer(), Observer()]
            for number, observer in enumerate(watching):
                setattr(observer, event, lambda *given, number=number, seen=seen: seen.append((number, *given)))
            arguments = tuple(inspect.signature(method).parameters)[1:]
            getattr(Observers(*watching), event)(*arguments)
            assert seen == [(0, *arguments), (1, *arguments)], event
