"""Handles that kernels in any stream may use, so that closing them waits for the whole device."""

from __future__ import annotations

from typing import Any

from ..context.capture import LEGACY, captures, defer
from ..context.current import activated
from ..context.device import Device
from ..context.lifetimes import Handle
from ..driver.calls import api


class WaitingHandle(Handle):
    """A handle that is destroyed only after all work on its device has finished, because that work may use it.

    The driver would destroy it at once, even while a kernel uses it, and nothing records which streams have such
    kernels. A subclass implements `_destroy`, which destroys the handle.
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device on which the handle can be used."""
        raise NotImplementedError

    def _destroy(self, value: Any) -> None:
        raise NotImplementedError

    def _release(self, value: Any) -> None:
        # No synchronisation is allowed during a capture, so this is deferred until it ends.
        if not (captures and defer(LEGACY, lambda: self._wait_and_destroy(value))):
            self._wait_and_destroy(value)

    def _wait_and_destroy(self, value: Any) -> None:
        with activated(self.device):
            try:
                api.cuCtxSynchronize()
            finally:
                self._destroy(value)
