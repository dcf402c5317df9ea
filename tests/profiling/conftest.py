"""A program whose kernels have one mistake each, and the command that profiles it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

# A line's number is part of what the tests say.
KERNELS = """// A transpose, and <b>markup</b> & a "quotation" that pages must show as they are.
extern "C" __global__ void transpose(float* out, const float* in, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}
extern "C" __global__ void tiled(float* out, const float* in, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
"""
PROGRAM = """
import sys
from pathlib import Path

import numpy as np

import cudart_py as cuda

print("arguments", sys.argv[1:], __name__)
module = cuda.compile(Path(__file__).with_name("slow.cu"))
n = 64
data, out = cuda.to_device(np.ones((n, n), np.float32)), cuda.empty((n, n), np.float32)
for name in sys.argv[1:]:
    module[name][(n // 32, n // 32), (32, 32)](out, data, n)
"""


class Program:
    """The program's folder, and the command in a process of its own."""

    def __init__(self, folder: Path, python) -> None:
        self.folder, self._python = folder, python
        (folder / "slow.py").write_text(PROGRAM)
        (folder / "slow.cu").write_text(KERNELS)

    def profile(self, *arguments):
        """Run the command in the program's folder; return what the process printed."""
        start = f"import os, sys; os.chdir({str(self.folder)!r}); sys.path[0] = ''"
        return self._python(
            f"{start}; from cudart_py.__main__ import main; sys.exit(main({['profile', *arguments]}))", check=False
        )

    def data(self, *arguments):
        """Return the profile as data."""
        done = self.profile("--json", "-", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def program(python, tmp_path):
    return Program(tmp_path, python)
