"""A kernel that composes a tensor map, and loads a box by it, on each engine."""

from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda

SOURCE = Path(__file__).parents[3] / "launch" / "tensor_map_changes.cu"
NAME = "compose<7, 4, 0>"


def test_a_kernel_composes_a_map_and_loads_by_it(device: Any, engine: str, rng: np.random.Generator) -> None:
    kernel = cuda.compile(SOURCE, arch="sm_90a", names=[NAME])[NAME]
    array, out = rng.normal(size=(7, 20)).astype(np.float32), cuda.zeros(256, np.uint8)
    kernel[1, 32](cuda.to_device(array), 20, 7, cuda.zeros(128, np.uint8), 4, 3, out)
    np.testing.assert_array_equal(out.to_host().view(np.float32).reshape(4, 16), array[3:, 4:])
