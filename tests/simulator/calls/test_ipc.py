"""The simulator shares nothing with other processes, and says so."""

from __future__ import annotations

from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import Status, ok


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cuIpcGetMemHandle", (0,)),
        ("cuIpcOpenMemHandle", (bindings.CUipcMemHandle(), 1)),
        ("cuIpcCloseMemHandle", (0,)),
        ("cuIpcGetEventHandle", (0,)),
        ("cuIpcOpenEventHandle", (bindings.CUipcEventHandle(),)),
    ],
)
def test_handles_for_other_processes_are_not_supported(context: Any, name: str, arguments: tuple[Any, ...]) -> None:
    assert getattr(driver, name)(*arguments)[0] == Status.CUDA_ERROR_NOT_SUPPORTED


def test_the_devices_say_so_too(context: Any) -> None:
    kind = bindings.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED
    assert ok(driver.cuDeviceGetAttribute(kind, 0)) == 0
