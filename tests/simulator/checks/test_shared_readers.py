"""A thread that has read a word, and then writes it, races with all other threads that have read it.

The records name only two of a word's readers, so the writer may be the last reader, or any other one. The same applies
to threads that have updated the word with atomics, or have stored the same value there.
"""

import re

import numpy as np
import pytest

from tests.simulator.checks.reports import FOLDER, of_both
from tests.simulator.ptx.machine import Kernels

SOURCE = (FOLDER / "shared_readers.cu").read_text()
NAMES = re.findall(r"^KERNEL (\w+)", SOURCE, re.MULTILINE)
# Kernels in which the write is ordered after the reads of all other threads in its warp, or in its block.
WARP = {"after_a_barrier_of_the_warp", "of_a_matrix", "read_earlier_by_another_warp"}
BLOCK = {
    "counted_by_all_then_in_block",
    "after_a_barrier_of_the_block",
    "stored_by_all_after_a_barrier_of_the_block",
    "stored_before_an_atomic_of_the_thread",
    "stored_before_atomics_of_the_block",
    "stored_before_atomics_of_block_scope",
    "stored_with_block_scope",
}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def findings(kernels: Kernels, name: str, blocks: int, threads: int) -> list[str]:
    words, out = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    return of_both(kernels, name, (blocks, 1, 1), (threads, 1, 1), words, out)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (1, 128), (3, 128), (5, 96)])
@pytest.mark.parametrize("name", NAMES)
def test_a_write_races_with_the_reads_of_other_threads(kernels: Kernels, name: str, blocks: int, threads: int) -> None:
    texts = findings(kernels, name, blocks, threads)
    ordered = name.endswith("_ordered") or (name in WARP and blocks * threads == 32) or (name in BLOCK and blocks == 1)
    assert len(texts) == (not ordered), texts
    assert all("race: it " in text for text in texts)


@pytest.mark.parametrize("name", ["in_shared", "in_pairs", "a_byte_of_a_word", "after_a_barrier_of_the_warp"])
def test_the_report_names_the_thread_of_another_read(kernels: Kernels, name: str) -> None:
    (text,) = findings(kernels, name, 1, 128)
    line = next(n for n, one in enumerate(SOURCE.splitlines(), 1) if "int value = " in one and n > _line_of(name))
    assert re.search(rf"which block \(0, 0, 0\), thread \(0, 0, 0\) read at \S+:{line}, and nothing orders", text), text


def _line_of(name: str) -> int:
    return next(n for n, one in enumerate(SOURCE.splitlines(), 1) if one.startswith(f"KERNEL {name}("))
