"""The page that tells how to add a driver call has one that works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cudart_py.context import device as devices
from cudart_py.simulator import driver
from cudart_py.simulator.calls import contexts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-driver-call.md"


@pytest.fixture
def page_test(monkeypatch):
    """Add the page's call where the page says, and return the page's test."""
    simulated, wrapper, test = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    spaces = [vars(contexts).copy(), vars(devices).copy(), {}]
    for text, space in zip((simulated, wrapper, test), spaces, strict=True):
        exec(compile(text, str(PAGE), "exec"), space)
    monkeypatch.setattr(driver, "cuCtxGetId", spaces[0]["cuCtxGetId"], raising=False)
    monkeypatch.setattr(devices.Device, "context_id", spaces[1]["context_id"], raising=False)
    return spaces[2]["test_a_context_keeps_its_number"]


def test_the_pages_call_passes_the_pages_test(page_test, device):
    page_test(device)


def test_the_pages_call_is_not_there_yet():
    assert not hasattr(driver, "cuCtxGetId")
    assert not hasattr(devices.Device, "context_id")


def test_the_page_names_what_is_there():
    for path in re.findall(r"`((?:cudart_py|scripts|tests|docs)/[\w./]+)`", PAGE.read_text()):
        assert (ROOT / path).exists(), path
