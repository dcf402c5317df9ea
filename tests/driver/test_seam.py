"""The seam: when the driver is chosen, and what is said about it."""

from __future__ import annotations

import pytest

import cudart_py as cuda
from cudart_py.driver import seam

HIDE_CUDA = """
import cuda.bindings.driver as d
from cuda.pathfinder import DynamicLibNotFoundError
def cuInit(flags):
    raise DynamicLibNotFoundError("hidden")
d.cuInit = cuInit
"""


def test_importing_chooses_no_driver_and_loads_no_bindings(python):
    python(
        "import sys, cudart_py; from cudart_py.driver import seam; assert seam._module is None;"
        "assert not [m for m in sys.modules if m.startswith(('cuda.', 'nvmath', 'cudart_py.simulator'))]"
    )


def test_the_simulator_serves_where_libcuda_is_missing_and_says_so_once(python):
    result = python(HIDE_CUDA + "import cudart_py as c; c.devices(); c.devices()", CUDART_PY_DRIVER="")
    assert result.stderr.count("libcuda") == 1
    assert "simulator" in result.stderr


def test_the_simulator_serves_where_there_is_no_device(python):
    program = "import cuda.bindings.driver as d; d.cuInit = lambda f: (d.CUresult.CUDA_ERROR_NO_DEVICE,)\n"
    result = python(program + "import cudart_py as c; print(c.devices()[0].name)", CUDART_PY_DRIVER="")
    assert "simulator" in result.stdout


def test_asking_for_the_simulator_is_silent(python):
    result = python("import cudart_py as c; c.devices()", CUDART_PY_DRIVER="simulator")
    assert result.stderr == ""


def test_asking_for_the_real_driver_where_there_is_none_is_an_error(python):
    result = python(HIDE_CUDA + "import cudart_py as c; c.devices()", check=False, CUDART_PY_DRIVER="cuda")
    assert result.returncode
    assert "NoDeviceError" in result.stderr


def test_any_other_failure_of_cuinit_is_raised(python):
    program = (
        "import cuda.bindings.driver as d; d.cuInit = lambda f: (d.CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,)\n"
        "d.cuGetErrorString = lambda s: (0, b'mismatch')\n"
    )
    result = python(program + "import cudart_py as c; c.devices()", check=False, CUDART_PY_DRIVER="")
    assert "NoDeviceError: cuInit: mismatch (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)" in result.stderr


def test_a_driver_of_another_major_version_is_refused_with_a_sentence(python):
    program = (
        "import cuda.bindings.driver as d; ok = d.CUresult.CUDA_SUCCESS\n"
        "d.cuInit = lambda f: (ok,); d.cuDriverGetVersion = lambda: (ok, 12080)\n"
    )
    result = python(program + "import cudart_py as c; c.devices()", check=False, CUDART_PY_DRIVER="")
    assert "supports CUDA 12.8" in result.stderr


def test_an_unknown_driver_name_is_an_error(python):
    result = python("import cudart_py as c; c.devices()", check=False, CUDART_PY_DRIVER="opencl")
    assert "CUDART_PY_DRIVER='opencl' is not one of 'cuda', 'simulator'" in result.stderr
    with pytest.raises(ValueError, match="opencl"):
        seam.select("opencl")


def test_select_is_refused_once_the_other_driver_is_in_use(device):
    other = {"cuda": "simulator", "simulator": "cuda"}[seam._selected]
    with pytest.raises(RuntimeError, match="already in use"):
        seam.select(other)


def test_capabilities_are_names_of_the_documented_table():
    documented = {
        line.split("`")[1] for line in seam.capabilities.__doc__.splitlines() if line.strip().startswith("| `")
    }
    assert cuda.capabilities() <= documented


def test_raw_calls_return_the_drivers_tuples_which_check_unwraps(device):
    status, version = cuda.raw.cuDriverGetVersion()
    assert not status
    assert version == cuda.check(cuda.raw.cuDriverGetVersion())
    with pytest.raises(cuda.InvalidValueError, match="CUDA_ERROR_INVALID_VALUE"):
        cuda.check(cuda.raw.cuMemFree(1))


def test_looking_at_the_raw_calls_chooses_no_driver(python):
    python(
        "import cudart_py as c; from cudart_py.driver import seam;"
        "assert 'bindings' in c.raw.__doc__ and not hasattr(c.raw, '__wrapped__'); assert seam._module is None"
    )


def test_a_function_that_the_driver_lacks_is_an_attribute_error(device):
    with pytest.raises(AttributeError):
        cuda.raw.cuNothing  # noqa: B018  # the access is what fails


def test_a_simulator_without_devices_is_a_machine_without_devices(python):
    program = """
import cudart_py as cuda
for ask in (cuda.devices, cuda.Stream):
    try:
        ask()
    except cuda.NoDeviceError as error:
        print(error)
"""
    said = python(program, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="0").stdout.splitlines()
    assert len(said) == 2
    assert all("no device by CUDART_PY_SIMULATOR_DEVICES (CUDA_ERROR_NO_DEVICE)" in line for line in said)


WAITING = """
import faulthandler, threading, time
faulthandler.dump_traceback_later(60, exit=True)
import cudart_py as cuda
stream, inside, asked = cuda.Stream(), threading.Event(), threading.Event()

def host_function():
    inside.set()
    asked.wait()
    time.sleep(0.2)  # the other thread asks the driver by now, and waits
    vars(cuda.raw).pop("cuProfilerStop", None)
    print(callable(cuda.raw.cuProfilerStop))

def ask():
    inside.wait()
    asked.set()
    print(bool(cuda.capabilities()) or True)

thread = threading.Thread(target=ask)
thread.start()
stream.add_callback(host_function)
stream.synchronize()
thread.join()
"""


def test_a_function_is_found_while_another_thread_waits_for_the_driver(python):
    assert python(WAITING, CUDART_PY_DRIVER=seam._selected).stdout.split() == ["True", "True"]
