"""Live readings of a device from NVML, the library that nvidia-smi uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cudart_py.context.nvml import nvml
from cudart_py.errors import NotSupportedError

from .stop import Row, Value


def live_rows(pci_bus_id: str) -> tuple[list[Row], list[str]]:
    """Return rows of live readings of the device at a PCI address, and notes on what is not available."""
    try:
        bindings, handle = _find(pci_bus_id)
    except NotSupportedError as error:
        return [], [f"No live figures: {error}"]
    sensor, clock = bindings.TemperatureSensors.TEMPERATURE_GPU, bindings.ClockType
    figures: dict[str, tuple[Callable[[], Value], str]] = {
        "now: driver": (bindings.system_get_driver_version, ""),
        "now: memory used": (lambda: bindings.device_get_memory_info_v2(handle).used / 2**30, "GiB"),
        "now: processes": (lambda: len(bindings.device_get_compute_running_processes_v3(handle)), ""),
        "now: utilisation": (lambda: bindings.device_get_utilization_rates(handle).gpu, "%"),
        "now: power": (lambda: bindings.device_get_power_usage(handle) / 1e3, "W"),
        "now: power limit": (lambda: _limit(bindings, handle), "W"),
        "now: temperature": (lambda: bindings.device_get_temperature_v(handle, sensor), "°C"),
        "now: multiprocessor clock": (lambda: bindings.device_get_clock_info(handle, clock.CLOCK_SM), "MHz"),
        "now: memory clock": (lambda: bindings.device_get_clock_info(handle, clock.CLOCK_MEM), "MHz"),
    }
    rows = []
    for name, (ask, unit) in figures.items():
        try:
            rows.append(Row(name, {"value": ask(), "unit": unit}))
        except bindings.NvmlError as error:  # a MIG instance or a virtual GPU may lack the sensor
            rows.append(Row(name, {"value": "not available", "unit": str(error)}))
    return rows, []


def power_limit(pci_bus_id: str) -> float | None:
    """Return the power limit in watts of the device at a PCI address, or None if NVML does not report it."""
    try:
        bindings, handle = _find(pci_bus_id)
    except NotSupportedError:
        return None
    try:
        return _limit(bindings, handle)
    except bindings.NvmlError:
        return None


def _find(pci_bus_id: str) -> tuple[Any, Any]:
    bindings = nvml()
    try:
        return bindings, bindings.device_get_handle_by_pci_bus_id_v2(pci_bus_id)
    except bindings.NvmlError as error:  # NVML may not know a MIG instance or a virtual GPU
        raise NotSupportedError(str(error)) from error


def _limit(bindings: Any, handle: Any) -> float:
    return float(bindings.device_get_enforced_power_limit(handle)) / 1e3
