"""Estimated costs: the time that each unit of the card needs, the bound, and the expected gain of advice."""

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling.advice import advise_on
from cudart_py.profiling.card import H200
from cudart_py.profiling.costs import UNITS, assumptions, cost, unit_seconds
from cudart_py.profiling.source_lines import hot_lines, sources_of

CYCLE = 1 / (132 * 1.98e9)  # seconds per cycle of all multiprocessors together
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
SHAPE = {"launch__grid_size": 2, "launch__block_size": 20}
LOADS = {GLOBAL.format("requests", "ld"): 10, "smsp__sass_data_bytes_mem_global_op_ld.sum": 40}
KERNELS = """
template <int W> __global__ void transposed(float* out, const float* in) {
    __shared__ float tile[32][W];
    for (int y = threadIdx.y; y < 32; y += 8) tile[y][threadIdx.x] = in[32 * y + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8) out[32 * y + threadIdx.x] = tile[threadIdx.x][y];
}
template <int W> __global__ void framed(float* out, const float* in) {
    __shared__ float tile[258 / W + 2][W + 2];
    int x = threadIdx.x % W + 1, y = threadIdx.x / W + 1;
    tile[y][x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];
}
template <int S> __global__ void scattered(float* out, const float* in) {
    out[threadIdx.x] = in[S * threadIdx.x];
}
template <int M> __global__ void halves(float* out, const float* in) {
    if (threadIdx.x % M < M / 2)
        for (int k = 0; k < 100; k++) out[threadIdx.x] = out[threadIdx.x] * 2.0f + in[threadIdx.x];
}
"""


@pytest.mark.needs("profile")
def test_the_card_is_the_one_that_the_simulator_presents(device):
    assert (device.sm_count, 1e3 * device.properties.clock_rate) == (H200.multiprocessors, H200.hertz)


@pytest.mark.parametrize(
    ("unit", "metrics", "seconds"),
    [
        ("issue slots", {"smsp__inst_issued.sum": 8000}, 2000 * CYCLE),
        ("special functions", {"smsp__inst_executed_pipe_xu.sum": 100}, 200 * CYCLE),
        (
            "wavefronts",
            {
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 500,
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum": 30,
                GLOBAL.format("requests", "ld"): 7,
            },
            537 * CYCLE,
        ),
        ("L2 sectors", {GLOBAL.format("sectors", "ld"): 300, GLOBAL.format("sectors", "red"): 20}, 160 * CYCLE),
        (
            "device memory",
            {"smsp__sass_data_bytes_mem_global_op_ld.sum": 4278, GLOBAL.format("sectors", "st"): 4278},
            33e-9,
        ),
        ("fp32 arithmetic", {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 652}, 2e-11),
        ("fp64 arithmetic", {"smsp__inst_executed_pipe_fp64.sum": 100}, 50 * CYCLE),
        ("global atomics", {"lts__d_atomic_input_cycles_active.sum": 198}, 350e-9),
        ("indexed constants", {"idc__requests.sum": 10}, 176 * CYCLE),
        ("block launches", {**SHAPE, "launch__grid_size": 84}, 100 / 1.98e9),
        ("launch overhead", SHAPE, 1.1e-6),
        # Two warps at a time, of which each load waits for device memory, or reads an eighth of a sector.
        ("latency", {**SHAPE, "model__waits_long_scoreboard.sum": 6}, 3 * 662 / 1.98e9),
        ("latency", {**SHAPE, **LOADS, "model__waits_long_scoreboard.sum": 6}, 3 * (32.2 + (662 - 32.2) / 8) / 1.98e9),
        ("latency", {**SHAPE, "model__waits_fixed_latency.sum": 20}, 10 * 4.3 / 1.98e9),
        ("latency", {**SHAPE, "model__waits_short_scoreboard.sum": 2}, 23.1 / 1.98e9),
    ],
)
def test_each_unit_needs_the_time_of_the_counted_work_at_its_rate(unit, metrics, seconds):
    assert unit_seconds(metrics)[unit] == pytest.approx(seconds)


def test_the_slowest_unit_is_the_bound_and_units_overlap_in_part():
    found = cost({"smsp__inst_issued.sum": 4 * 400, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 300})
    assert found.bound == "issue slots"
    assert found.seconds == pytest.approx(500 * CYCLE)
    assert cost({}) == (0, "")
    assert [text.partition(":")[0] for text in assumptions({"issue slots"})[1:]] == ["issue slots"]
    assert len(assumptions()) == 1 + len(UNITS)


@pytest.mark.parametrize(
    ("grid", "block", "warps"),
    [(1, 1, 1), (1, 33, 2), (5, 256, 40), (10**6, 256, 132 * 64), (10**6, 32, 132 * 32), (10**6, 768, 132 * 48)],
)
def test_latency_is_divided_by_the_warps_that_are_resident(grid, block, warps):
    # The limits of compute capability 9.0: 64 warps and 32 blocks per multiprocessor.
    metrics = {"launch__grid_size": grid, "launch__block_size": block, "model__waits_fixed_latency.sum": 1e9}
    assert unit_seconds(metrics)["latency"] == pytest.approx(1e9 * 4.3 / warps / 1.98e9)


def test_multiprocessors_without_a_block_do_no_work():
    work = {"smsp__inst_issued.sum": 8000}
    one, all_of_them = (unit_seconds({**work, **SHAPE, "launch__grid_size": blocks}) for blocks in (1, 500))
    assert one["issue slots"] == pytest.approx(132 * all_of_them["issue slots"])


def counted(launch):
    """Return the lines of a launch, the heaviest first."""
    out, data = cuda.zeros(1024, np.float32), cuda.zeros(32 * 256, np.float32)
    with cuda.sanitizer("off"), cuda.profile() as profile:
        launch(out, data)
    return hot_lines(sources_of(profile.launches))


def seconds(lines):
    return sum(cost(line.metrics).seconds for line in lines)


@pytest.mark.needs("profile")
@pytest.mark.parametrize(
    ("name", "bad", "good", "block", "rule"),
    [
        ("transposed", 32, 33, (32, 8), "wavefronts without bank conflicts"),
        ("framed", 16, 32, 256, "wavefronts without bank conflicts"),
        ("scattered", 32, 1, 256, "loads of more than 1 sector"),
        ("halves", 32, 512, 512, "active lanes"),
    ],
)
def test_the_expected_gain_of_a_remedy_is_that_of_the_improved_kernel(device, name, bad, good, block, rule):
    names = [f"{name}<{variant}>" for variant in (bad, good)]
    module = cuda.compile(KERNELS, names=names)
    before, after = (counted(module[variant][1, block]) for variant in names)
    found = [advice for advice in advise_on(before) if rule in advice.rule]
    gain = sum(advice.gain for advice in found)
    assert found
    assert gain == pytest.approx(1 - seconds(after) / seconds(before), abs=0.08)
    assert all(f"Estimated gain: up to {100 * one.gain:.0f} %" in one.sentence for one in found if one.gain >= 0.01)
    assert not [advice for advice in advise_on(after) if rule in advice.rule]
