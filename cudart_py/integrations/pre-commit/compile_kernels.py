"""Compile CUDA C++ files with NVRTC, which needs no GPU: a hook for pre-commit.

    python compile_kernels.py [--arch sm_80] FILE.cu ...

The exit status is 1 if a file does not compile. In GitHub Actions, each error is also an annotation.
"""

import argparse
import os
import re
import sys
from pathlib import Path

from cudart_py import CompileError, images

_ERROR = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<what>.*)$", re.MULTILINE)


def main() -> int:
    """Compile each file; return the exit status."""
    parser = argparse.ArgumentParser(description="Compile CUDA C++ files with NVRTC, without a GPU.")
    parser.add_argument("--arch", default="sm_80", help="the architecture to compile for (default: sm_80)")
    parser.add_argument("--include", action="append", default=[], metavar="FOLDER", help="a folder with headers")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    failed = False
    for file in options.files:
        try:
            images.compile_image(file, arch=options.arch, include=options.include)
        except CompileError as error:
            failed = True
            print(error, file=sys.stderr)
            if os.environ.get("GITHUB_ACTIONS") == "true":
                for match in _ERROR.finditer(error.log):
                    print(f"::error file={os.path.relpath(match['file'])},line={match['line']}::{match['what']}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
