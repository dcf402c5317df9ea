"""The access patterns in patterns.cu: their names, launch configurations and arguments."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda

SOURCE = Path(__file__).with_name("patterns.cu")
NAMES: tuple[str, ...] = tuple(
    re.findall(r"^(?:PATTERN|SHARED_LOAD|SHARED_STORE)\((\w+)", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
)
_USUAL = 16, 256
_TILES = (4, 4), (32, 8)
# The grid and block of each pattern that does not use the usual ones.
_SHAPES: dict[str, tuple[Any, Any]] = {
    "load_row": (16, (32, 8)),
    "load_column": (16, (32, 8)),
    "store_column": (16, (32, 8)),
    "some_of_48_threads": (16, 48),
    "some_of_100_threads": (16, 100),
    "transpose_plain": _TILES,
    "transpose_padded": _TILES,
    "transpose_naive": _TILES,
    "stencil_global": ((8, 8), (32, 8)),
}
_BYTES = 1 << 20


def launch(names: Iterable[str] = NAMES) -> None:
    """Launch each pattern once, in order, with a fresh output array, and synchronize after each."""
    module = cuda.compile(SOURCE)
    generator = np.random.default_rng(2)
    index = np.concatenate([generator.integers(0, 1024, 4096), generator.permutation(4096)]).astype(np.int32)
    # Large enough for the largest stride in patterns.cu, which accesses every 32nd float with 4096 threads.
    data, numbers = cuda.zeros(_BYTES, np.uint8), cuda.to_device(index)
    for name in names:
        out = cuda.zeros(_BYTES, np.uint8)
        module[name][_SHAPES.get(name, _USUAL)](data, out, numbers)
        cuda.current_device().synchronize()
