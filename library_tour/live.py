"""Live readings of a device from NVML, the library that nvidia-smi uses."""

from __future__ import annotations

from cudart_py.context.nvml import nvml, status_at
from cudart_py.errors import NotSupportedError

from .stop import Row, Value


def live_rows(pci_bus_id: str) -> tuple[list[Row], list[str]]:
    """Return rows of live readings of the device at a PCI address, and notes on what is not available."""
    try:
        now = status_at(pci_bus_id)
    except NotSupportedError as error:
        return [], [f"No live figures: {error}"]
    figures: dict[str, tuple[Value | None, str]] = {
        "now: driver": (nvml().system_get_driver_version(), ""),
        "now: memory used": (now.memory.used / 2**30, "GiB"),
        "now: processes": (len(now.processes), ""),
        "now: utilisation": (_in_units(0.01, now.utilization), "%"),
        "now: power": (now.power, "W"),
        "now: power limit": (now.power_limit, "W"),
        "now: temperature": (now.temperature, "°C"),
        "now: multiprocessor clock": (_in_units(1000, now.clock_rate), "MHz"),
        "now: memory clock": (_in_units(1000, now.memory_clock_rate), "MHz"),
    }
    # A MIG instance or a virtual GPU may lack a sensor.
    rows = [
        Row(name, {"value": "not available" if value is None else value, "unit": unit})
        for name, (value, unit) in figures.items()
    ]
    return rows, []


def power_limit(pci_bus_id: str) -> float | None:
    """Return the power limit in watts of the device at a PCI address, or None if NVML does not report it."""
    try:
        return status_at(pci_bus_id).power_limit
    except NotSupportedError:
        return None


def _in_units(unit: float, reading: float | None) -> float | None:
    return None if reading is None else reading / unit
