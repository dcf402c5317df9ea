"""Reading the device's clock: through NVML where it is, and nothing where it is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import cudart_py as cuda
from cudart_py.benchmark import clocks
from cudart_py.context.nvml import nvml


class NvmlError(Exception):
    pass


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        ([345, 1980], [1980.0]),  # the first one shows that there is a clock
        ([NvmlError("not supported")], [None]),
        ([345, NvmlError("busy"), 1980], [None, 1980.0]),
    ],
)
def test_the_clock_is_that_of_the_multiprocessors_in_megahertz_where_it_can_be_read(monkeypatch, readings, found):
    left = iter(readings)

    def read(handle, kind):
        value = next(left)
        return raising(value)() if isinstance(value, Exception) else value

    bindings = SimpleNamespace(
        NvmlError=NvmlError,
        ClockType=SimpleNamespace(CLOCK_SM=1),
        device_get_handle_by_pci_bus_id_v2=lambda bus: bus,
        device_get_clock_info=read,
    )
    monkeypatch.setattr(clocks, "nvml", lambda: bindings)
    device = SimpleNamespace(properties=SimpleNamespace(pci_bus_id="0000:01:00.0"))
    clock = clocks.clock_reader.__wrapped__(device)
    assert [clock() for _ in found] == found


def test_without_nvml_no_clock_is_known_and_the_reason_is_kept(monkeypatch):
    monkeypatch.setattr("cuda.bindings.nvml", SimpleNamespace(init_v2=raising(NvmlError("no library"))), raising=False)
    with pytest.raises(cuda.NotSupportedError, match="^no library$"):
        nvml()
    assert clocks.clock_reader.__wrapped__(None)() is None
