"""What a device is doing right now, from NVML (the library behind nvidia-smi)."""

from __future__ import annotations

from collections.abc import Callable

from cudart_py import NotSupportedError
from cudart_py.context.nvml import nvml

from .stop import Row

__all__ = ["live_rows"]


def live_rows(pci_bus_id: str) -> tuple[list[Row], list[str]]:
    """Return rows of the live figures of the device at a PCI address, and a sentence for what is missing."""
    try:
        bindings = nvml()
    except NotSupportedError as error:
        return [], [f"No live figures: {error}"]
    try:
        handle = bindings.device_get_handle_by_pci_bus_id_v2(pci_bus_id)
    except bindings.NvmlError as error:  # a part of a device, or a virtual one, may be unknown to NVML
        return [], [f"No live figures: {error}"]
    sensor, clock = bindings.TemperatureSensors.TEMPERATURE_GPU, bindings.ClockType
    figures: dict[str, tuple[Callable[[], float], str]] = {
        "now: utilisation": (lambda: bindings.device_get_utilization_rates(handle).gpu, "%"),
        "now: power": (lambda: bindings.device_get_power_usage(handle) / 1e3, "W"),
        "now: temperature": (lambda: bindings.device_get_temperature_v(handle, sensor), "°C"),
        "now: multiprocessor clock": (lambda: bindings.device_get_clock_info(handle, clock.CLOCK_SM), "MHz"),
        "now: memory clock": (lambda: bindings.device_get_clock_info(handle, clock.CLOCK_MEM), "MHz"),
    }
    rows = []
    for name, (ask, unit) in figures.items():
        try:
            rows.append(Row(name, {"value": ask(), "unit": unit}))
        except bindings.NvmlError as error:  # a part of a device, or a virtual one, has no such sensor
            rows.append(Row(name, {"value": "not available", "unit": str(error)}))
    return rows, []
