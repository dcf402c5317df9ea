"""The suites of programs in C++: which programs they have, and how each is built and started."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudart_py.standins.library_names import COMPILER

ARCHITECTURE = "compute_90"
# The folder of CUDA's wheels.
_WHEEL = Path(sysconfig.get_path("purelib"), "nvidia", "cu13")
# Options of nvcc: CUDA's headers in the wheels serve where the toolkit has none.
_HEADERS = ["-Xcompiler", f"-idirafter,{_WHEEL / 'include'}"]
# The folders of cuda-samples whose programs need nothing but CUDA itself, with few exceptions.
FOLDERS = ("0_Introduction", "2_Concepts_and_Techniques", "3_CUDA_Features", "6_Performance")
# Why programs are left out: what they need besides CUDA.
_GRAPHICS = re.compile(r"OpenGL|GLUT|Vulkan|EGL|X11|d3d", re.IGNORECASE)
_LIBRARIES = re.compile(r"CUDA::(curand|cublas|cusolver|cufft|npp\w*)|find_package\((MPI)")
_BOOST = re.compile(r"#include [<\"]boost/")
# What CMake copies beside the program after it is built.
_COPIES = re.compile(r"-E\s+copy(?:_if_different|_directory)?\s+([^)]*?)\s*\)")
# What HeCBench's Makefiles use besides nvcc, what they link, the commands of their target `run`, and arguments there
# that are names of files. Then libraries that sources include, and files of other folders that they include or open.
_LINKED = re.compile(r"\s-l(\w+)")
_USUAL = {"cuda", "cudart", "m", "pthread", "rt"}
_STARTS = re.compile(r"^run\s*:.*\n((?:[\t ].*\n?|\n)*)", re.MULTILINE)
_OTHERS = re.compile(r"\bnvc\+\+|\bmpi(cc|cxx)|MPI_INC|PyTorch")
_ABSENT = re.compile(r"#include [<\"](boost/|cublas|cudnn|cufft|cusolver|cusparse|nccl)")
_NEIGHBOUR = re.compile(r"\.\./[\w/-]+\.h\b")
_OPENED = re.compile(r"\"((?:(?:\.\./)+[\w-]+|data)/[\w/.-]+\.(?!h|c)\w+)\"")
_INPUT = re.compile(r"\.(txt|csv|dat|bin|inp|img|pgm|ppm|bmp|mtx|egr|hdr|fasta|gz|seq)$|^(\./)?data(/|$)")
_COMMANDS = Path(__file__).with_name("hecbench.toml")
# Programs have a limit of their own, and a launch may take long on a busy machine.
PATIENT = {"CUDART_PY_SIMULATOR_SECONDS": "0"}
RUN = [sys.executable, "-m", "cudart_py", "run"]


@dataclass(frozen=True)
class Program:
    """A program: its suite and name, the folder that it is built and started in, and its commands."""

    suite: str
    name: str
    folder: Path
    build: list[list[str]]
    run: list[str]
    needs: str = ""  # why it is left out, if it is
    command: str = ""  # how it is started, if the table says so
    environment: dict[str, str] = field(default_factory=dict)


def cuda_samples(checkout: Path, built: Path) -> Iterator[Program]:
    """Yield the programs of cuda-samples. Each is built beside a copy of its sources and data.

    The suite's `test_args.json` gives the arguments of programs, and the number of devices that they need.
    """
    settings = json.loads((checkout / "test_args.json").read_text())
    for chapter in FOLDERS:
        for source in sorted((checkout / "Samples" / chapter).iterdir()):
            recipe = source / "CMakeLists.txt"
            if recipe.is_file():
                setting = settings.get(source.name, {})
                yield _sample(checkout, source, built / source.name, recipe.read_text(), setting)


def _sample(checkout: Path, source: Path, folder: Path, recipe: str, setting: dict[str, Any]) -> Program:
    needs = "graphics" if _GRAPHICS.search(recipe) else ""
    library = _LIBRARIES.search(recipe)
    if library and not needs:
        needs = library[1] or library[2]
    if not needs and any(_BOOST.search(path.read_text(errors="replace")) for path in source.glob("*.h")):
        needs = "Boost"
    shutil.copytree(source, folder, dirs_exist_ok=True)
    _copy(recipe, source, folder)
    include = ["-I", str(checkout / "Common"), "-I", "inc", *_HEADERS]
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
    run = [*RUN, f"./{source.name}", *setting.get("args", [])]
    environment = dict(PATIENT)
    if "min_gpus" in setting:
        environment["CUDART_PY_SIMULATOR_DEVICES"] = str(setting["min_gpus"])
    return Program("cuda-samples", source.name, folder, build, run, needs, environment=environment)


def _copy(recipe: str, source: Path, folder: Path) -> None:
    """Copy the files and folders that the program's CMake file copies."""
    places = {
        "${CMAKE_CURRENT_SOURCE_DIR}": str(source),
        "${CMAKE_CURRENT_BINARY_DIR}": str(folder),
        "${CUDA_INCLUDE_DIR}": str(_include_folder()),
    }
    for match in _COPIES.finditer(recipe):
        words = match[1].split()
        for name, place in places.items():
            words = [word.replace(name, place) for word in words]
        *origins, target = map(Path, words)
        for origin in origins:
            if origin.is_dir():
                shutil.copytree(origin, target, dirs_exist_ok=True)
            elif origin.is_file():
                shutil.copy(origin, target)


