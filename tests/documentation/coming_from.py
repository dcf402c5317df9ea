"""What the tables of docs/coming-from have in their middle column, and how it is run.

A page's blocks run, then the table's code from top to bottom. What follows `in the kernel:` is compiled as a part of a
kernel. Code that needs more than every driver has runs where the driver has it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import cudart_py as cuda
from tests.documentation.blocks import run_page
from tests.tables import quoted, rows

NEEDS = {
    # The driver of a GPU may be older than the compiler, and refuses its PTX then.
    "cuda.load(": "in_process",
    "as_device_array": "interop",
    "from_dlpack": "interop",
    "libraries.": "libraries",
    "ipc_": "ipc",
    "cuda.profile()": "profile",
    "other": "peer",
}
# What the parts of kernels in a table may use.
AROUND = """
__global__ void part(float *x, float v, int n, int columns, int i, int j, unsigned key, cudaTextureObject_t image) {
    %s;
}
"""


def rows_of(page: Path) -> list[list[str]]:
    """Return the cells of the page's one table, a list for each row."""
    return rows(page.read_text(encoding="utf-8"))[1:]


def run_cell(cell: str, names: dict[str, Any], capabilities: frozenset[str]) -> None:
    """Run the code of a cell in a namespace, where the driver has what the code needs."""
    if all(needed in capabilities for text, needed in NEEDS.items() if text in cell):
        for code in quoted(cell):
            if cell.startswith("in the kernel:"):
                cuda.compile_image(AROUND % code)
            else:
                exec(code, names)


def main(page: Path) -> None:
    """Run a page and its table; raise what a row raises, with the row as a note."""
    warnings.simplefilter("error", cuda.SimulatorWarning)
    names = run_page(page)
    capabilities = cuda.capabilities()
    for row in rows_of(page):
        try:
            run_cell(row[1], names, capabilities)
        except Exception as error:
            error.add_note(f"in the row | {' | '.join(row)} |")
            raise
    cuda.current_device().synchronize()
