"""The clock that a device runs at right now, from NVML, and the rule by which samples at dropped clocks go."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..context.device import Device
from ..context.nvml import nvml
from ..errors import NotSupportedError

# A sample counts as dropped below this part of the highest clock seen.
TOLERANCE = 0.95
# After so many such samples in a row their clock becomes the reference: the device does not run this work any faster.
PATIENCE = 8
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.2


@functools.cache
def clock_reader(device: Device) -> Callable[[], float | None]:
    """Return a function that reads the clock of a device's multiprocessors in MHz, None where NVML cannot.

    Reading takes some microseconds of the host's and nothing of the device's (nvmlDeviceGetClockInfo).
    """
    try:
        bindings = nvml()
    except NotSupportedError:
        return _unknown
    kind = bindings.ClockType.CLOCK_SM
    try:
        handle = bindings.device_get_handle_by_pci_bus_id_v2(device.properties.pci_bus_id)
        bindings.device_get_clock_info(handle, kind)
    except Exception:  # a part of a device or a virtual one shows no clock
        return _unknown

    def read() -> float | None:
        try:
            return float(bindings.device_get_clock_info(handle, kind))
        except bindings.NvmlError:  # NVML is busy at times, and a sample without its clock still counts
            return None

    return read


def _unknown() -> float | None:
    return None


class ClockGuard:
    """Decides which samples were taken at a dropped clock, by the highest clock of the measurement."""

    def __init__(self) -> None:
        self.reference = 0.0
        self._in_a_row = 0

    def accepts(self, clock: float | None) -> bool:
        """Judge the sample taken at this clock; where no clock is known every sample is good.

        When `PATIENCE` samples in a row were too slow, the last one is good and its clock the new
        reference: the device does not go faster under this work.
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
        """The seconds to wait after a sample that was thrown away, longer each time."""
        return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** max(0, self._in_a_row - 1)))
