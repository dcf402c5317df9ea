"""The package's own kernels, each compiled once per device."""

from __future__ import annotations

import functools
from pathlib import Path

from ..context.device import Device
from ..context.resetting import at_reset
from ..launch.kernel import Kernel
from ..launch.loading import compile


@functools.cache
def kernel_of(source: Path, name: str, device: Device) -> Kernel:
    """Return a kernel, such as "move<float>", of a source file; the device must be current.

    It is kept, because even a hit in the compile cache reads the source and loads the image.
    """
    return compile(source, names=[name] if "<" in name else [])[name]


at_reset(kernel_of.cache_clear)
