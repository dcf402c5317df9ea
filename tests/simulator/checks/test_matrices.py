"""What ldmatrix, stmatrix, mma and wmma read and write is checked, and counted, lane by lane."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling.columns import GROUPS
from tests.planted.cases import words
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, compiled, found

pytestmark = WRONG_ON_PURPOSE

SOURCE = Path(__file__).parents[2] / "launch" / "tensor_cores.cu"
SMALL = Path(__file__).parent / "matrices.cu"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
LOADS, STORES = "smsp__inst_executed_op_ldsm.sum", "smsp__inst_executed_op_shared_st.sum"


def statement(path, number):
    """Return the numbers of the lines of a statement, of which compilers name the first or the last one."""
    lines = ["", *(text.partition("  //")[0] for text in path.read_text().splitlines())]
    first = last = number
    while not lines[first - 1].endswith((";", "{", "}", "*/")) and lines[first - 1]:
        first -= 1
    while not lines[last].endswith(";"):
        last += 1
    return range(first, last + 1)


def lines_at(mark):
    """Return the numbers of the lines of a marked statement."""
    lines = SMALL.read_text().splitlines()
    return statement(SMALL, next(number for number, text in enumerate(lines, 1) if text.endswith(f"// AT {mark}")))


def small(name, shape, *arguments):
    """Return what is reported of one of the small kernels."""
    return found(compiled(SMALL.name)[name][shape], *arguments)


def product(m=72, n=56, k=88, **define):
    """Return what is reported of a tiled product."""
    # To write what is there already is no race.
    generator = np.random.default_rng(8)
    a, b = (cuda.to_device(generator.random(shape).astype(np.float16)) for shape in ((m, k), (k, n)))
    launch = cuda.compile(SOURCE, define=define)["product"][(-(-n // 64), -(-m // 64)), 128]
    return found(launch, cuda.zeros((m, n), np.float16), a, b, m, n, k)


def text_at(report):
    """Return the source of the statement that a report names."""
    numbers = statement(SOURCE, int(re.search(r"tensor_cores\.cu:(\d+)", report)[1]))
    return "\n".join(SOURCE.read_text().splitlines()[numbers[0] - 1 : numbers[-1]])


# What the tile's barriers and waits are for, and where and how each is missed.
MISSED = {
    "ARRIVED": ("ldmatrix", 2, r"race: it reads .* of shared memory at .*, which .* wrote"),
    "COPIED": ("ldmatrix", 2, r"race: it reads .*, to which cp\.async copies for"),
    "USED": ("stmatrix", 1, r"race: it writes .*, which .* read"),
}


def test_a_tiled_product_is_no_mistake():
    assert product() == []


@pytest.mark.parametrize("name", ["ARRIVED", "COPIED", pytest.param("USED", marks=pytest.mark.exhaustive)])
def test_a_missing_barrier_or_wait_of_a_tiled_product_is_found(name):
    instruction, count, text = MISSED[name]
    reports = [report for report in product(**{name: ""}) if instruction in text_at(report)]
    assert len(reports) == count
    assert all(re.search(text, report) for report in reports)


@pytest.mark.parametrize("name", ["loaded_early", "stored_early"])
def test_a_race_with_another_warp_is_found(name):
    [report] = small(name, (1, 64), words(128))
    assert int(re.search(rf"{name} at \S*matrices\.cu:(\d+): race: it reads", report)[1]) in lines_at(name)


@pytest.mark.parametrize(("other", "wrong"), [(0, False), (1 << 16, True), (1 << 5, True)])
def test_to_store_what_is_there_already_is_no_race(other, wrong):
    reports = small("stored_twice", (1, 64), np.uint32(other))
    assert bool(reports) == wrong
    assert all("race: it writes 2 bytes of shared memory" in report for report in reports)


def test_what_a_warp_passes_on_is_no_race():
    assert small("in_order", (1, 32), words(32)) == []


@pytest.mark.parametrize("stored", [5, 6])
def test_only_lanes_that_get_what_nobody_wrote_are_reported(stored):
    """The lanes with the rows from 5 on get it in the first register, and none in the second."""
    reports = small("undefined_rows", (1, 32), words(64), 5, stored)
    assert bool(reports) == (stored > 5)
    assert all("uninitialised value reaches a store: it was read at " in report for report in reports)


@pytest.mark.parametrize(("halves", "even", "wrong"), [(1, 1, False), (2, 1, True), (1, 0, True)])
def test_of_two_rows_only_what_nobody_wrote_is_reported(halves, even, wrong):
    reports = small("undefined_columns", (1, 32), cuda.zeros(64, np.uint16), halves, even)
    assert bool(reports) == wrong


def test_a_stored_matrix_that_nobody_wrote_is_reported():
    [report] = small("undefined_matrix", (1, 32))
    assert "uninitialised value reaches a store" in report


@pytest.mark.parametrize("rows", [12, 16])
def test_rows_of_a_product_that_nobody_wrote_are_reported_where_they_are_stored(rows):
    reports = found(cuda.compile(SOURCE)["unwritten_rows"][1, 32], cuda.zeros(128, np.float32), rows)
    assert bool(reports) == (rows > 12)
    assert all("uninitialised value reaches a store" in report for report in reports)


@pytest.mark.parametrize("waits", [0, 1])
def test_wmma_is_checked_too(waits):
    reports = small("opaque", (1, 64), cuda.zeros(256, np.float32), cuda.zeros(256, np.float16), waits)
    assert bool(reports) == (not waits)
    assert all("race: it reads" in report for report in reports)


@pytest.mark.parametrize(("pitch", "ways"), [(1, 1), (2, 2), (8, 8), (9, 1)])
def test_eight_rows_are_a_wavefront(pitch, ways):
    """Rows that are 128 bytes apart, 8 times 16, lie in the same banks."""
    kernel = compiled(SMALL.name)["pitched"]
    with cuda.profile() as p:
        kernel[1, 32, 32 * 16 * pitch](words(32), pitch)
    metrics = p.launches[0].metrics
    [load] = [entry for entry in p.launches[0].lines if entry.line in lines_at("loaded") and entry.metrics.get(LOADS)]
    [store] = [entry for entry in p.launches[0].lines if entry.line in lines_at("stored") and entry.metrics.get(STORES)]
    assert metrics[LOADS] == 1
    assert metrics[WAVEFRONTS.format("ld")] == 4 * ways
    assert metrics[CONFLICTS.format("ld")] == 4 * (ways - 1)
    # The line of the load has a cell for conflicts, also where there are none.
    [conflicts] = GROUPS["conflicts"]
    assert conflicts.value(load.metrics) == 4 * (ways - 1)
    assert store.metrics[STORES] == 1
    assert store.metrics[WAVEFRONTS.format("st")] == 2 * ways
    assert store.metrics[CONFLICTS.format("st")] == 2 * (ways - 1)
