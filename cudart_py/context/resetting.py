"""A new beginning: what CUDA has in this process ends, and devices that a fault has lost work again."""

from __future__ import annotations

from collections.abc import Callable

from .. import errors
from ..driver.backend import chosen
from ..driver.calls import raw
from ..driver.capabilities import capabilities
from ..driver.launch_log import note_synchronized
from ..driver.unwrap import check
from .capture import captures
from .current import activated
from .device import Device
from .epoch import epoch
from .lifetimes import live_handles, postponed, unfinished

_forgetting: list[Callable[[], object]] = []


def at_reset(forget: Callable[[], object]) -> None:
    """Let `reset` call a function that empties what a module keeps of handles, which are closed by then."""
    _forgetting.append(forget)


def reset() -> None:
    """Start afresh in this process, on all devices: the way to go on after a fault in a kernel, which ends all else.

    Every array, stream, event, module, graph and pool that was made before is closed: to use it raises a ValueError
    that names `cuda.reset()`, and nothing is given back to the driver. Work that nobody has waited for does not run.
    Limits, peer access and the devices' pools are as at the beginning of the process. The default streams and the
    `Device` objects stay, and so do `with device:` blocks. NumPy arrays of page-locked, managed or registered memory
    keep their bytes as long as they live, and are ordinary arrays from then on, which kernels do not accept. Objects
    that `gc.freeze()` has set aside are collected again, because earlier arrays may be among them.

    No other thread may use CUDA meanwhile. Raises NotSupportedError, and changes nothing, where the driver lacks the
    capability `reset`, as a GPU's does: there only a new process starts afresh. Raises CaptureError while a stream is
    being captured. A host function of a stream cannot call it.
    """
    if "reset" not in capabilities():
        raise errors.NotSupportedError(
            "this driver lacks the capability 'reset': a GPU's context that a fault has ended starts afresh in a new "
            "process only, and the simulator's with CUDART_PY_DRIVER=simulator"
        )
    if captures:
        raise errors.CaptureError(
            "reset: a stream is being captured: leave the `with` block of its capture before, and reset then"
        )
    handles = live_handles()
    values = (handle._value for handle in handles)  # another thread's reset may have closed some
    check(chosen().reset({int(value) for value in values if value is not None}))
    for handle in handles:
        handle._lose()
    postponed.clear()
    unfinished.clear()
    for forget in _forgetting:
        forget()
    for device in Device._in_use():
        device._begin_anew()
        note_synchronized(device.ordinal, None)  # errors do not blame launches from before
    epoch.advance()


def is_lost() -> bool:
    """Return whether a fault has ended the context of a device that is in use."""
    for device in Device._in_use():
        with activated(device):
            if raw.cuCtxGetStreamPriorityRange()[0]:  # it asks for nothing else, and waits for nothing
                return True
    return False


def wait_for_devices() -> None:
    """Wait for all work on the devices that are in use, and raise the error of what fails."""
    for device in Device._in_use():
        device.synchronize()
