"""Devices: what they are and what they answer."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import SUCCESS, Status, ok

Attribute = bindings.CUdevice_attribute


@pytest.mark.parametrize("attribute", list(Attribute), ids=lambda attribute: attribute.name)
def test_every_attribute_is_answered_but_the_end_mark(context: Any, attribute: Any) -> None:
    status, value = driver.cuDeviceGetAttribute(attribute, 0)
    if attribute == Attribute.CU_DEVICE_ATTRIBUTE_MAX:
        assert status == Status.CUDA_ERROR_INVALID_VALUE
    else:
        assert status == SUCCESS
        assert isinstance(value, int)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMPUTE_CAPABILITY_MAJOR", 9),
        ("COMPUTE_CAPABILITY_MINOR", 0),
        ("MULTIPROCESSOR_COUNT", 132),
        ("WARP_SIZE", 32),
        ("MAX_THREADS_PER_BLOCK", 1024),
        ("MAX_SHARED_MEMORY_PER_BLOCK", 49152),
        ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", 232448),
        ("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", 233472),
    ],
)
def test_the_card_is_like_an_h200(context: Any, name: str, value: int) -> None:
    assert ok(driver.cuDeviceGetAttribute(getattr(Attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), 0)) == value


def test_name_is_cut_to_the_length_given(context: Any) -> None:
    assert ok(driver.cuDeviceGetName(10, 0)) == b"cudart-py\0"
    assert ok(driver.cuDeviceGetName(64, 0)).rstrip(b"\0") == b"cudart-py simulator (sm_90)"


def test_devices_have_different_uuids_and_places(context: Any) -> None:
    assert ok(driver.cuDeviceGetUuid(0)).bytes != ok(driver.cuDeviceGetUuid(1)).bytes
    assert ok(driver.cuDeviceGetPCIBusId(32, 0)) != ok(driver.cuDeviceGetPCIBusId(32, 1))


def test_a_device_is_found_by_its_place(context: Any) -> None:
    place = ok(driver.cuDeviceGetPCIBusId(32, 1))
    assert int(ok(driver.cuDeviceGetByPCIBusId(place))) == 1


@pytest.mark.parametrize("ordinal", [-1, 2, 100])
def test_an_ordinal_without_device_is_an_invalid_device(context: Any, ordinal: int) -> None:
    assert driver.cuDeviceGet(ordinal) == (Status.CUDA_ERROR_INVALID_DEVICE, None)


def test_every_status_has_a_name_and_a_text() -> None:
    for status in Status:
        assert ok(driver.cuGetErrorName(status)) == status.name.encode()
        assert ok(driver.cuGetErrorString(status))


def _run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from cudart_py.simulator import driver as d\n" + program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )


# NVIDIA's reference gives these no CUDA_ERROR_NOT_INITIALIZED.
WITHOUT_CUINIT = ["cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"]
WITH_CUINIT = [name for name in vars(driver) if name.startswith("cu") and name not in ["cuInit", *WITHOUT_CUINIT]]
REFUSED = [f"{name} CUDA_ERROR_NOT_INITIALIZED" for name in WITH_CUINIT]
CALL_ALL = f"""
import inspect
for name in {WITH_CUINIT}:
    function = getattr(d, name)
    made_up = [0] * len(inspect.signature(function).parameters)
    print(name, function(*made_up)[0].name)
"""


def test_calls_before_cuinit_are_not_initialized() -> None:
    assert _run(CALL_ALL).stdout.splitlines() == REFUSED


@pytest.mark.parametrize("name", WITHOUT_CUINIT)
def test_versions_and_texts_need_no_cuinit(name: str) -> None:
    arguments = "" if name == "cuDriverGetVersion" else "3"
    assert _run(f"print(d.{name}({arguments})[0].name)").stdout.strip() == "CUDA_SUCCESS"


def test_environment_says_how_many_devices_and_how_much_memory() -> None:
    environment = {"CUDART_PY_SIMULATOR_DEVICES": "3", "CUDART_PY_SIMULATOR_MEMORY": "5000000"}
    program = "d.cuInit(0); print(d.cuDeviceGetCount()[1], d.cuDeviceTotalMem(2)[1])"
    assert _run(program, **environment).stdout.split() == ["3", "5000000"]


def test_no_devices_is_said_by_cuinit() -> None:
    assert "CUDA_ERROR_NO_DEVICE" in _run("print(d.cuInit(0))", CUDART_PY_SIMULATOR_DEVICES="0").stdout


def test_a_wrong_number_of_devices_is_named() -> None:
    assert "CUDART_PY_SIMULATOR_DEVICES='many'" in _run("d.cuInit(0)", CUDART_PY_SIMULATOR_DEVICES="many").stderr


@pytest.mark.parametrize("variable", ["STEPS", "SECONDS", "CHECKS", "CHECKS_MIB", "MEMORY"])
def test_a_wrong_variable_is_named_at_the_first_use_in_one_line(variable: str) -> None:
    name = f"CUDART_PY_SIMULATOR_{variable}"
    assert _run("d.cuInit(0)", **{name: "many"}).stderr.splitlines()[-1].startswith(f"ValueError: {name}='many' is no")


def test_a_forked_child_has_no_driver() -> None:
    program = f"""
import os, sys
d.cuInit(0)
d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
if child := os.fork():
    os.waitpid(child, 0)
    sys.exit()
print("cuInit", d.cuInit(0)[0].name)
{CALL_ALL}
"""
    assert _run(program).stdout.splitlines() == ["cuInit CUDA_ERROR_NOT_INITIALIZED", *REFUSED]
