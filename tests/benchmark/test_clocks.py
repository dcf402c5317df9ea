"""Reading the device's clock: through NVML where it is, and nothing where it is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import cudart_py as cuda
from cudart_py.benchmark import clocks
from cudart_py.context.nvml import nvml


class NvmlError(Exception):
    pass


def bindings(*readings):
    """NVML's bindings, whose clock has these readings in turn; an exception is raised."""
    left = iter(readings)

    def read(handle, kind):
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return SimpleNamespace(
        NvmlError=NvmlError,
        ClockType=SimpleNamespace(CLOCK_SM=1),
        device_get_handle_by_pci_bus_id_v2=lambda bus: bus,
        device_get_clock_info=read,
    )


@pytest.fixture
def reader(monkeypatch):
    """Make the reader of a device's clock with these bindings, past the memory of earlier ones."""
    device = SimpleNamespace(properties=SimpleNamespace(pci_bus_id="0000:01:00.0"))

    def make(found):
        monkeypatch.setattr(clocks, "nvml", lambda: found)
        return clocks.clock_reader.__wrapped__(device)

    return make


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        ([345, 1980], [1980.0]),  # the first one shows that there is a clock
        ([NvmlError("not supported")], [None]),
        ([345, NvmlError("busy"), 1980], [None, 1980.0]),
    ],
)
def test_the_clock_is_that_of_the_multiprocessors_in_megahertz_where_it_can_be_read(reader, readings, found):
    read = reader(bindings(*readings))
    assert [read() for _ in found] == found


def test_without_nvml_no_clock_is_known(monkeypatch):
    def none():
        raise cuda.NotSupportedError("no library")

    monkeypatch.setattr(clocks, "nvml", none)
    assert clocks.clock_reader.__wrapped__(None)() is None


def test_what_keeps_nvml_away_is_said(monkeypatch):
    def fail():
        raise NvmlError("no library")

    monkeypatch.setattr("cuda.bindings.nvml", SimpleNamespace(init_v2=fail), raising=False)
    with pytest.raises(cuda.NotSupportedError, match="^no library$"):
        nvml()
