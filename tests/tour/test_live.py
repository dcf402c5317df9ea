from types import SimpleNamespace

import pytest

from library_tour import live

nvml = pytest.importorskip("cuda.bindings.nvml", reason="these bindings have no NVML")


@pytest.fixture
def library(monkeypatch):
    """Replace NVML's functions by those of a system with one busy device, whatever its PCI address."""
    for name, value in {
        "init_v2": lambda: None,
        "device_get_handle_by_pci_bus_id_v2": lambda address: 1,
        "system_get_driver_version": lambda: "580.95.05",
        "device_get_memory_info_v2": lambda handle: SimpleNamespace(total=9 << 30, reserved=1 << 30, free=5 << 30),
        "device_get_compute_running_processes_v3": lambda handle: [SimpleNamespace(pid=1, used_gpu_memory=9)] * 2,
        "device_get_enforced_power_limit": lambda handle: 700_000,
        "device_get_utilization_rates": lambda handle: SimpleNamespace(gpu=97),
        "device_get_power_usage": lambda handle: 650_500,
        "device_get_temperature_v": lambda handle, sensor: 55,
        "device_get_clock_info": lambda handle, clock: 1980,
    }.items():
        monkeypatch.setattr(nvml, name, value)
    return monkeypatch


def test_live_figures_are_rows_and_the_power_limit_is_in_watts(library):
    rows, notes = live.live_rows("0000:01:00.0")
    assert notes == []
    assert len(rows) == 9
    found = {row.name.removeprefix("now: "): row.values["value"] for row in rows}
    expected = {"power": 650.5, "driver": "580.95.05", "memory used": 3, "processes": 2}
    assert found.items() >= expected.items()
    assert live.power_limit("0000:01:00.0") == 700


def test_without_nvml_a_sentence_says_why_and_a_missing_sensor_is_a_row_that_says_so(library):
    class NoSensorError(nvml.NvmlError):
        def __init__(self) -> None:
            Exception.__init__(self, "no sensor")  # NvmlError's own __init__ asks the library for the text

    def fail(error: Exception) -> None:
        raise error

    library.setattr(nvml, "device_get_power_usage", lambda handle: fail(NoSensorError()))
    rows, _ = live.live_rows("0000:01:00.0")
    assert {row.name: row.values["value"] for row in rows}["now: power"] == "not available"
    library.setattr(nvml, "init_v2", lambda: fail(RuntimeError("there is\nno library")))
    assert live.power_limit("0000:01:00.0") is None
    assert live.live_rows("0000:01:00.0") == ([], ["No live figures: there is no library"])
