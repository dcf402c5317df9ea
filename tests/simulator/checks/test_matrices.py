"""What ldmatrix, stmatrix, mma and wmma read and write is checked, and counted, lane by lane."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling.columns import GROUPS

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the kernels are wrong on purpose")]

SOURCE = Path(__file__).parents[2] / "launch" / "tensor_cores.cu"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
LOADS, STORES = "smsp__inst_executed_op_ldsm.sum", "smsp__inst_executed_op_shared_st.sum"

SMALL = r"""
#include <mma.h>
using namespace nvcuda::wmma;
__device__ unsigned in_shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Another warp writes the row that a lane reads, with nothing in between.
extern "C" __global__ void loaded_early(unsigned* out) {
    __shared__ uint4 tile[8];
    if (threadIdx.x >= 32 && threadIdx.x < 40) tile[threadIdx.x - 32] = make_uint4(1, 2, 3, 4);
    if (threadIdx.x < 32) {
        unsigned r;
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"  // AT loaded_early
                     : "=r"(r) : "r"(in_shared(tile + threadIdx.x % 8)) : "memory");
        out[threadIdx.x] = r;
    }
}
extern "C" __global__ void stored_early(uint4* out) {
    __shared__ uint4 tile[8];
    if (threadIdx.x < 32)
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                     : : "r"(in_shared(tile + threadIdx.x % 8)), "r"(threadIdx.x) : "memory");
    if (threadIdx.x >= 32 && threadIdx.x < 40)
        out[threadIdx.x - 32] = tile[threadIdx.x - 32];  // AT stored_early
}
// A lane's registers come from the lanes that name rows: these write, all read.
extern "C" __global__ void in_order(unsigned* out) {
    __shared__ uint4 tile[32];
    tile[threadIdx.x] = make_uint4(threadIdx.x, 1, 2, 3);
    __syncwarp();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r) : "r"(in_shared(tile + threadIdx.x)) : "memory");
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 : : "r"(in_shared(tile + threadIdx.x)), "r"(r) : "memory");
    __syncwarp();
    out[threadIdx.x] = reinterpret_cast<unsigned*>(tile)[threadIdx.x];
}
// The rows from `written` on are nobody's; of the second matrix all are written.
extern "C" __global__ void undefined_rows(unsigned* out, int written, int stored) {
    __shared__ uint4 tile[16];
    if (threadIdx.x < written || threadIdx.x >= 8 && threadIdx.x < 16) tile[threadIdx.x] = make_uint4(1, 2, 3, 4);
    __syncwarp();
    unsigned r[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(in_shared(tile + threadIdx.x % 16)) : "memory");
    if (threadIdx.x / 4 < stored) out[threadIdx.x] = r[0];
    out[32 + threadIdx.x] = r[1];
}
// Transposed, a lane's halves come from two rows, of which the odd ones are nobody's, or both.
extern "C" __global__ void undefined_columns(unsigned short* out, int halves, int even) {
    __shared__ uint4 tile[8];
    if (threadIdx.x < 8 && threadIdx.x % 2 == 0 && even) tile[threadIdx.x] = make_uint4(1, 2, 3, 4);
    __syncwarp();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r) : "r"(in_shared(tile + threadIdx.x % 8)) : "memory");
    out[threadIdx.x] = r;
    if (halves > 1) out[32 + threadIdx.x] = r >> 16;
}
// Two warps store the same halves of columns, or others; nothing puts one before the other.
extern "C" __global__ void stored_twice(unsigned other) {
    __shared__ uint4 tile[8];
    unsigned r = threadIdx.x % 32;
    r |= (r << 16) + (threadIdx.x < 32 ? 0 : other);
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 : : "r"(in_shared(tile + threadIdx.x % 8)), "r"(r) : "memory");
}
extern "C" __global__ void undefined_matrix() {
    __shared__ uint4 tile[8];
    unsigned r;
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                 : : "r"(in_shared(tile + threadIdx.x % 8)), "r"(r) : "memory");
}
extern "C" __global__ void opaque(float* out, const __half* in, int waits) {
    __shared__ __half tile[256];
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, row_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    load_matrix_sync(right, in, 16);
    for (int k = threadIdx.x; k < 256; k += blockDim.x) tile[k] = in[k];
    if (waits) __syncthreads();
    if (threadIdx.x < 32) {
        load_matrix_sync(left, tile, 16);
        mma_sync(sum, left, right, sum);
        store_matrix_sync(out, sum, 16, mem_row_major);
    }
}
extern "C" __global__ void pitched(unsigned* out, int pitch) {
    extern __shared__ uint4 rows[];
    for (int k = threadIdx.x; k < 32 * pitch; k += 32) rows[k] = make_uint4(1, 2, 3, 4);
    __syncwarp();
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"  // AT loaded
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(in_shared(rows + threadIdx.x * pitch)) : "memory");
    out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"  // AT stored
                 : : "r"(in_shared(rows + threadIdx.x * pitch)), "r"(r[0]), "r"(r[1]) : "memory");
}
"""


@pytest.fixture(scope="module")
def small():
    with cuda.Device(0):
        return cuda.compile(SMALL, name="small.cu")


def found(device, kernel, shape, *arguments):
    """Give the warnings of one launch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel[shape](*arguments)
        device.synchronize()
    return [str(warning.message) for warning in caught]


