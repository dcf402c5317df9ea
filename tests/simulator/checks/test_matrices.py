"""Accesses of ldmatrix, stmatrix, mma and wmma are checked and counted lane by lane."""

import re

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling.columns import GROUPS
from tests.planted.cases import compiled, marked, words
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE

SMALL = FOLDER / "matrices.cu"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
LOADS, STORES = "smsp__inst_executed_op_ldsm.sum", "smsp__inst_executed_op_shared_st.sum"


def lines_at(mark):
    """Return the line numbers of the statement that a mark begins; compilers report its first or its last line."""
    lines = SMALL.read_text().splitlines()
    (first,) = marked(SMALL, "AT")[mark]
    last = first
    while not lines[last - 1].partition("  //")[0].endswith(";"):
        last += 1
    return range(first, last + 1)


def test_a_tiled_product_is_no_mistake(engine):
    # The inputs are random, because writing the value that is already there is not a race.
    generator, (m, n, k) = np.random.default_rng(8), (72, 56, 88)
    a, b = (cuda.to_device(generator.random(shape).astype(np.float16)) for shape in ((m, k), (k, n)))
    launch = cuda.compile(FOLDER.parents[1] / "launch" / "tensor_cores.cu")["product"][(1, 2), 128]
    assert found(launch, cuda.zeros((m, n), np.float16), a, b, m, n, k) == []


UNWRITTEN, RACE = "uninitialised value reaches a store: it was read at ", "race: it reads"
KERNELS = [
    ("loaded_early", 64, lambda: (words(128),), RACE),
    ("stored_early", 64, lambda: (words(128),), RACE),
    ("copied_early", 64, lambda: (words(64), words(32)), "race: it reads .*, to which cp.async copies for"),
    ("overwritten_early", 64, lambda: (words(32),), "race: it writes .*, which .* read"),
    # Storing the value that is already there is not a race.
    ("stored_twice", 64, lambda: (np.uint32(0),), ""),
    ("stored_twice", 64, lambda: (np.uint32(1 << 16),), "race: it writes 2 bytes of shared memory"),
    ("stored_twice", 64, lambda: (np.uint32(1 << 5),), "race: it writes 2 bytes of shared memory"),
    ("in_order", 32, lambda: (words(32),), ""),
    # Lanes that hold rows from 5 on get uninitialised values in the first register, and no lane does in the second.
    ("undefined_rows", 32, lambda: (words(64), 5, 5), ""),
    ("undefined_rows", 32, lambda: (words(64), 5, 6), UNWRITTEN),
    # With two rows in a register, only the uninitialised one counts.
    ("undefined_columns", 32, lambda: (cuda.zeros(64, np.uint16), 1, 1), ""),
    ("undefined_columns", 32, lambda: (cuda.zeros(64, np.uint16), 2, 1), UNWRITTEN),
    ("undefined_columns", 32, lambda: (cuda.zeros(64, np.uint16), 1, 0), UNWRITTEN),
    ("undefined_matrix", 32, lambda: (), "uninitialised value reaches a store"),
    ("opaque", 64, lambda: (cuda.zeros(256, np.float32), cuda.zeros(256, np.float16), 1), ""),
    ("opaque", 64, lambda: (cuda.zeros(256, np.float32), cuda.zeros(256, np.float16), 0), RACE),
]


@pytest.mark.parametrize(("name", "threads", "arguments", "text"), KERNELS)
def test_a_mistake_with_a_matrix_is_found(engine, name, threads, arguments, text):
    reports = found(compiled(SMALL)[name][1, threads], *arguments())
    assert bool(reports) == bool(text)
    for report in reports:
        assert re.search(text, report)
        if name in marked(SMALL, "AT"):
            assert int(re.search(rf"{name} at \S*matrices\.cu:(\d+): {text}", report)[1]) in lines_at(name)


@pytest.mark.parametrize(("pitch", "ways"), [(1, 1), (2, 2), (8, 8), (9, 1)])
def test_eight_rows_are_a_wavefront(engine, pitch, ways):
    """Rows that are 128 bytes apart, with a pitch of 8 times 16 bytes, are in the same banks."""
    with cuda.profile() as p:
        compiled(SMALL)["pitched"][1, 32, 32 * 16 * pitch](words(32), pitch)
    (launch,) = p.launches
    for mark, kind, counter, wavefronts in (("loaded", "ld", LOADS, 4), ("stored", "st", STORES, 2)):
        [line] = [entry for entry in launch.lines if entry.line in lines_at(mark) and entry.metrics.get(counter)]
        assert line.metrics[counter] == 1
        assert line.metrics[WAVEFRONTS.format(kind)] == wavefronts * ways
        assert line.metrics[CONFLICTS.format(kind)] == wavefronts * (ways - 1)
        # The line of the load has a cell for bank conflicts even if there are none.
        if kind == "ld":
            [conflicts] = GROUPS["conflicts"]
            assert conflicts.value(line.metrics) == 4 * (ways - 1)
