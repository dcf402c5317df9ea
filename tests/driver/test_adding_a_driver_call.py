"""The driver call that docs/adding-a-driver-call.md adds works."""

import re
from pathlib import Path
from typing import Any

import pytest

from cudart_py.context import device as devices
from cudart_py.driver.calls import raw
from cudart_py.simulator import driver
from cudart_py.simulator.calls.contexts import contexts
from tests.simulator.support import Status, fresh_devices, ok

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-driver-call.md"


@pytest.fixture
def page_tests(monkeypatch):
    """Add the page's call where the page says, and return the page's tests by name."""
    assert not hasattr(driver, "cuCtxGetId")
    assert not hasattr(devices.Device, "context_id")
    simulated, bare_tests, wrapper, test = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    tests = {"Any": Any, "Status": Status, "driver": driver, "ok": ok}
    spaces = [vars(contexts).copy(), tests, vars(devices).copy(), tests]
    for text, space in zip((simulated, bare_tests, wrapper, test), spaces, strict=True):
        exec(compile(text, str(PAGE), "exec"), space)
    monkeypatch.setattr(driver, "cuCtxGetId", spaces[0]["cuCtxGetId"], raising=False)
    if not hasattr(raw, "cuCtxGetId"):  # its first use copied the simulator's functions
        monkeypatch.setattr(raw, "cuCtxGetId", spaces[0]["cuCtxGetId"], raising=False)
    monkeypatch.setattr(devices.Device, "context_id", spaces[2]["context_id"], raising=False)
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
    page_tests["test_a_context_keeps_its_number"](device)


def test_the_pages_bare_call_passes_the_pages_tests(page_tests, context):
    page_tests["test_a_number_is_that_of_the_current_context_where_none_is_given"](context)
    page_tests["test_what_is_no_context_has_no_number"](context)
