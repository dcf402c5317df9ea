"""Reset: this process loses all its CUDA objects, and devices that a fault made unusable work again."""

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
    """Register a function that `reset` calls after closing all handles, such as one that clears a module's cache."""
    _forgetting.append(forget)


def reset() -> None:
    """Reset all devices in this process, so that it can use CUDA again after a fault in a kernel.

    Every existing array, stream, event, module, graph and pool is closed without a call to the driver, which has
    already released everything. Using one of them raises a ValueError that mentions `cuda.reset()`. Work that has not
    finished may never run. Limits, peer access and memory pools return to their initial state. The default streams, the
    `Device` objects and `with device:` blocks remain valid. NumPy arrays in page-locked, managed or registered memory
    keep their contents, but become ordinary arrays that kernels do not accept. Objects that `gc.freeze()` has set aside
    become subject to garbage collection again, because they may include arrays.

    No other thread may use CUDA during the call. Raises NotSupportedError, without changing anything, if the driver
    lacks the capability `reset`: after a fault on a GPU, only a new process can use CUDA. Raises CaptureError while a
    stream is being captured. A host function must not call `reset`.
    """
    if "reset" not in capabilities():
        raise errors.NotSupportedError(
            "reset: this driver lacks the capability 'reset'. After a fault on a GPU, start a new process; the "
            "simulator (CUDART_PY_DRIVER=simulator) can be reset"
        )
    if captures:
        raise errors.CaptureError(
            "reset: a stream is being captured. Leave the `with` block of its capture before calling reset"
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
        note_synchronized(device.ordinal, None)  # later errors must not blame earlier launches
    epoch.advance()


def is_lost() -> bool:
    """Return whether a fault has made a device unusable, among those that this process has used."""
    for device in Device._in_use():
        with activated(device):
            if raw.cuCtxGetStreamPriorityRange()[0]:  # fails in a lost context, and neither changes nor awaits anything
                return True
    return False


def wait_for_devices() -> None:
    """Wait for all work on the devices that this process has used, and raise its errors."""
    for device in Device._in_use():
        device.synchronize()
