"""Fixtures that build C and C++ programs against the stand-ins, and run them with `cudart-py run`."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cudart_py import images
from cudart_py.standins.library import libraries
from cudart_py.standins.library_names import DRIVER, RUNTIME

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 120

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def headers() -> str:
    """Return the folder with CUDA's headers."""
    pathfinder = pytest.importorskip("cuda.pathfinder", reason="cuda-pathfinder is not installed")
    found = pathfinder.find_nvidia_header_directory("cudart")
    # The wheels of the runtime and of the compiler have some headers each.
    if found is None or not all(Path(found, name).is_file() for name in ("cuda.h", "crt/host_defines.h")):
        pytest.skip("CUDA's headers are not installed")
    return str(found)


@pytest.fixture(scope="session")
def build(headers: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles a program of `programs/` for the stand-ins, once, and returns its path."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")

    @functools.cache
    def compile_program(name: str, *options: str) -> Path:
        program = tmp_path_factory.mktemp("programs") / Path(name).stem
        linked = [str(libraries() / library) for library in (RUNTIME, DRIVER)]
        command = [compiler, "-x", "c++", str(PROGRAMS / name), "-x", "none", "-I", headers, *options, *linked]
        subprocess.run([*command, "-o", str(program)], check=True, timeout=SECONDS)
        return program

    return compile_program


@pytest.fixture(scope="session")
def run() -> Run:
    """Return a function that runs `cudart-py run` with some arguments, and returns the ended process."""

    def start(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cudart_py", "run", *map(str, arguments)]
        env = {**os.environ, **environment}
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=env, check=False)

    return start


@pytest.fixture
def ptx(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that compiles a source to a file of PTX."""

    def compile_source(source: str) -> Path:
        path = tmp_path / "kernel.ptx"
        path.write_bytes(images.compile_image(source, arch="compute_90").ptx)
        return path

    return compile_source
