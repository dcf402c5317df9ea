"""Handles that kernels use without naming their streams, so that their end waits for the device."""

from __future__ import annotations

from typing import Any

from ..context.capture import LEGACY, captures, defer
from ..context.current import activated
from ..context.device import Device
from ..context.lifetimes import Handle
from ..driver.calls import api


class WaitingHandle(Handle):
    """A handle whose end waits for all work of its device, which may use it.

    The driver destroys it at once, even while a kernel uses it, and nothing says in which streams such kernels are. A
    subclass says in `_destroy` how to give it back.
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device that it can be used on."""
        raise NotImplementedError

    def _destroy(self, value: Any) -> None:
        raise NotImplementedError

    def _release(self, value: Any) -> None:
        # No synchronisation may happen during a capture.
        if not (captures and defer(LEGACY, lambda: self._wait_and_destroy(value))):
            self._wait_and_destroy(value)

    def _wait_and_destroy(self, value: Any) -> None:
        with activated(self.device):
            try:
                api.cuCtxSynchronize()
            finally:
                self._destroy(value)