def statement(source, number):
    """Return the numbers of the lines of a statement, of which compilers name the first or the last one."""
    lines = ["", *(text.partition("  //")[0] for text in source.splitlines())]
    first = last = number
    while not lines[first - 1].endswith((";", "{", "}", "*/")) and lines[first - 1]:
        first -= 1
    while not lines[last].endswith(";"):
        last += 1
    return range(first, last + 1)


def lines_at(mark):
    """Return the numbers of the lines of a marked statement."""
    number = next(number for number, text in enumerate(SMALL.splitlines(), 1) if text.endswith(f"// AT {mark}"))
    return statement(SMALL, number)


def words(count):
    return cuda.zeros(count, np.uint32)


def product(device, m=75, n=104, k=88, **define):
    """Give the findings of a tiled product."""
    # To write what is there already is no race.
    generator = np.random.default_rng(8)
    a, b = (cuda.to_device(generator.random(shape).astype(np.float16)) for shape in ((m, k), (k, n)))
    kernel = cuda.compile(SOURCE, define=define)["product"]
    out = cuda.zeros((m, n), np.float16)
    return found(device, kernel, ((-(-n // 64), -(-m // 64)), 128), out, a, b, m, n, k)


def test_a_tiled_product_is_no_mistake(device):
    assert product(device) == []


def text_at(report):
    """Return the source of the statement that a report names."""
    source = SOURCE.read_text()
    numbers = statement(source, int(re.search(r"tensor_cores\.cu:(\d+)", report)[1]))
    return "\n".join(source.splitlines()[numbers[0] - 1 : numbers[-1]])


def test_a_barrier_that_is_missing_behind_copies_is_found(device):
    reports = [report for report in product(device, ARRIVED="") if "ldmatrix" in text_at(report)]
    assert len(reports) == 2
    assert all(re.search(r"race: it reads .* of shared memory at .*, which .* wrote", report) for report in reports)


def test_copies_that_are_not_waited_for_are_found(device):
    reports = [report for report in product(device, COPIED="") if "ldmatrix" in text_at(report)]
    assert len(reports) == 2
    assert all(re.search(r"race: it reads .*, to which cp\.async copies for", report) for report in reports)


def test_a_barrier_that_is_missing_before_a_tile_is_used_again_is_found(device):
    [report] = product(device, USED="")
    assert "stmatrix" in text_at(report)
    assert re.search(r"race: it writes .*, which .* read", report)


@pytest.mark.parametrize(("name", "verb"), [("loaded_early", "reads"), ("stored_early", "reads")])
def test_a_race_with_another_warp_is_found(device, small, name, verb):
    [report] = found(device, small[name], (1, 64), words(128))
    found_at = int(re.search(rf"{name} at small\.cu:(\d+): race: it {verb}", report)[1])
    assert found_at in lines_at(name)


@pytest.mark.parametrize(("other", "wrong"), [(0, False), (1 << 16, True), (1 << 5, True)])
def test_to_store_what_is_there_already_is_no_race(device, small, other, wrong):
    reports = found(device, small["stored_twice"], (1, 64), np.uint32(other))
    assert bool(reports) == wrong
    assert all("race: it writes 2 bytes of shared memory" in report for report in reports)


def test_what_a_warp_passes_on_is_no_race(device, small):
    assert found(device, small["in_order"], (1, 32), words(32)) == []


@pytest.mark.parametrize("stored", [5, 6])
def test_only_lanes_that_get_what_nobody_wrote_are_reported(device, small, stored):
    """The lanes with the rows from 5 on get it in the first register, and none in the second."""
    reports = found(device, small["undefined_rows"], (1, 32), words(64), 5, stored)
    assert bool(reports) == (stored > 5)
    assert all("uninitialised value reaches a store: it was read at small.cu:" in report for report in reports)


@pytest.mark.parametrize(("halves", "even", "wrong"), [(1, 1, False), (2, 1, True), (1, 0, True)])
def test_of_two_rows_only_what_nobody_wrote_is_reported(device, small, halves, even, wrong):
    reports = found(device, small["undefined_columns"], (1, 32), cuda.zeros(64, np.uint16), halves, even)
    assert bool(reports) == wrong


def test_a_stored_matrix_that_nobody_wrote_is_reported(device, small):
    [report] = found(device, small["undefined_matrix"], (1, 32))
    assert "uninitialised value reaches a store" in report


@pytest.mark.parametrize("rows", [12, 16])
def test_rows_of_a_product_that_nobody_wrote_are_reported_where_they_are_stored(device, rows):
    reports = found(device, cuda.compile(SOURCE)["unwritten_rows"], (1, 32), cuda.zeros(128, np.float32), rows)
    assert bool(reports) == (rows > 12)
    assert all("uninitialised value reaches a store" in report for report in reports)


@pytest.mark.parametrize("waits", [0, 1])
def test_wmma_is_checked_too(device, small, waits):
    reports = found(device, small["opaque"], (1, 64), cuda.zeros(256, np.float32), cuda.zeros(256, np.float16), waits)
    assert bool(reports) == (not waits)
    assert all("race: it reads" in report for report in reports)


@pytest.mark.parametrize(("pitch", "ways"), [(1, 1), (2, 2), (8, 8), (9, 1)])
def test_eight_rows_are_a_wavefront(device, small, pitch, ways):
    """Rows that are 128 bytes apart, 8 times 16, lie in the same banks."""
    kernel = small["pitched"]
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
