"""Sessions of the debugger in this process: commands go in as text, and what it shows comes out."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.debugging.attaching import attached
from cudart_py.debugging.interfaces.command_line import PROMPT, CommandLine
from cudart_py.debugging.session import Session

# The tests refer to line numbers of this text.
KERNELS = """struct Pair { float x; int y[3]; };
__device__ float scaled(float a, Pair& pair) {
    float twice = a * 2;
    pair.x += twice;
    return twice + pair.y[1];
}
extern "C" __global__ void total(const float* x, float* out, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < n ? x[i] : 0.0f;
    tile[threadIdx.x] = value;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            tile[threadIdx.x] += tile[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}
extern "C" __global__ void calls(float* x, Pair pair) {
    Pair copy = pair;
    unsigned char small = 200 + threadIdx.x;
    float result = scaled(x[threadIdx.x], copy);
    x[threadIdx.x] = result + small;
    x[threadIdx.x + 64] = copy.x;
}
extern "C" __global__ void reversed(float* x) {
    __shared__ float tile[8][8];
    tile[threadIdx.x / 8][threadIdx.x % 8] = x[threadIdx.x];
    x[threadIdx.x] = tile[7 - threadIdx.x / 8][7 - threadIdx.x % 8];
}
extern "C" __global__ void stuck(float* x) {
    if (threadIdx.x < 40) {
        asm volatile("bar.sync 1, 64;");
    }
    x[threadIdx.x] = 1;
}
extern "C" __global__ void beyond(float* x, int n) {
    int i = threadIdx.x * 2;
    x[i] = n;
}
"""


class Transcript(str):
    """What the debugger has shown."""

    def after(self, command: str, occurrence: int = 0) -> str:
        """Return what a command has shown."""
        return self.split(f"{PROMPT}{command}\n")[occurrence + 1].partition(PROMPT)[0]


@pytest.fixture(scope="session")
def kernel_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("debugged") / "kernels.cu"
    path.write_text(KERNELS)
    return path


@pytest.fixture(scope="session")
def debugged(kernel_file) -> Callable[..., Transcript]:
    """Return a function that launches a kernel with the given commands and arguments, and returns the transcript.

    `then` contains the arguments of a second launch.
    """

    def debug(
        commands: str,
        kernel: str,
        *arguments: object,
        grid: int = 1,
        shared: int = 0,
        optimized: bool = False,
        source: str | Path = kernel_file,
        then: tuple[object, ...] | None = None,
    ) -> Transcript:
        output = io.StringIO()
        frontend = CommandLine(commands.splitlines(), output)
        session = Session(frontend)
        frontend.attach(session)
        with attached(session, optimized=optimized):
            module = cuda.compile(source)
            frontend.read_commands()
            for each in (arguments,) if then is None else (arguments, then):
                module[kernel][grid, 64, shared](*each)
            cuda.current_device().synchronize()
        return Transcript(output.getvalue())

    return debug


@pytest.fixture
def numbers() -> np.ndarray:
    return np.random.default_rng().integers(1, 1000, 64).astype(np.float32)


def column(table: str, name: str) -> list[str]:
    """Return the cells of a column of a table."""
    rows = [re.split(r" {2,}", line.strip(" >")) for line in table.splitlines() if line.strip()]
    place = rows[0].index(name)
    return [row[place] for row in rows[1:]]


def line_of(text: str) -> int:
    """Return the last line that a stop has shown."""
    return int(re.findall(r"^ +(\d+)  ", text, re.MULTILINE)[-1])
