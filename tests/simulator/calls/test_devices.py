from typing import Any

import pytest
from cuda.bindings import driver as bindings
from cuda.bindings import runtime

from cudart_py.base.error_texts import ERROR_TEXTS
from cudart_py.simulator import driver
from cudart_py.simulator.state import devices
from cudart_py.simulator.state.memory.records import record_limit
from tests.simulator.support import SUCCESS, Status, ok

Attribute = bindings.CUdevice_attribute


def test_every_attribute_is_answered_but_the_end_mark(context: Any) -> None:
    # Those of CUDA 13.0, like the driver's version; later bindings have more.
    answers = {attribute: driver.cuDeviceGetAttribute(attribute, 0) for attribute in Attribute if attribute < 148}
    assert driver.cuDeviceGetAttribute(Attribute.CU_DEVICE_ATTRIBUTE_MAX, 0)[0] == Status.CUDA_ERROR_INVALID_VALUE
    assert {status for status, _ in answers.values()} == {SUCCESS}
    assert all(isinstance(value, int) for _, value in answers.values())


def test_devices_differ_in_their_uuids_and_places_and_cut_their_names(context: Any) -> None:
    assert ok(driver.cuDeviceGetName(10, 0)) == b"cudart-py\0"
    assert ok(driver.cuDeviceGetName(64, 0)).rstrip(b"\0") == b"cudart-py simulator (sm_90)"
    assert ok(driver.cuDeviceGetUuid(0)).bytes != ok(driver.cuDeviceGetUuid(1)).bytes
    places = [ok(driver.cuDeviceGetPCIBusId(32, ordinal)) for ordinal in range(2)]
    assert [int(ok(driver.cuDeviceGetByPCIBusId(place))) for place in places] == [0, 1]


# As on an H200.
@pytest.mark.parametrize(
    ("address", "status"),
    [
        (b"00000000:01:00.0", "SUCCESS"),
        (b"0000:01:00", "SUCCESS"),
        (b"01:00.0", "SUCCESS"),
        (b"0000:01:00.0x", "SUCCESS"),
        (b"99:00.0", "INVALID_DEVICE"),
        (b"01:00", "INVALID_VALUE"),
        (b"rubbish", "INVALID_VALUE"),
        (b"", "INVALID_VALUE"),
    ],
)
def test_an_address_may_lack_its_domain_or_its_function(context: Any, address: bytes, status: str) -> None:
    prefix = "CUDA_" if status == "SUCCESS" else "CUDA_ERROR_"
    assert driver.cuDeviceGetByPCIBusId(address)[0] == getattr(Status, prefix + status)


def test_the_old_call_for_the_compute_capability_agrees_with_the_attributes(context: Any) -> None:
    names = [f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}" for part in ("MAJOR", "MINOR")]
    expected = [ok(driver.cuDeviceGetAttribute(getattr(bindings.CUdevice_attribute, name), 0)) for name in names]
    assert list(ok(driver.cuDeviceComputeCapability(0))) == expected
    assert driver.cuDeviceComputeCapability(9) == (Status.CUDA_ERROR_INVALID_DEVICE, None, None)


def test_descriptions_are_those_of_the_static_runtime() -> None:
    """cuda.bindings.runtime contains NVIDIA's own, which needs no driver for this."""
    expected = {int(error): runtime.cudaGetErrorString(error)[1].decode() for error in runtime.cudaError_t}
    # Other versions of the bindings lack some of the errors.
    assert {number: ERROR_TEXTS[number] for number in expected if number in ERROR_TEXTS} == expected
    texts = {int(status): ok(driver.cuGetErrorString(status)).decode() for status in Status}
    assert {number: text for number, text in texts.items() if number in expected} == {
        number: text for number, text in expected.items() if number in texts
    }


def test_every_status_has_a_name_and_a_text() -> None:
    for status in Status:
        assert ok(driver.cuGetErrorName(status)) == status.name.encode()
        assert ok(driver.cuGetErrorString(status))


# NVIDIA's reference does not list CUDA_ERROR_NOT_INITIALIZED for these functions, nor for the others of the log.
WITHOUT_CUINIT = ["cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuLogsCurrent"]
WITH_CUINIT = [
    name
    for name in vars(driver)
    if name.startswith("cu") and not name.startswith("cuLogs") and name not in ["cuInit", *WITHOUT_CUINIT]
]
PROGRAM = f"""
import inspect, os, sys
from cudart_py.simulator import driver as d

def call(names, value):
    for name in names:
        function = getattr(d, name)
        print(name, function(*[value] * len(inspect.signature(function).parameters))[0].name)

call({WITHOUT_CUINIT}, 3)
call({WITH_CUINIT}, 0)
d.cuInit(0)
d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
sys.stdout.flush()
if child := os.fork():
    os.waitpid(child, 0)
    sys.exit()
call(["cuInit", *{WITH_CUINIT}], 0)
"""


def test_before_cuinit_and_in_a_forked_child_there_is_no_driver(python: Any) -> None:
    refused = [f"{name} CUDA_ERROR_NOT_INITIALIZED" for name in WITH_CUINIT]
    answered = [f"{name} CUDA_SUCCESS" for name in WITHOUT_CUINIT]
    forked = ["cuInit CUDA_ERROR_NOT_INITIALIZED", *refused]
    assert python(PROGRAM).stdout.splitlines() == [*answered, *refused, *forked]


@pytest.fixture
def uninitialised(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    ok(driver.cuInit(0))
    monkeypatch.setattr(devices.state, "devices", [])
    monkeypatch.setattr(devices.state, "initialised", False)
    monkeypatch.setattr(record_limit.limit, "_most", 0)
    return monkeypatch


def test_environment_says_how_many_devices_and_how_much_memory(uninitialised: pytest.MonkeyPatch) -> None:
    uninitialised.setenv("CUDART_PY_SIMULATOR_DEVICES", "0")
    assert driver.cuInit(0) == (Status.CUDA_ERROR_NO_DEVICE,)
    uninitialised.setenv("CUDART_PY_SIMULATOR_DEVICES", "3")
    uninitialised.setenv("CUDART_PY_SIMULATOR_MEMORY", "5000000")
    ok(driver.cuInit(0))
    assert ok(driver.cuDeviceGetCount()) == 3
    assert ok(driver.cuDeviceTotalMem(2)) == 5000000


VARIABLES = {"SIMULATOR_ENGINE": ["cuda", "NumPy", "0"], "SIMULATOR_THREADS": ["0", "two", "1025"]}
VARIABLES |= {f"SIMULATOR_{name}": ["many"] for name in ("DEVICES", "MEMORY", "STEPS", "SECONDS")}
VARIABLES |= {name: ["many"] for name in ("SANITIZER", "SANITIZER_MIB")}


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_wrong_variable_is_named_at_the_first_use(uninitialised: pytest.MonkeyPatch, variable: str) -> None:
    for value in VARIABLES[variable]:
        uninitialised.setenv(f"CUDART_PY_{variable}", value)
        with pytest.raises(ValueError, match=f"CUDART_PY_{variable}='{value}' is no"):
            driver.cuInit(0)
