"""The suites: which programs they have, and how each is built and started."""

from __future__ import annotations

import random
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cudart_py.standins.library_names import COMPILER

ARCHITECTURE = "compute_90"
# The folder of CUDA's wheels.
_WHEEL = Path(sysconfig.get_path("purelib"), "nvidia", "cu13")
# The folders of cuda-samples whose programs need nothing but CUDA itself, with few exceptions.
_FOLDERS = ("0_Introduction", "2_Concepts_and_Techniques", "3_CUDA_Features", "6_Performance")
# Why programs are left out: what they need besides CUDA.
_GRAPHICS = re.compile(r"OpenGL|GLUT|Vulkan|EGL|X11|d3d", re.IGNORECASE)
_LIBRARIES = re.compile(r"CUDA::(curand|cublas|cusolver|cufft|npp\w*)|find_package\((MPI)")
_RUN = [sys.executable, "-m", "cudart_py", "run"]


@dataclass(frozen=True)
class Program:
    """A program: its suite and name, the folder that it is built and started in, and its commands."""

    suite: str
    name: str
    folder: Path
    build: list[list[str]]
    run: list[str]
    needs: str = ""  # why it is left out, if it is


def cuda_samples(checkout: Path, built: Path) -> Iterator[Program]:
    """Yield the programs of cuda-samples. Each is built beside a copy of its sources and data."""
    for chapter in _FOLDERS:
        for source in sorted((checkout / "Samples" / chapter).iterdir()):
            recipe = source / "CMakeLists.txt"
            if recipe.is_file():
                yield _sample(checkout, source, built / source.name, recipe.read_text())


def _sample(checkout: Path, source: Path, folder: Path, recipe: str) -> Program:
    needs = "graphics" if _GRAPHICS.search(recipe) else ""
    library = _LIBRARIES.search(recipe)
    if library and not needs:
        needs = library[1] or library[2]
    shutil.copytree(source, folder, dirs_exist_ok=True)
    # CUDA's headers in the wheels serve where the toolkit has none.
    include = ["-I", str(checkout / "Common"), "-I", "inc", "-Xcompiler", f"-idirafter,{_WHEEL / 'include'}"]
    build = []
    kernels = re.findall(r"\"\$\{CMAKE_CURRENT_BINARY_DIR\}/(\S+?\.(fatbin|ptx))\"[\s\S]*?/(\w+\.cu)\"", recipe)
    apart = {kernel for _, _, kernel in kernels}
    for image, kind, kernel in kernels:
        build.append(["nvcc", *include, f"-arch={ARCHITECTURE}", f"-{kind}", "-o", image, kernel])
    if "_nvrtc" in source.name:
        apart |= {path.name for path in folder.glob("*.cu")}
    found = (path for path in sorted((*folder.glob("*.c*"), *folder.glob("src/*.c*"))) if path.suffix in _SOURCES)
    named = [path for path in found if re.search(rf"\b{re.escape(path.name)}\b", recipe)]
    sources = [str(path.relative_to(folder)) for path in named if path.name not in apart]
    sources += [str(checkout / "Common" / name) for name in re.findall(r"Common/(\w+\.cpp)", recipe)]
    options = ["-std=c++17", "--extended-lambda", "-lineinfo", "--cudart", "shared"]
    if "cdp" in source.name or "cudadevrt" in recipe:
        options += ["-rdc=true", "-lcudadevrt"]
    if "OpenMP" in recipe:
        options += ["-Xcompiler", "-fopenmp"]
    if "CUDA::nvrtc" in recipe:
        options += ["-Xlinker", str(_WHEEL / "lib" / COMPILER)]
    build.append(
        ["nvcc", *include, f"-arch={ARCHITECTURE}", *options, "-o", source.name, *sources, "-Xlinker", "@libcuda"]
    )
    return Program("cuda-samples", source.name, folder, build, [*_RUN, f"./{source.name}"], needs)


def hecbench(checkout: Path, built: Path, count: int, seed: int) -> Iterator[Program]:
    """Yield `count` of HeCBench's programs, drawn by a seed. Their Makefiles say how they are built and started."""
    everything = sorted(path for path in (checkout / "src").glob("*-cuda") if (path / "Makefile").is_file())
    for source in sorted(random.Random(seed).sample(everything, min(count, len(everything)))):
        # Programs include files of other programs by relative paths.
        folder = built / "src" / source.name
        for needed in {source, *_mentioned(source)}:
            shutil.copytree(needed, built / "src" / needed.name, dirs_exist_ok=True)
        make = ["make", "CC=nvcc --cudart shared", f"ARCH={ARCHITECTURE}"]
        launcher = f"LAUNCHER={' '.join(_RUN)}"
        program = Program("HeCBench", source.name.removesuffix("-cuda"), folder, [make], [*make, "run", launcher])
        yield program


def _mentioned(source: Path) -> set[Path]:
    """Return the folders beside a program that its Makefile or sources refer to."""
    texts = [
        path.read_text(errors="replace")
        for path in source.rglob("*")
        if path.suffix in _TEXTS or path.name == "Makefile"
    ]
    names = {name for text in texts for name in re.findall(r"\.\./([\w-]+)", text)}
    return {source.parent / name for name in names if (source.parent / name).is_dir()}


_SOURCES = {".cu", ".cpp", ".c"}
_TEXTS = {*_SOURCES, ".cuh", ".h", ".hpp"}
