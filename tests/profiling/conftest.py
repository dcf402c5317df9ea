"""A program whose kernels have one performance mistake each, and the command that profiles it."""

import contextlib
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudart_py.__main__ import main

# The tests refer to line numbers of this text.
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
    """The program in its folder, and the profile command, which runs there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "slow.py").write_text(PROGRAM)
        (folder / "slow.cu").write_text(KERNELS)

    def profile(self, *arguments, encoding="utf-8"):
        """Run the command; return its exit status and its output on terminals with this encoding."""
        streams = [io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2)]
        status = self.profile_into(streams[0], *arguments, err=streams[1])
        for stream in streams:
            stream.seek(0)
        out, err = (stream.read() for stream in streams)
        assert "Traceback" not in err or "ZeroDivisionError" in err, err
        return SimpleNamespace(returncode=status, stdout=out, stderr=err)

    def profile_into(self, out, *arguments, err):
        """Run the command with its output redirected to these streams; return its exit status."""
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                return main(["profile", *arguments])
            except SystemExit as end:
                return end.code

    def data(self, *arguments):
        """Return the profile as parsed JSON."""
        done = self.profile("--json", "-", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def program(tmp_path):
    yield Program(tmp_path)
    for module in ("slow", "package"):
        sys.modules.pop(module, None)
