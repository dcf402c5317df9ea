"""Mistakes that the stop on occupancy notices, and the figures that it computes."""

from dataclasses import replace

import pytest

import cudart_py as cuda
from library_tour import answers, lesson
from library_tour.course import occupancy as stop
from library_tour.device_code import load
from tests.tour.outcomes import counted


@pytest.fixture(scope="module")
def module():
    with cuda.Device(0):
        yield load("occupancy", names=stop.KERNELS)


def test_the_exercises_have_the_courses_answers(result):
    exercises = next(iter(result.tables.values()))
    found = {row.name: (row.values["blocks"], row.values["limiter"]) for row in exercises if "capability" in row.values}
    assert found == {
        "8 x 8 threads": (8, "blocks"),
        "16 x 16 threads": (4, "warps"),
        "32 x 32 threads": (0, "threads"),
        "256 threads": (3, "warps"),
        "100 x 48 registers": (5, "registers"),
    }


def test_a_calculation_that_is_too_low_is_noticed(device, module, monkeypatch):
    kernel = module["meet<0>"]
    found = kernel.occupancy((8, 8))
    monkeypatch.setattr(cuda.Kernel, "occupancy", lambda *_: replace(found, blocks=found.blocks - 1))
    _, check = stop.fits(device, kernel, (8, 8))
    assert not check.holds
    assert "not refused" in check.detail


def test_a_driver_that_counts_otherwise_is_noticed(device, module, monkeypatch):
    ask = cuda.raw.cuOccupancyMaxActiveBlocksPerMultiprocessor

    def one_more(kernel, threads, shared):
        status, blocks = ask(kernel, threads, shared)
        return status, blocks + (threads == 96 and shared == 1000)

    monkeypatch.setattr(cuda.raw, "cuOccupancyMaxActiveBlocksPerMultiprocessor", one_more)
    check = stop.every_shape(device, module).check
    assert not check.holds
    assert check.detail.count("with 96 threads and 1000 bytes") == check.detail.count(";") + 1


@counted
def test_a_block_of_100_threads_leaves_lanes_idle(rows):
    for threads, lanes in ((96, 32), (100, 25)):
        assert rows[f"{threads} threads"].values["active lanes"] == pytest.approx(lanes, abs=0.5)


@pytest.mark.parametrize("way", ["ThroughL1", "PastL1"])
def test_a_walk_loads_once_per_step(device, module, way):
    walk = stop.Chain(module, 1 << 14).walk(way)
    assert walk.end == walk.expected
    assert walk.cycles > 0
    assert not walk.counted or walk.counted["loads"] == sum(stop.FEW_STEPS)


def test_littles_law_tells_how_many_warps_a_latency_asks_for(device):
    clock = 1e3 * device.properties.clock_rate
    rates = {"memory": 1e-9 * 16 * clock * device.sm_count}  # 16 bytes per clock cycle and multiprocessor
    for name, cycles, warps in (("registers", 4.0, 16), ("memory", 640.0, 80), ("shared memory", 23.0, 23)):
        asked = stop.asked(device, name, cycles, rates)
        assert asked["warps"] == warps
        assert asked["ns"] == pytest.approx(cycles * 1e9 / clock)


def test_occupancy_never_rises_with_registers_or_shared_memory(device):
    for points in (points for curve in stop.occupancy_curves(device) for points in curve.lines.values()):
        heights = [y for _, y in points]
        assert heights == sorted(heights, reverse=True)


def test_a_case_of_one_resident_block_is_told_in_the_singular():
    facts = [check.fact for check in answers.tried("occupancy/hard", lesson.solution("occupancy/hard"))]
    assert sum(" 1 resident block of 1024 threads" in fact for fact in facts) == 1
