"""nvcc, which compiles a .cu file that `cudart-py run` gets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_ARCHITECTURE = "compute_90"
_MISSING = (
    "no nvcc was found, which compiles {name}: install a CUDA toolkit, or "
    "`pip install 'cuda-toolkit[nvcc,cudart]==13.*'`"
)


class CompilationError(RuntimeError):
    """A .cu file cannot be compiled."""


def compile_program(source: Path, folder: Path, standins: Path) -> Path:
    """Compile a program for the simulator in a folder, and return the executable.

    Its device code is PTX for compute capability 9.0. It is linked with the stand-ins of the shared runtime and of the
    driver, which are in a second folder. Raises CompilationError if there is no nvcc, or if nvcc fails; nvcc's own
    messages go to standard error.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        raise CompilationError(_MISSING.format(name=source.name))
    target = folder / source.stem
    # A wheel's nvcc looks for CUDA's own libraries in lib64, but they are in lib.
    folders = [f"-L{standins}", f"-L{Path(nvcc).parents[1] / 'lib'}"]
    options = [f"-arch={_ARCHITECTURE}", "--cudart", "shared", "-lineinfo", *folders, "-lcuda"]
    done = subprocess.run([nvcc, *options, "-o", str(target), str(source)], stdout=sys.stderr, check=False)
    if done.returncode:
        raise CompilationError(f"nvcc could not compile {source}")
    if not target.is_file():  # because of an option in the environment, such as --dryrun
        raise CompilationError(f"nvcc wrote no program for {source}: look at NVCC_APPEND_FLAGS and NVCC_PREPEND_FLAGS")
    return target


def find_nvcc() -> str | None:
    """Return the path of nvcc from a toolkit or from its wheel, or None."""
    found = shutil.which("nvcc")
    if found:
        return found
    candidates = [Path(os.environ[name], "bin/nvcc") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    candidates += [Path(entry, "nvidia/cu13/bin/nvcc") for entry in sys.path]
    from cuda.pathfinder import find_nvidia_binary_utility  # imported late: only .cu files need it

    # It knows Conda's folders, but only Python's own folders of packages, not all of sys.path.
    if elsewhere := find_nvidia_binary_utility("nvcc"):
        candidates.append(Path(elsewhere))
    candidates.append(Path("/usr/local/cuda/bin/nvcc"))
    return next((str(path) for path in candidates if path.is_file()), None)
