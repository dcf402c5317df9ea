"""Record the PTX that numba-cuda and Triton generate from the kernels beside this module, for the tests.

    uv run --with 'numba-cuda[cu13]' --with triton python -m tests.launch.other_compilers FOLDER

Neither needs a GPU. `tests/launch/test_other_compilers.py` runs the recorded texts. Their PTX version is at most 8.8,
which all drivers for CUDA 13 accept.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NUMBA_TARGET = (9, 0)
WARPS = 4
NEWEST = 8.8


def numba_texts() -> Iterator[tuple[str, str]]:
    """Yield each kernel's name and the PTX that numba-cuda generates."""
    from numba import cuda  # installed only for recording

    from .numba_kernels import KERNELS  # as above

    for function, types in KERNELS.items():
        text, _ = cuda.compile(function, types, cc=NUMBA_TARGET, device=False, output="ptx", abi="numba")
        yield f"numba_{function.__name__}", text


def triton_texts() -> Iterator[tuple[str, str]]:
    """Yield each kernel's name and the PTX that Triton generates, after a comment with its launch configuration."""
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    import triton  # reads the environment when it is imported
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from .triton_kernels import KERNELS  # imports Triton, as do the next two

    for name, (function, types, constants, capability) in KERNELS.items():
        signature = {**types, **dict.fromkeys(constants, "constexpr")}
        source = ASTSource(fn=function, signature=signature, constexprs=constants)
        made: Any = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": WARPS})
        head = f"// {32 * WARPS} threads a block, {made.metadata.shared} bytes of shared memory\n"
        yield f"triton_{name}", head + made.asm["ptx"]


def older(text: str) -> str:
    """Return PTX with a version that all drivers accept, and without trailing blanks in its lines."""
    text = re.sub(r"(?m)^\.version ([0-9.]+)$", lambda found: f".version {min(float(found[1]), NEWEST)}", text, count=1)
    return re.sub(r"(?m)[ \t]+$", "", text).rstrip() + "\n"


def main() -> None:
    """Write all texts to the folder named on the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (*numba_texts(), *triton_texts()):
        (folder / f"{name}.ptx").write_text(older(text))


if __name__ == "__main__":
    main()
