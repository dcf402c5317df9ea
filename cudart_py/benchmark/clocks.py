"""The current clock of a device, from NVML, and the rule that discards samples taken at reduced clocks."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..context.device import Device
from ..context.nvml import nvml
from ..errors import NotSupportedError

# A sample's clock counts as reduced below this fraction of the highest clock seen.
TOLERANCE = 0.95
# After this many such samples in a row, their clock becomes the reference, because the device evidently does not run
# this work at a higher clock.
PATIENCE = 8
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.2


@functools.cache
def clock_reader(device: Device) -> Callable[[], float | None]:
    """Return a function that reads the clock of a device's multiprocessors in MHz, or None if NVML cannot.

    Reading takes a few microseconds of host time and no device time (nvmlDeviceGetClockInfo).
    """
    try:
        bindings = nvml()
    except NotSupportedError:
        return _unknown
    kind = bindings.ClockType.CLOCK_SM
    try:
        handle = bindings.device_get_handle_by_pci_bus_id_v2(device.properties.pci_bus_id)
        bindings.device_get_clock_info(handle, kind)
    except Exception:  # a MIG instance or a virtual GPU does not report a clock
        return _unknown

    def read() -> float | None:
        try:
            return float(bindings.device_get_clock_info(handle, kind))
        except bindings.NvmlError:  # NVML may be busy, and a sample with an unknown clock still counts
            return None

    return read


def _unknown() -> float | None:
    return None


class ClockGuard:
    """Decides which samples were taken at a reduced clock, by comparison with the measurement's highest clock."""

    def __init__(self) -> None:
        self.reference = 0.0
        self._in_a_row = 0

    def accepts(self, clock: float | None) -> bool:
        """Return whether to keep a sample taken at this clock; a sample with an unknown clock is kept.

        After `PATIENCE` slow samples in a row, the last one is kept and its clock becomes the new reference, because
        the device evidently does not run this work at a higher clock.
        """
        if clock is None:
            return True
        if clock < TOLERANCE * self.reference:
            self._in_a_row += 1
            if self._in_a_row < PATIENCE:
                return False
            self.reference = clock
        self.reference = max(self.reference, clock)
        self._in_a_row = 0
        return True

    @property
    def pause(self) -> float:
        """The seconds to wait after a discarded sample, longer each time."""
        return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** max(0, self._in_a_row - 1)))
