"""Locking of a device's clock for measurements, where the system allows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from ..base import arguments
from ..context.device import Device, current_device
from ..context.nvml import nvml
from ..driver.capabilities import capabilities
from ..errors import NotSupportedError

BASE: Literal["base"] = "base"
Clock = Literal["base"] | int


@contextmanager
def locked_clocks(clock: Clock = "base", *, device: Device | None = None) -> Iterator[None]:
    """Lock the clock of a device's multiprocessors within a `with` block (nvmlDeviceSetGpuLockedClocks).

    `clock` is a number of MHz, or "base" for the clock that the device can keep up under any load. `device` is the
    current device by default. At the end, the lock is removed (nvmlDeviceResetGpuLockedClocks), even one that was set
    before the block. If the process is killed, `nvidia-smi --reset-gpu-clocks` removes it.

    Raises NotSupportedError if the clock cannot be locked: usually, this needs administrator rights. The simulator has
    no clock.
    """
    call = "locked_clocks"
    if not isinstance(clock, str) or clock != BASE:
        arguments.integer(call, "clock", clock, 1)
    if device is not None:
        arguments.instance(call, "device", device, Device)
    if "gpu_timing" not in capabilities():
        raise NotSupportedError(f"{call}: this driver has no clock to lock")
    chosen = current_device() if device is None else device
    bindings = nvml()
    handle = _lock(bindings, chosen, clock)
    try:
        yield
    finally:
        bindings.device_reset_gpu_locked_clocks(handle)


def _lock(bindings: Any, device: Device, clock: Clock) -> Any:
    limit = int(bindings.ClockLimitId.TDP) if clock == BASE else clock
    try:
        handle = bindings.device_get_handle_by_pci_bus_id_v2(device.properties.pci_bus_id)
        bindings.device_set_gpu_locked_clocks(handle, limit, limit)
    except bindings.NvmlError as error:
        raise NotSupportedError(
            f"locked_clocks: NVML does not lock the clock of device {device.ordinal}: {error}. Locking usually needs "
            "administrator rights"
        ) from error
    return handle
