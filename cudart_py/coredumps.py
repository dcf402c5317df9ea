"""Coredumps of devices, `cuda.coredumps`: files that show NVIDIA's debugger the state of a kernel that has failed.

`docs/coredumps.md` shows how to read one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .base import arguments
from .context.device import Device, devices
from .driver import enums
from .driver.calls import api, raw
from .driver.capabilities import require_capability

__all__ = ["enable"]
__dir__ = __all__.copy  # without private names and imports

_CALL = "coredumps.enable"
_LONGEST_PATH = 1023


@contextmanager
def enable(file: str | Path, *, lightweight: bool = False, abort: bool = True) -> Iterator[None]:
    """Write a coredump if a kernel fails on a device that is first used in the block (cuCoredumpSetAttributeGlobal).

    - `file`: the path of the file, of at most 1023 bytes. `%p` stands for the process ID, `%h` for the host's name, and
      `%t` for the time.
    - `lightweight`: omit the contents of memory, so that the file has only registers and positions in the code.
    - `abort`: end the process with SIGABRT after the file is written. Otherwise, the next call that waits for the
      kernel raises the error, as without a coredump.

    The driver ignores the settings for existing contexts, so the block must begin before the first use of any device.
    If the block uses a device, the settings remain until the process ends. If coredumps were disabled after a context
    was created, drivers of CUDA 13.0 would no longer load code or find kernels there (CUDA_ERROR_INVALID_VALUE). If the
    block uses no device, the previous settings are restored. CUDA's environment variables, such as
    `CUDA_ENABLE_COREDUMP_ON_EXCEPTION`, take precedence.

    Raises RuntimeError if a device is in use, NotSupportedError if the driver lacks the capability `coredump`, and
    TypeError or ValueError for invalid arguments.
    """
    if not isinstance(file, str | Path):
        raise arguments.wrong_type(_CALL, "file", "a path", file)
    path = os.fsencode(arguments.text(_CALL, "file", str(file)))
    if not 0 < len(path) <= _LONGEST_PATH:
        raise arguments.wrong_value(_CALL, "file", f"a path of 1 to {_LONGEST_PATH} bytes", file)
    names = enums.CUCoredumpGenerationFlags
    flags = (int(names.CU_COREDUMP_LIGHTWEIGHT_FLAGS) if arguments.flag(_CALL, "lightweight", lightweight) else 0) | (
        0 if arguments.flag(_CALL, "abort", abort) else int(names.CU_COREDUMP_SKIP_ABORT)
    )
    require_capability(_CALL, "coredump")
    used = _first_in_use()
    if used is not None:
        raise RuntimeError(
            f"{_CALL}: device {used.ordinal} is already in use, and the driver ignores the settings for contexts that "
            "exist. Begin the block before the first use of a device"
        )
    from .driver.coredump_flags import read_flags, write_flags  # imported late: it imports the bindings

    kinds = enums.CUcoredumpSettings
    before = {
        kind: api.cuCoredumpGetAttributeGlobal(kind)
        for kind in (kinds.CU_COREDUMP_FILE, kinds.CU_COREDUMP_ENABLE_ON_EXCEPTION)
    }
    flags_before = read_flags()
    try:
        write_flags(flags)
        api.cuCoredumpSetAttributeGlobal(kinds.CU_COREDUMP_FILE, path)
        api.cuCoredumpSetAttributeGlobal(kinds.CU_COREDUMP_ENABLE_ON_EXCEPTION, True)
        yield
    finally:
        if _first_in_use() is None:
            for kind, value in before.items():
                api.cuCoredumpSetAttributeGlobal(kind, value)
            write_flags(flags_before)


def _first_in_use() -> Device | None:
    """Return the first device whose primary context is active, perhaps because of another library; None if none is."""
    for device in devices():
        status, _, active = raw.cuDevicePrimaryCtxGetState(device.handle)
        if status or active:  # after a fault, the status is that of the fault
            return device
    return None
