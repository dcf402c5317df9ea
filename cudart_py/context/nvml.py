"""NVML, the library that nvidia-smi uses to monitor devices, and a device's status, which it reports."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..driver.backend import chosen
from ..errors import NotSupportedError
from .properties import MemoryInfo

if TYPE_CHECKING:
    from .device import Device

# NVML returns it for the memory of a process that it may not inspect.
_UNKNOWN_SIZE = 2**64 - 1


class DeviceProcess(NamedTuple):
    """A process that uses a device; `memory` is the number of bytes that it occupies there, None if unknown."""

    pid: int
    memory: int | None


@dataclass(frozen=True)
class DeviceStatus:
    """The activity of a device at the moment of the query (NVML). Values that the device does not report are None.

    `temperature` is in degrees Celsius; `power`, the average over a short time, and `power_limit` are in watts. The
    current clock rates of the multiprocessors and of the memory are in kHz, as in `DeviceProperties`. `utilization` is
    the fraction of the last second or less in which a kernel was running, from 0 to 1.
    """

    memory: MemoryInfo
    processes: tuple[DeviceProcess, ...]
    temperature: float | None = None
    power: float | None = None
    power_limit: float | None = None
    clock_rate: int | None = None
    memory_clock_rate: int | None = None
    utilization: float | None = None


def nvml() -> Any:
    """Return `cuda.bindings.nvml`, initialised (nvmlInit_v2).

    Raises NotSupportedError with the reason if the bindings lack NVML, if the library or a device is missing, or if the
    process has no permission.
    """
    try:
        # Bindings before 13.1 have no such module.
        from cuda.bindings import nvml as bindings

        bindings.init_v2()
    except Exception as error:  # no module, no library, no device: each raises a class of its own
        raise NotSupportedError(" ".join(str(error).split()) or type(error).__name__) from error
    return bindings


def read_status(device: Device) -> DeviceStatus:
    """Return the status of a device; see `Device.status`."""
    if "in_process" in chosen().abilities():
        # Only this process uses the device, and NVML has no hardware to query.
        memory = device.memory_info
        return DeviceStatus(memory, (DeviceProcess(os.getpid(), memory.used),))
    try:
        return status_at(device.properties.pci_bus_id)
    except NotSupportedError as error:
        raise NotSupportedError(f"Device.status: NVML does not report on device {device.ordinal}: {error}") from error


def status_at(pci_bus_id: str) -> DeviceStatus:
    """Return the status of the device at a PCI address; raise NotSupportedError if NVML does not know the device."""
    bindings = nvml()
    try:
        handle = bindings.device_get_handle_by_pci_bus_id_v2(pci_bus_id)
        memory = bindings.device_get_memory_info_v2(handle)
        processes = bindings.device_get_compute_running_processes_v3(handle)
    except bindings.NvmlError as error:  # NVML may not know a MIG instance or a virtual GPU
        raise NotSupportedError(str(error)) from error

    def ask(query: Callable[..., Any], *which: Any) -> Any:
        try:
            return query(handle, *which)
        except bindings.NvmlError:  # a MIG instance or a virtual GPU may lack the sensor
            return None

    clocks = bindings.ClockType
    utilization = ask(bindings.device_get_utilization_rates)
    return DeviceStatus(
        # The system's share does not count, as in cuMemGetInfo.
        MemoryInfo(int(memory.free), int(memory.total) - int(memory.reserved)),
        tuple(DeviceProcess(int(each.pid), _known_size(each.used_gpu_memory)) for each in processes),
        temperature=_scaled(ask(bindings.device_get_temperature_v, bindings.TemperatureSensors.TEMPERATURE_GPU), 1.0),
        power=_scaled(ask(bindings.device_get_power_usage), 1e-3),
        power_limit=_scaled(ask(bindings.device_get_enforced_power_limit), 1e-3),
        clock_rate=_scaled(ask(bindings.device_get_clock_info, clocks.CLOCK_SM), 1000),
        memory_clock_rate=_scaled(ask(bindings.device_get_clock_info, clocks.CLOCK_MEM), 1000),
        utilization=None if utilization is None else float(utilization.gpu) / 100,
    )


def _known_size(size: Any) -> int | None:
    return None if int(size) == _UNKNOWN_SIZE else int(size)


def _scaled(reading: int | None, unit: Any) -> Any:
    return None if reading is None else reading * unit
