"""What a device is doing right now, from NVML (the library behind nvidia-smi)."""

from __future__ import annotations

from collections.abc import Callable

from .stop import Row

__all__ = ["live_rows"]


def live_rows(pci_bus_id: str) -> tuple[list[Row], list[str]]:
    """Return rows of the live figures of the device at a PCI address, and a sentence for what is missing."""
    try:
        from cuda.bindings import nvml

        nvml.init_v2()
        handle = nvml.device_get_handle_by_pci_bus_id_v2(pci_bus_id)
    except Exception as error:  # no NVML in old bindings, no library, no such device: each its own class
        return [], [f"No live figures: {' '.join(str(error).split()) or type(error).__name__}"]
    sensor, clock = nvml.TemperatureSensors.TEMPERATURE_GPU, nvml.ClockType
    figures: dict[str, tuple[Callable[[], float], str]] = {
        "now: utilisation": (lambda: nvml.device_get_utilization_rates(handle).gpu, "%"),
        "now: power": (lambda: nvml.device_get_power_usage(handle) / 1e3, "W"),
        "now: temperature": (lambda: nvml.device_get_temperature_v(handle, sensor), "°C"),
        "now: multiprocessor clock": (lambda: nvml.device_get_clock_info(handle, clock.CLOCK_SM), "MHz"),
        "now: memory clock": (lambda: nvml.device_get_clock_info(handle, clock.CLOCK_MEM), "MHz"),
    }
    rows = []
    for name, (ask, unit) in figures.items():
        try:
            rows.append(Row(name, {"value": ask(), "unit": unit}))
        except nvml.NvmlError as error:  # a part of a device, or a virtual one, has no such sensor
            rows.append(Row(name, {"value": "not available", "unit": str(error)}))
    return rows, []
