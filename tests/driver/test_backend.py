"""The backend: when the driver is chosen, and the warnings about the choice."""

import re

import pytest
from cuda.bindings import driver
from cuda.pathfinder import DynamicLibNotFoundError

import cudart_py as cuda
from cudart_py.driver import backend

OK = driver.CUresult.CUDA_SUCCESS
NO_DEVICE = driver.CUresult.CUDA_ERROR_NO_DEVICE
MISMATCH = driver.CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH


def test_importing_and_looking_at_the_raw_calls_chooses_no_driver_and_loads_no_bindings(python):
    program = """
import sys, cudart_py as c, cudart_py.libraries
from cudart_py.driver import backend
assert not [m for m in sys.modules if m.startswith(('cuda.', 'nvmath', 'cudart_py.simulator'))]
assert 'bindings' in c.raw.__doc__ and not hasattr(c.raw, '__wrapped__')
assert c.occupancy((9, 0), 256, 32).blocks == 8
assert backend._used is None
"""
    python(program, own_imports=True, CUDART_PY_DRIVER="")


def hide_cuda(flags):
    raise DynamicLibNotFoundError("hidden")


# Runs in a process of its own, where no driver is chosen yet.
CHOOSE = """
import cudart_py as cuda
from tests.driver import test_backend
test_backend.driver.cuInit = {}
print(cuda.devices()[0].name, cuda.devices()[0].name)
"""


@pytest.mark.parametrize(
    ("init", "chosen", "words"),
    [
        ("test_backend.hide_cuda", "", r"^[^\n]*libcuda[^\n]*simulator[^\n]*$"),  # one line, once
        ("lambda flags: (test_backend.NO_DEVICE,)", "", "simulator"),
        ("None", "simulator", "^$"),
    ],
)
def test_the_simulator_serves_where_it_is_asked_for_or_nothing_else_can(python, init, chosen, words):
    result = python(CHOOSE.format(init), CUDART_PY_DRIVER=chosen)
    assert result.stdout.count("simulator") == 2
    assert re.search(words, result.stderr.rstrip())


WRONG_SETTING = """
import traceback
from tests.driver import test_backend
from cudart_py.driver import backend
test_backend.driver.cuInit = test_backend.hide_cuda
try:
    backend.chosen()
except ValueError as error:
    print(*traceback.format_exception(error), sep="")
"""


def test_the_error_for_a_wrong_setting_of_the_simulator_comes_alone(python):
    """Neither the missing driver nor the simulator's own modules are in its traceback."""
    report = python(WRONG_SETTING, CUDART_PY_DRIVER="", CUDART_PY_SIMULATOR_ENGINE="fast").stdout
    assert report.count("Traceback") == 1
    assert "simulator/" not in report
    assert report.rstrip().endswith("ValueError: CUDART_PY_SIMULATOR_ENGINE='fast' is not one of auto, numpy, native")


@pytest.mark.parametrize(
    ("init", "chosen", "error", "words"),
    [
        (hide_cuda, "cuda", cuda.errors.NoDeviceError, "libcuda"),
        (lambda flags: (MISMATCH,), "", cuda.errors.NoDeviceError, r"cuInit: .*\(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH\)"),
        (lambda flags: (OK,), "", cuda.errors.NoDeviceError, "supports CUDA 12.8"),
        (None, "opencl", ValueError, "CUDART_PY_DRIVER='opencl' is not one of 'cuda', 'simulator'"),
    ],
)
def test_a_driver_that_cannot_serve_is_an_error(monkeypatch, init, chosen, error, words):
    monkeypatch.setattr(backend, "_used", None)
    monkeypatch.setattr(backend, "_selected", None)
    monkeypatch.setattr(driver, "cuInit", init)
    monkeypatch.setattr(driver, "cuGetErrorString", lambda status: (OK, b"mismatch"))
    monkeypatch.setattr(driver, "cuDriverGetVersion", lambda: (OK, 12080))
    monkeypatch.setenv("CUDART_PY_DRIVER", chosen)
    with pytest.raises(error, match=words):
        backend.chosen()


def test_select_refuses_an_unknown_driver_and_another_than_is_in_use(device):
    with pytest.raises(ValueError, match="opencl"):
        backend.select("opencl")
    other = {"cuda": "simulator", "simulator": "cuda"}[backend._selected]
    with pytest.raises(RuntimeError, match="already in use"):
        backend.select(other)


def test_capabilities_are_names_of_the_documented_table():
    documented = {
        line.split("`")[1] for line in cuda.capabilities.__doc__.splitlines() if line.strip().startswith("| `")
    }
    assert cuda.capabilities() <= documented


def test_raw_calls_return_the_drivers_tuples_which_check_unwraps(device):
    status, version = cuda.raw.cuDriverGetVersion()
    assert not status
    assert version == cuda.check(cuda.raw.cuDriverGetVersion())
    with pytest.raises(cuda.errors.InvalidValueError, match="CUDA_ERROR_INVALID_VALUE"):
        cuda.check(cuda.raw.cuMemFree(1))
    with pytest.raises(AttributeError):
        cuda.raw.cuNothing  # noqa: B018  # the access fails


def test_another_system_than_linux_is_told_where_to_run_whatever_is_installed(python):
    program = """
import os, sys
sys.modules["cuda"] = None  # NVIDIA has no wheels for macOS
import cudart_py as cuda
for sys.platform in ("win32", "darwin"):
    for os.environ["CUDART_PY_DRIVER"] in ("", "cuda", "simulator"):
        try:
            cuda.zeros(3)
        except cuda.errors.NotSupportedError as error:
            print(sys.platform in str(error), error)
"""
    done = python(program, own_imports=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert all(word in line for line in lines for word in ("True", "WSL", "Docker", "Colab"))
    assert done.stderr == ""


def test_a_simulator_without_devices_is_a_machine_without_devices(python):
    program = """
import cudart_py as cuda
for ask in (cuda.devices, cuda.Stream):
    try:
        ask()
    except cuda.errors.NoDeviceError as error:
        print(error)
"""
    said = python(program, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="0").stdout.splitlines()
    assert len(said) == 2
    assert all("CUDART_PY_SIMULATOR_DEVICES leaves the simulator without a device" in line for line in said)


WAITING = """
import faulthandler, threading, time
faulthandler.dump_traceback_later(60, exit=True)
import cudart_py as cuda
from cudart_py.driver.backend import chosen
stream, inside, asked = cuda.Stream(), threading.Event(), threading.Event()

def host_function():
    inside.set()
    asked.wait()
    time.sleep(0.2)  # the other thread asks the driver by now, and waits
    print(callable(chosen().functions.cuProfilerStop))

def ask():
    inside.wait()
    asked.set()
    print(bool(cuda.capabilities()) or True)

thread = threading.Thread(target=ask)
thread.start()
stream.launch_host_function(host_function)
stream.synchronize()
thread.join()
"""


def test_a_function_is_found_while_another_thread_waits_for_the_driver(python):
    # Count words rather than lines: the threads may print at the same time, and their lines may run together.
    assert python(WAITING, CUDART_PY_DRIVER=backend._selected).stdout.count("True") == 2
