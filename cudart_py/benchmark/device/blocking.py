"""A kernel that blocks a stream until the host releases it.

Work that is queued after it starts without waiting for the host, so events around the work measure only the work and no
launch latency. The kernel gives up after a time-out. Without one, a call that makes the host wait while it queues work
(a synchronisation, a full queue) would deadlock, since the host could never release the kernel.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...context.device import Device
from ...launch.kernel import Kernel
from ...launch.launch import Launch
from ...memory.host_memory import pinned_empty
from ...streams.stream import Stream
from .kernels import compiled

SOURCE = Path(__file__).with_name("blocking.cu")
# In seconds: long enough to queue a few hundred launches from Python, short enough not to look like a hang.
TIMEOUT = 0.5


def hold_kernel(device: Device) -> Kernel:
    """Return the kernel in blocking.cu that holds a stream."""
    return compiled(device, SOURCE)["hold"]


class Blocker:
    """A blocker of a stream: call `hold()`, queue the work, call `release()`, wait, and check `timed_out`.

    `timeout` is in seconds. A running kernel and the host must see each other's writes (the capability
    `concurrent_host`).
    """

    def __init__(self, stream: Stream, timeout: float = TIMEOUT) -> None:
        self._state = pinned_empty(2, np.uint32, mapped=True)
        self._state[:] = 0
        self._ticket = 0
        self._nanoseconds = round(1e9 * timeout)
        self._launch: Launch = hold_kernel(stream.device)[1, 1, 0, stream]

    def hold(self) -> None:
        """Hold the work that is queued in the stream from now on, until `release()` or the time-out."""
        self._ticket = (self._ticket + 1) % 2**32
        self._launch(self._state, self._ticket, self._nanoseconds)

    def release(self) -> None:
        """Release the stream. A second call does nothing."""
        self._state[0] = self._ticket

    @property
    def timed_out(self) -> bool:
        """Whether the last hold timed out; valid once the work queued after it is complete."""
        return bool(self._state[1] == self._ticket)
