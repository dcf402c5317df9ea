"""Compile CUDA C++ files with NVRTC, which needs no GPU: a hook for pre-commit, and a step for CI.

    python compile_kernels.py [--arch sm_80] [--include FOLDER] [--define NAME=VALUE] FILE.cu ...

The exit status is 1 if a file does not compile. In GitHub Actions, each error is also an annotation. As in every C++
compiler, the body of a template is checked completely only where the file uses the template.
"""

import argparse
import os
import re
import sys
from pathlib import Path

try:
    from cudart_py import CompileError, images
except ModuleNotFoundError as error:
    if error.name != "cudart_py":
        raise
    sys.exit(
        f"compile_kernels.py: cudart-py is not installed for {sys.executable}. Activate your project's environment "
        "before git commit, or name its interpreter in the hook's entry: .venv/bin/python hooks/compile_kernels.py"
    )

_ERROR = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<what>.*)$", re.MULTILINE)


def main() -> int:
    """Compile each file; return the exit status."""
    parser = argparse.ArgumentParser(description="Compile CUDA C++ files with NVRTC, without a GPU.")
    parser.add_argument("--arch", default="sm_80", help="the architecture to compile for (default: sm_80)")
    parser.add_argument("--include", action="append", default=[], metavar="FOLDER", help="a folder with headers")
    parser.add_argument(
        "--define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro that the programs define"
    )
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    define = {name: value if given else None for name, given, value in (one.partition("=") for one in options.define)}
    failed = False
    for file in options.files:
        try:
            images.compile_image(file, arch=options.arch, include=options.include, define=define)
        except CompileError as error:
            failed = True
            print(error, file=sys.stderr)
            if re.search(r"\b(include|define)=", str(error)):
                print(
                    "Here, these arguments are the options --include FOLDER and --define NAME=VALUE.", file=sys.stderr
                )
            if os.environ.get("GITHUB_ACTIONS") == "true":
                print_annotations(error.log)
    return int(failed)


def print_annotations(log: str) -> None:
    """Print each error of a compiler's log as an annotation of GitHub Actions."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.curdir
    for match in _ERROR.finditer(log):
        path = _encoded(os.path.relpath(match["file"], root), {"%": "%25", ":": "%3A", ",": "%2C"})
        print(f"::error file={path},line={match['line']}::{_encoded(match['what'], {'%': '%25'})}")


def _encoded(text: str, characters: dict[str, str]) -> str:
    """Return a text as a workflow command must encode it. Neither a path nor a line of the log has line breaks."""
    # "%" comes first, so that the encodings of the others are not encoded again.
    for character, encoding in characters.items():
        text = text.replace(character, encoding)
    return text


if __name__ == "__main__":
    sys.exit(main())
