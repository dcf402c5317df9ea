"""Find and compile the CUDA C++ that belongs to a stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cudart_py as cuda

# Waves of blocks in a fixed grid; a wave is as many blocks as the device can hold at a time. With only one wave,
# multiprocessors would idle at the end until the slowest one finishes.
WAVES = 16


def find(stem: str, package: Path = Path(__file__).parent) -> Path:
    """Return the path of `kernels/<stem>.cu`.

    The folder is inside the package in a wheel, and next to it in a checkout. Raises FileNotFoundError that names both
    paths if the file is in neither place.
    """
    places = [package / "kernels" / f"{stem}.cu", package.parent / "kernels" / f"{stem}.cu"]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(f"no device code {stem}.cu: looked for {places[0]} and {places[1]}")


def load(
    stem: str,
    *,
    names: Sequence[str] = (),
    arch: str | None = None,
    fast_math: bool = False,
    options: Sequence[str] = (),
) -> cuda.Module:
    """Compile `kernels/<stem>.cu`; `names` are template instances, `options` go to NVRTC.

    `arch` is the target, by default the architecture of the current device.
    """
    return cuda.compile(find(stem), names=names, arch=arch, fast_math=fast_math, options=options)


def blocks_for(count: int, block: int) -> int:
    """Return how many blocks of `block` threads cover `count` elements; the last block may be partly used."""
    return -(-count // block)
