"""Stops that share work out among devices, in one process and in the ranks of MPI."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import counters, several
from library_tour.course import all_reduce
from library_tour.runner import run_stop

RUN = """
import json, sys
import cudart_py as cuda
from library_tour.runner import run_stop
outcome = run_stop({!r}, cuda.Device(0), 301)
rows = [[row.name, dict(row.values), bool(row.check and row.check.holds)] for row in outcome.result.rows]
json.dump([outcome.state, rows, outcome.message, outcome.result.notes], sys.stdout)
"""


@pytest.fixture
def on_devices(python):
    """Run a stop on so many simulated devices, where a race is an error."""

    def run(name: str, count: int) -> list[list]:
        environment = {"CUDART_PY_SIMULATOR_DEVICES": str(count), "CUDART_PY_SIMULATOR_CHECKS": "error"}
        state, rows, message, notes = json.loads(python(RUN.format(name), **environment).stdout)
        assert state == "passed", message
        assert not any("one device. This" in note for note in notes)
        return rows

    return run


@pytest.mark.needs("profile")
@pytest.mark.parametrize("count", [2, 3])
def test_every_device_has_the_sums_without_a_race(on_devices, count):
    *rows, nccl = on_devices("all_reduce", count)
    assert [row[0] for row in rows] == ["through one", "round a ring", "kernels on peers"]
    assert all(values["workers"] == count and right for _, values, right in rows)
    assert nccl[0] == "NCCL"


@pytest.mark.needs("profile")
def test_devices_share_paths_out(on_devices):
    rows = on_devices("monte_carlo_ranks", 3)
    assert [(row[0], row[1]["devices"]) for row in rows] == [
        ("one device", 1),
        *((name, count) for count in (2, 3) for name in ("strong scaling", "weak scaling")),
    ]
    assert all(right for *_, right in rows)


@pytest.mark.skipif(not counters.available(), reason="this driver does not count")
def test_a_quarter_of_the_paths_is_a_quarter_of_the_instructions():
    if len(cuda.devices()) > 1:
        pytest.skip("this machine has several devices")
    rows = run_stop("monte_carlo_ranks", cuda.Device(0), 4096).result.rows
    assert [row.values["efficiency"] for row in rows[1:]] == pytest.approx([1, 1, 1, 1], rel=0.01)


def test_a_missing_nccl_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr(all_reduce, "find_nccl", lambda: None)
    rows = {row.name: row for row in run_stop("all_reduce", cuda.Device(0), 10).result.rows}
    assert "nccl4py" in rows["NCCL"].note


@pytest.mark.parametrize("name", ["through one", "round a ring", "kernels on peers"])
@pytest.mark.parametrize(("workers", "size"), [(1, 10), (2, 3), (5, 40), (7, 9)])
def test_parts_may_be_few_or_empty(device, name, workers, size):
    team = all_reduce.Team([device] * workers, None, size)
    numbers = np.arange(workers * size, dtype=np.float32).reshape(workers, size)
    team.fill(numbers)
    work = all_reduce.ways(team, reachable=True)[name](team)
    work()
    device.synchronize()
    for array in team.arrays:
        np.testing.assert_array_equal(array[:size].to_host(), numbers.sum(axis=0))


class FakeNccl:
    """What all_reduce uses of nccl4py, for workers of one device: the sums come when the group ends."""

    SUM = "sum"

    def __init__(self) -> None:
        self.Communicator = self
        self.asked: list[tuple] = []

    def init_all(self, ordinals):
        return [self for _ in ordinals]

    def allreduce(self, source, target, operation, *, stream):
        assert operation == self.SUM
        self.asked.append((source, target, stream))

    @contextmanager
    def group(self):
        yield
        cuda.current_device().synchronize()
        total = np.sum([source.to_host() for source, _, _ in self.asked], axis=0)
        for _, target, _ in self.asked:
            target.copy_from(total)


def test_nccl_gets_the_arrays_in_place_and_the_workers_streams(device):
    team = all_reduce.Team([device] * 3, None, 10)
    numbers = np.arange(30, dtype=np.float32).reshape(3, 10)
    nccl = FakeNccl()
    work = all_reduce.by_nccl(nccl, all_reduce.join_nccl(team, nccl), team)
    assert all_reduce.checked("NCCL", team, work, numbers).check.holds
    assert [(source is target, stream) for source, target, stream in nccl.asked] == [
        (True, stream) for stream in team.streams
    ]


def test_peer_access_ends_with_the_block():
    devices = list(cuda.devices())
    with several.peer_access(devices) as reachable:
        assert reachable == all(one.can_access_peer(other) for one in devices for other in devices if one is not other)
    assert not any(one.peer_enabled(other) for one in devices for other in devices if one is not other)
