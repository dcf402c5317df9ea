"""Runs the Python blocks of a documentation page: in order, in one namespace.

A comment in the line above a block says how it is run:

    <!-- prints -->             the text block is the output of the Python block before it; `...` stands for anything
    <!-- raises ValueError -->  the Python block ends with this exception, whose last line counts as printed
    <!-- needs: profile -->     the Python block is run where the driver has these capabilities, and the names after
                                `module` can be imported: `needs: interop, module cupy`
    <!-- not run: REASON -->    the Python block is not run, for this reason
    <!-- file: saxpy.cu -->     the block is written to this file before the next blocks run
    <!-- environment -->        the block's lines `export NAME=VALUE` apply to the whole page
    <!-- commands -->           the block is run by a shell, and each of its commands must succeed
    <!-- session: sum -->       the block is a session of the debugger, which `tests/debugging/test_guide.py` runs

A page of docs/coming-from also has a table. The code in its middle column is run from top to bottom. Code after
`in the kernel:` is compiled as part of a kernel. Code that needs a capability runs only on drivers that have it.
"""

import doctest
import importlib.util
import linecache
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cudart_py as cuda
from tests.forks import own_environment
from tests.tables import quoted, rows

FENCE = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<mark>[^\n]+) -->\n+)?"
    r"^(?P=indent)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
MARKS = re.compile(
    r"prints|raises \w[\w.]*|needs: (module )?[\w.]+(, (module )?[\w.]+)*|not run: \w.*|file: [\w.-]+|environment"
    r"|commands|session: \w+"
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def page_environment() -> dict[str, str]:
    """Return the environment of a process that runs a page: on the simulator, whose outputs the pages show."""
    return {**own_environment(), "CUDART_PY_DRIVER": "simulator"}


@dataclass(frozen=True)
class Block:
    """A block of code; `line` is the number of the line before its first line."""

    language: str
    mark: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, in their order."""
    source = page.read_text(encoding="utf-8")
    found = [
        Block(
            match["language"],
            match["mark"] or "",
            textwrap.dedent(match["text"]),
            source.count("\n", 0, match.start("text")),
        )
        for match in FENCE.finditer(source)
    ]
    for block in found:
        if block.mark and not MARKS.fullmatch(block.mark):
            raise ValueError(f"{page.name}:{block.line}: {block.mark!r} is not a mark of a block")
    return found


@contextmanager
def output() -> Iterator[list[str]]:
    """Collect what the process writes to its standard output and standard error, C code included."""
    collected: list[str] = []
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield collected
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, saved in enumerate(kept, 1):
                os.dup2(saved, number)
                os.close(saved)
            file.seek(0)
            collected.append(file.read())


def run(page: Path, block: Block, names: dict[str, Any]) -> str:
    """Run a Python block under its page's name and line numbers; return its output and expected exception.

    Raises any other exception of the block.
    """
    wanted = block.mark.removeprefix("raises ") if block.mark.startswith("raises ") else ""
    code = compile("\n" * block.line + block.text, page.name, "exec")
    with output() as written:
        last = ""
        try:
            exec(code, names)
        except Exception as error:
            last = "".join(traceback.format_exception_only(error))
            if wanted not in {kind.__name__ for kind in type(error).__mro__} - {""}:
                raise
        else:
            assert not wanted, f"{page.name}:{block.line}: {wanted} is not raised"
    return "".join([*written, last])


def run_commands(block: Block) -> None:
    """Run the commands of a block, with the programs of this Python's environment first in PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Importing all installed plugins would take longer than the tests that the pages show.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment["PYTEST_PLUGINS"] = "pytest_benchmark.plugin,cudart_py.benchmark.pytest_plugin"
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    done = subprocess.run(["sh", "-e", "-c", block.text], env=environment, capture_output=True, text=True)
    assert not done.returncode, f"{block.text}{done.stdout}{done.stderr}"


def needs(block: Block) -> list[str]:
    """Return the requirements of a block: capabilities, and modules in the form `module cupy`."""
    return block.mark.removeprefix("needs: ").split(", ") if block.mark.startswith("needs: ") else []


def is_there(needed: str, capabilities: frozenset[str]) -> bool:
    """Return whether the driver has a capability, or Python finds a module."""
    module = needed.removeprefix("module ")
    return needed in capabilities if module == needed else importlib.util.find_spec(module) is not None


def run_page(page: Path) -> dict[str, Any]:
    """Run the blocks of a page, compare their output with the page's, and return the namespace of the Python blocks."""
    blocks = blocks_of(page)
    for exports in (block.text for block in blocks if block.mark == "environment"):
        os.environ |= re.findall(r"^export (\w+)=(.*)$", exports, re.MULTILINE)
    capabilities = cuda.capabilities()
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    linecache.cache[page.name] = (sum(map(len, lines)), None, lines, page.name)
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = ""
    for block in blocks:
        where = f"{page.name}:{block.line}"
        if block.mark.startswith("file: "):
            Path(block.mark.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
        elif block.mark == "commands":
            run_commands(block)
        elif block.mark == "prints":
            right = printed is None or doctest.OutputChecker().check_output(block.text, printed, OPTIONS)
            assert right, f"{where}: the page says\n{block.text}\nand what is printed is\n{printed}"
        elif block.language == "python":
            possible = all(is_there(needed, capabilities) for needed in needs(block))
            left_out = block.mark.startswith("not run: ") or not possible
            printed = None if left_out else run(page, block, names)
    return names


NEEDS = {
    # A GPU's driver may be older than the compiler, and would then refuse its PTX.
    "cuda.load(": "in_process",
    "as_device_array": "interop",
    "from_dlpack": "interop",
    "libraries.": "libraries",
    "libraries.SparseSolver": "cudss",
    "s.to_host": "libraries",  # `s` is a sparse matrix
    "s.values": "libraries",
    "cuda.ipc.": "ipc",
    "cuda.profile(": "profile",
    "other": "peer",
}
# The names that kernel code in a table may use.
AROUND = """
__global__ void part(float *x, float v, int n, int columns, int i, int j, unsigned key, cudaTextureObject_t image) {
    %s;
}
"""


def rows_of(page: Path) -> list[list[str]]:
    """Return the cells of the page's only table, as one list per row."""
    return rows(page.read_text(encoding="utf-8"))[1:]


def run_cell(cell: str, names: dict[str, Any], capabilities: frozenset[str]) -> None:
    """Run the code of a cell in a namespace, if the driver has the capabilities that the code needs."""
    if all(needed in capabilities for text, needed in NEEDS.items() if text in cell):
        for code in quoted(cell):
            if cell.startswith("in the kernel:"):
                cuda.images.compile_image(AROUND % code)
            else:
                exec(code, names)


def run_table(page: Path) -> None:
    """Run a page and its table; an exception from a row gets the row as a note."""
    warnings.simplefilter("error", cuda.errors.SimulatorWarning)
    names = run_page(page)
    capabilities = cuda.capabilities()
    for row in rows_of(page):
        try:
            run_cell(row[1], names, capabilities)
        except Exception as error:
            error.add_note(f"in the row | {' | '.join(row)} |")
            raise
    cuda.current_device().synchronize()


def main() -> None:
    """Run the page named on the command line with the named runner, "blocks" or "coming_from"."""
    runner, page = sys.argv[1:]
    {"blocks": run_page, "coming_from": run_table}[runner](Path(page))
    # Exit without destroying all objects, which would take longer than most pages do.
    os._exit(0)
