"""Checkpoints of processes that use CUDA, `cuda.checkpoints`: free a process's devices, and continue it later.

A checkpoint moves the contents of a process's device memory to host memory and releases its devices. The process is
another one or, for a tool such as CRIU, the host part is saved separately. Each method is one call of the driver.
"""

from __future__ import annotations

import ctypes
import uuid as uuids
from collections.abc import Mapping
from typing import Any

from . import errors
from .base import arguments
from .base.set_once import SetOnce
from .context.device import Device
from .driver import enums
from .driver.calls import raw
from .driver.capabilities import require_capability
from .driver.unwrap import failure

__all__ = ["Process"]
__dir__ = __all__.copy  # without private names and imports

_PREFIX = "CU_PROCESS_STATE_"
# The largest number of milliseconds that the driver takes.
_MOST_SECONDS = (2**32 - 1) / 1000


class Process(SetOnce):
    """A process that uses CUDA, identified by its process ID. Creating the object makes no CUDA call.

    The methods change the process's state in this order: `lock` (running to locked), `checkpoint` (locked to
    checkpointed), `restore` (checkpointed to locked) and `unlock` (locked to running). In the wrong state, they raise
    CudaError, which names the state. All raise NotSupportedError if the driver lacks the capability `checkpoint`, and
    InvalidValueError for a process that does not exist, does not use CUDA, or may not be inspected.
    """

    def __init__(self, pid: int) -> None:
        self.pid = arguments.integer("Process", "pid", pid, 1, 2**31 - 1)

    def __repr__(self) -> str:
        return f"<Process {self.pid}>"

    @property
    def state(self) -> str:
        """The state: "running", "locked", "checkpointed" or "failed" (cuCheckpointProcessGetState)."""
        state: str = self._call("cuCheckpointProcessGetState").name
        return state.removeprefix(_PREFIX).lower()

    @property
    def restore_thread_id(self) -> int:
        """The thread of the process that restores it; a tool that saves the host part must let it run.

        (cuCheckpointProcessGetRestoreThreadId.)
        """
        return int(self._call("cuCheckpointProcessGetRestoreThreadId"))

    def lock(self, timeout: float | None = None) -> None:
        """Block further CUDA calls of the process, after those that have begun (cuCheckpointProcessLock).

        `timeout` is in seconds, None for no limit. Raises NotReadyError if it is exceeded; the process then continues.
        """
        options = enums.CUcheckpointLockArgs()
        if timeout is not None:
            seconds = arguments.number("Process.lock", "timeout", timeout)
            if not 0.001 <= seconds <= _MOST_SECONDS:
                wanted = f"a time from 0.001 to {_MOST_SECONDS:.0f} seconds"
                raise arguments.wrong_value("Process.lock", "timeout", wanted, timeout)
            options.timeoutMs = int(seconds * 1000)
        self._call("cuCheckpointProcessLock", options)

    def checkpoint(self) -> None:
        """Move the contents of device memory to host memory and release the devices (cuCheckpointProcessCheckpoint)."""
        self._call("cuCheckpointProcessCheckpoint", None)

    def restore(self, devices: Mapping[uuids.UUID | str, Device] | None = None) -> None:
        """Acquire devices, and restore the contents of their memory (cuCheckpointProcessRestore).

        `devices` maps the UUID of each device that the process has used to a device of the same kind that takes its
        place. By default, the process gets the devices that it had.
        """
        if devices is None:
            self._call("cuCheckpointProcessRestore", None)
            return
        wanted = "a mapping of the UUIDs of the former devices to devices"
        if not isinstance(devices, Mapping):
            raise arguments.wrong_type("Process.restore", "devices", wanted, devices)
        if not devices:
            raise arguments.wrong_value("Process.restore", "devices", wanted, devices)
        options = enums.CUcheckpointRestoreArgs()
        options.gpuPairs = [_pair(old, new) for old, new in devices.items()]
        options.gpuPairsCount = len(devices)
        self._call("cuCheckpointProcessRestore", options)

    def unlock(self) -> None:
        """Let the process continue with its CUDA calls (cuCheckpointProcessUnlock)."""
        self._call("cuCheckpointProcessUnlock", None)

    def _call(self, name: str, *options: Any) -> Any:
        require_capability(name, "checkpoint")
        status, *values = getattr(raw, name)(self.pid, *options)
        if status:
            raise self._failure(status, name)
        return values[0] if values else None

    def _failure(self, status: Any, name: str) -> errors.CudaError:
        """Return the error for a status, with the reason in terms of the process."""
        kinds = enums.CUresult
        if status in (kinds.CUDA_ERROR_NOT_INITIALIZED, kinds.CUDA_ERROR_OPERATING_SYSTEM):
            return errors.InvalidValueError(
                f"{name}: there is no process {self.pid} that uses CUDA and that this one may inspect ({status.name})",
                status=status,
                call=name,
            )
        detail = ""
        if status == kinds.CUDA_ERROR_ILLEGAL_STATE:
            detail = f"Process {self.pid} is {self.state}"
        return failure(status, name, detail)


def _pair(old: uuids.UUID | str, new: Device) -> Any:
    call, name = "Process.restore", "devices"
    arguments.instance(call, name, new, Device)
    arguments.instance(call, name, old, (uuids.UUID, str), "a mapping from UUIDs")
    try:
        former = old if isinstance(old, uuids.UUID) else uuids.UUID(old.removeprefix("GPU-"))
    except ValueError:
        raise arguments.wrong_value(call, name, "a mapping from UUIDs", old) from None
    pair = enums.CUcheckpointGpuPair()
    # The attributes of the bindings' UUIDs can't be written in every version.
    ctypes.memmove(pair.oldUuid.getPtr(), former.bytes, 16)
    ctypes.memmove(pair.newUuid.getPtr(), new.properties.uuid.bytes, 16)
    return pair
