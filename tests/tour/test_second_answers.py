"""The check of an exercise accepts a right answer that differs from the solution."""

import pytest

from library_tour import answers
from tests.tour.outcomes import changed_solution

# By exercise: parts of the solution, and code that another reader might write instead.
OTHERWISE = {
    # The stores are in order, and the loads in reverse order.
    "coalescing": {
        "for (int k = 0; k < EACH; k++) {\n        int i = first + k * blockDim.x;": (
            "for (int k = 0, i = first; k < EACH; k++, i += blockDim.x) {"
        ),
        "out[n - 1 - i] = in[i]": "out[i] = in[n - 1 - i]",
    },
    # The tile is transposed when it is written, not when it is read.
    "transpose": {
        "tile[y][threadIdx.x] =": "tile[threadIdx.x][y] =",
        "= tile[threadIdx.x][x]": "= tile[x][threadIdx.x]",
    },
    # An exclusive or instead of a rotation.
    "bank_conflicts": {"(lane + k) % SIDE": "lane ^ k"},
    # A butterfly reduction by shuffles; one thread adds up the warps' sums.
    "reduction": {
        "__shfl_down_sync": "__shfl_xor_sync",
        "warp == 0": "threadIdx.x == 0",
        """sum = lane < WARPS ? warp_sums[lane] : 0.0f;
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (lane == 0)
            atomicAdd(total, sum);""": """sum = 0.0f;
        for (float each : warp_sums)
            sum += each;
        atomicAdd(total, sum);""",
    },
    # A two-dimensional array of counters, one row per warp.
    "histogram": {
        "mine[SIDES];": "mine[32][SIDES];\n    int warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;",
        "    if (threadIdx.x < SIDES)\n        mine[threadIdx.x] = 0;": (
            "    for (int k = threadIdx.x; k < warps * SIDES; k += blockDim.x)\n        mine[k / SIDES][k % SIDES] = 0;"
        ),
        "&mine[throws[i]]": "&mine[warp][throws[i]]",
        "    if (threadIdx.x < SIDES)\n        atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);": (
            "    unsigned sum = 0;\n    for (int k = 0; k < warps && threadIdx.x < SIDES; k++)\n"
            "        sum += mine[k][threadIdx.x];\n    if (threadIdx.x < SIDES)\n"
            "        atomicAdd(counts + threadIdx.x, sum);"
        ),
    },
    # Breadth-first order.
    "streams": {
        "    for number, start in enumerate(range(0, source.size, length)):\n        stream, piece =": (
            "    work = []\n    for number, start in enumerate(range(0, source.size, length)):\n        stream, piece ="
        ),
        "        kernel[blocks": (
            "        work.append((stream, piece, part))\n    for stream, _, part in work:\n        kernel[blocks"
        ),
        "        cuda.memcpy(target": "    for stream, piece, part in work:\n        cuda.memcpy(target",
    },
    # A loop instead of a division.
    "occupancy": {
        "return math.ceil(latency * bytes_per_cycle / (4 * resident))": (
            "loads = 1\n    while 4 * loads * resident < latency * bytes_per_cycle:\n        loads += 1\n"
            "    return loads"
        )
    },
    # The last tile is padded with points far away.
    "matmul": {
        "if (index < m)\n            tile[threadIdx.x] = places[index];": (
            "tile[threadIdx.x] = index < m ? places[index] : make_float2(1e15f, 1e15f);"
        ),
        "int count = min(THREADS, m - start);\n        for (int j = 0; j < count; j++) {": (
            "for (float2 place : tile) {"
        ),
        "tile[j]": "place",
    },
    # From the bottom to the top.
    "heat": {
        "float above = in[max(top - 1, 0)": (
            "int last = min(top + HEIGHT, rows) - 1;\n    float below = in[min(last + 1, rows - 1)"
        ),
        "float cell = in[top *": "float cell = in[last *",
        "int row = top; row < min(top + HEIGHT, rows); row++": "int row = last; row >= top; row--",
        "float below = in[min(row + 1, rows - 1)": "float above = in[max(row - 1, 0)",
        "above = cell;\n        cell = below;": "below = cell;\n        cell = above;",
    },
    # Shuffles instead of the warp reduction, and a sum of comparisons instead of an if.
    "monte_carlo": {
        "if (x * x + y * y < 1ull << 48)\n            inside++;": "inside += x * x + y * y < 1ull << 48;",
        "inside = __reduce_add_sync(0xffffffff, inside);": (
            "for (int step = 1; step < 32; step *= 2)\n        inside += __shfl_xor_sync(~0u, inside, step);"
        ),
    },
    # Neumaier's summation, which adds the lost parts at the end.
    "precision/easy": {
        "excess = 0.0f": "lost = 0.0f",
        " - excess;": ";",
        "excess = (next - total) - term;": "lost += total >= term ? (total - next) + term : (term - next) + total;",
        "= total;\n}": "= total + lost;\n}",
    },
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_right_answer_that_is_written_in_another_way_is_right(name, tmp_path):
    [checks] = answers.check_answers(name, [changed_solution(name, OTHERWISE[name], tmp_path)])
    assert checks
    assert [check for check in checks if not check.holds] == []