def _include_folder() -> Path:
    """Return the toolkit's folder of headers, or that of the wheels if the toolkit comes without the C++ libraries."""
    toolkit = Path(shutil.which("nvcc") or "").resolve().parents[1:2]
    folders = [*(folder / "include" for folder in toolkit), Path("/usr/local/cuda/include"), _WHEEL / "include"]
    return next((folder for folder in folders if (folder / "cccl" / "nv").is_dir()), folders[-1])


def hecbench(checkout: Path, built: Path, count: int, seed: int) -> Iterator[Program]:
    """Yield `count` of HeCBench's programs, drawn by a seed. Their Makefiles say how they are built.

    The draw leaves out programs that need another compiler, a library, or files that are not in the checkout.
    `hecbench.toml` has the command of each program that takes arguments, and the Makefile that of the others.
    """
    commands = tomllib.loads(_COMMANDS.read_text())
    everything = sorted(path for path in (checkout / "src").glob("*-cuda") if (path / "Makefile").is_file())
    drawn = (path for path in random.Random(seed).sample(everything, len(everything)) if _is_complete(path))
    for source in sorted(itertools.islice(drawn, count)):
        # Programs include files of other programs by relative paths.
        folder = built / "src" / source.name
        for needed in {source, *_mentioned(source)}:
            shutil.copytree(needed, built / "src" / needed.name, dirs_exist_ok=True)
        options = " ".join(["--cudart", "shared", *_HEADERS])
        make = ["env", f"NVCC_PREPEND_FLAGS={options}", "make", f"ARCH={ARCHITECTURE}"]
        name = source.name.removesuffix("-cuda")
        command = commands.get(name)
        run = [*RUN, "sh", "-c", command] if command else [*RUN, *make, "run"]
        yield Program("HeCBench", name, folder, [make], run, command=command or "./main", environment=PATIENT)


def _is_complete(source: Path) -> bool:
    """Return whether a program of HeCBench needs only CUDA and nvcc, and files that are in the checkout."""
    recipe = (source / "Makefile").read_text()
    texts = list(_sources(source, headers="*.h"))
    neighbours = {source / name for text in (recipe, *texts) for name in _NEIGHBOUR.findall(text)}
    texts += [path.read_text(errors="replace") for path in neighbours if path.is_file()]
    if _OTHERS.search(recipe) or any(map(_ABSENT.search, texts)):
        return False
    if not all((source / name).exists() for text in texts for name in _OPENED.findall(text)):
        return False
    if set(_LINKED.findall(recipe)) - _USUAL or any(source.rglob("*.dvc")):
        return False  # the suite keeps large files elsewhere, by Data Version Control
    if "cmake" in recipe and any("FetchContent" in path.read_text() for path in source.rglob("CMakeLists.txt")):
        return False  # it downloads a library
    commands = _STARTS.search(recipe)
    words = [word for word in (commands[1].split() if commands else []) if "$(" not in word]
    inputs = [word for word in words if word.startswith("../") or (_INPUT.search(word) and "out" not in word.lower())]
    return all(any(map(_has_files, (source / word, *source.rglob(Path(word).name)))) for word in inputs)


def _has_files(path: Path) -> bool:
    """Return whether a path is a file, or a folder with files: git keeps no others."""
    return path.is_file() or any(inner.is_file() for inner in path.rglob("*"))


def _mentioned(source: Path) -> set[Path]:
    """Return the folders beside a program that its Makefile or sources refer to."""
    texts = [(source / "Makefile").read_text(), *_sources(source, headers="**/*.h*")]
    names = {name for text in texts for name in re.findall(r"\.\./([\w-]+)", text)}
    return {source.parent / name for name in names if (source.parent / name).is_dir()}


def _sources(folder: Path, headers: str) -> Iterator[str]:
    """Yield the texts of a program's sources, and of the headers that match a pattern."""
    for path in {*folder.glob(headers), *(path for path in folder.rglob("*") if path.suffix in _INCLUDING)}:
        if path.is_file():
            yield path.read_text(errors="replace")


_SOURCES = {".cu", ".cpp", ".c"}
_INCLUDING = {*_SOURCES, ".cuh"}
