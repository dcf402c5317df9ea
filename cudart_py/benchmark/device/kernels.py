"""The kernels that measurements use, compiled once per device."""

from __future__ import annotations

import functools
from pathlib import Path

from ...context.current import activated
from ...context.device import Device
from ...context.resetting import at_reset
from ...launch.loading import compile
from ...launch.module import Module


@functools.cache
def compiled(device: Device, source: Path) -> Module:
    """Compile a file for a device, or return the module that an earlier call returned."""
    with activated(device):
        return compile(source)


at_reset(compiled.cache_clear)
