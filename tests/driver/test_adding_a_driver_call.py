"""The driver call that docs/adding-a-driver-call.md adds works."""

import re
from pathlib import Path
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.context import device as devices
from cudart_py.driver.calls import raw
from cudart_py.simulator import driver
from cudart_py.simulator.calls.contexts import devices as simulated_devices
from tests.simulator.support import Status, fresh_devices, ok

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-driver-call.md"
CALL = "cuDeviceGetExecAffinitySupport"


@pytest.fixture
def page_tests(monkeypatch):
    """Add the page's call where the page says, and return the page's tests by name."""
    assert not hasattr(driver, CALL)
    assert not hasattr(devices.Device, "has_sm_affinity")
    simulated, bare_tests, wrapper, test = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    tests = {"Any": Any, "Status": Status, "bindings": bindings, "driver": driver, "ok": ok}
    imported = {"CUexecAffinityType": bindings.CUexecAffinityType}
    spaces = [vars(simulated_devices) | imported, tests, vars(devices).copy(), tests]
    for text, space in zip((simulated, bare_tests, wrapper, test), spaces, strict=True):
        exec(compile(text, str(PAGE), "exec"), space)
    monkeypatch.setattr(driver, CALL, spaces[0][CALL], raising=False)
    if not hasattr(raw, CALL):  # its first use copied the simulator's functions
        monkeypatch.setattr(raw, CALL, spaces[0][CALL], raising=False)
    monkeypatch.setattr(devices.Device, "has_sm_affinity", spaces[2]["has_sm_affinity"], raising=False)
    return tests


@pytest.fixture
def context():
    """Make a simulator context current, as the fixture of the simulator's own tests does, and yield its handle."""
    restore = fresh_devices(1, 64 << 20)
    handle = ok(driver.cuDevicePrimaryCtxRetain(0))
    ok(driver.cuCtxSetCurrent(handle))
    yield handle
    restore()


def test_the_pages_call_passes_the_pages_test(page_tests, device):
    page_tests["test_affinity_is_a_bool"](device)


def test_the_pages_bare_call_passes_the_pages_tests(page_tests, context):
    page_tests["test_no_context_has_only_some_multiprocessors"](context)
    page_tests["test_another_kind_of_affinity_is_invalid"](context)
