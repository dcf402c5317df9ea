"""Stops that distribute work over devices, in one process and in MPI ranks."""

import re
import sys
import weakref
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import several, stops
from library_tour.course import all_reduce
from library_tour.runner import run_stop
from tests.tour.outcomes import counted, on_devices, outcome

# Few passes of `map`, whose pieces on two devices are the same with any number of passes.
SEVERAL = """
from library_tour.course import map
map.PASSES, map.CHECKED_PASSES = 16, 8
json.dump({{name: found(name, 61) for name in {names}}}, sys.stdout)
"""


@pytest.mark.needs("profile", "libraries")
@pytest.mark.parametrize("count", [3, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_several_devices_have_the_result_of_one_without_a_race(count):
    names = ["map", "managed", *stops.SEVERAL_DEVICES]
    found = on_devices(count, SEVERAL.format(names=names), CUDART_PY_SANITIZER="error")
    for name in names:
        assert found[name]["state"] == "passed", found[name]
        assert not any("one device. This" in note for note in found[name]["notes"]), name

    def values(name: str, column: str) -> dict[str, object]:
        rows = found[name]["rows"].items()
        return {row: known["values"][column] for row, known in rows if known["holds"] and column in known["values"]}

    assert values("halo", "strips") == {"one strip": 1, "sequential": count, "overlapped": count}
    ways = ("through one", "round a ring", "kernels on peers")
    assert values("all_reduce", "workers") == dict.fromkeys(ways, count)
    assert list(found["all_reduce"]["rows"]) == [*ways, "NCCL"]
    assert "nccl4py" in found["all_reduce"]["rows"]["NCCL"]["note"]
    assert values("distributed_gemm", "workers")["SUMMA"] == count
    product = found["distributed_gemm"]["rows"]
    assert {name for name, row in product.items() if row["holds"]} == {"one device", "SUMMA", "redistributed"}
    devices = values("monte_carlo_ranks", "devices")
    assert [devices[name] for name in ("one device", "strong scaling", "weak scaling")] == [1, count, count]
    assert found["managed"]["rows"]["two devices, one array"]["holds"]
    assert found["map"]["rows"]["in pieces, two GPUs"]["holds"]


@counted
@pytest.mark.skipif(len(cuda.devices()) > 1, reason="this machine has several devices")
@pytest.mark.xdist_group("monte_carlo_ranks")
def test_a_quarter_of_the_paths_is_a_quarter_of_the_instructions():
    rows = outcome("monte_carlo_ranks").result.rows
    assert [row.values["efficiency"] for row in rows[1:]] == pytest.approx([1, 1, 1, 1], rel=0.01)


@pytest.mark.parametrize("way", ["through one", "round a ring", "kernels on peers"])
@pytest.mark.parametrize(("workers", "size"), [(1, 10), (2, 3), (7, 9)])
def test_parts_may_be_few_or_empty(device, way, workers, size):
    team = all_reduce.Team([device] * workers, None, size)
    numbers = np.arange(workers * size, dtype=np.float32).reshape(workers, size)
    team.fill(numbers)
    work = all_reduce.ways(team, None, reachable=True)[way](team)
    work()
    device.synchronize()
    for array in team.arrays:
        np.testing.assert_array_equal(array[:size].to_host(), numbers.sum(axis=0))


class FakeNccl:
    """A replacement for the part of nccl4py that all_reduce uses, for workers on one device.

    Like NCCL, it adds in the workers' streams with the kernels of `team`, so its work can be captured.
    """

    SUM = "sum"

    def __init__(self, team: all_reduce.Team) -> None:
        self.team, self.Communicator = team, self
        self.asked: list[tuple] = []

    def init_all(self, ordinals):
        return [self for _ in ordinals]

    def allreduce(self, source, target, operation, *, stream):
        assert operation == self.SUM
        assert source is target
        self.asked.append((target, stream))

    @contextmanager
    def group(self):
        self.asked.clear()
        yield
        [(total, stream), *others] = self.asked
        for worker, (array, other) in enumerate(others, 1):
            room = self.team.room[worker][: array.size]
            cuda.memcpy(room, array, stream=other)
            stream.wait(other)
            self.team.modules[0]["add_into"][1, 32, 0, stream](room, total, total.size // all_reduce.GROUP)
        for array, other in others:
            cuda.memcpy(array, total, stream=stream)
            other.wait(stream)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_streams_of_all_workers_become_one_graph(device, workers):
    team = all_reduce.Team([device] * workers, None, 10)
    nccl = FakeNccl(team)
    by_nccl = all_reduce.by_nccl(nccl, all_reduce.join_nccl(team, nccl), team)
    work = all_reduce.as_graph(team, by_nccl)
    assert [stream for _, stream in nccl.asked] == team.streams
    nccl.asked = []
    for round in (1, 2):  # the graph reads the arrays when it is launched
        numbers = round * np.arange(10 * workers, dtype=np.float32).reshape(workers, 10)
        assert all_reduce.checked("NCCL", team, work, numbers).check.holds
    assert nccl.asked == []


def test_communicators_are_destroyed_when_all_graphs_of_their_work_have_ended(any_clock, monkeypatch):
    """Destroying an NCCL communicator waits until all graphs with its work are gone, which could be forever."""
    alive: weakref.WeakSet[cuda.graphs.ExecutableGraph] = weakref.WeakSet()
    instantiate, destroyed = cuda.graphs.Graph.instantiate, []

    def kept(graph: cuda.graphs.Graph) -> cuda.graphs.ExecutableGraph:
        executable = instantiate(graph)
        alive.add(executable)
        return executable

    class Destroyed(FakeNccl):
        def destroy(self) -> None:
            destroyed.append(len(alive))

    monkeypatch.setattr(cuda.graphs.Graph, "instantiate", kept)
    monkeypatch.setattr(all_reduce, "places_from", lambda device, together: [device] * 3)
    monkeypatch.setattr(all_reduce, "usable_nccl", Destroyed)
    outcome = run_stop("all_reduce", cuda.Device(0), 300)
    assert outcome.state == "passed", outcome.traceback
    assert [row.name for row in outcome.result.rows if "ms" in row.values][-1] == "NCCL, as a graph"
    assert destroyed == [0, 0, 0]


def test_communicators_are_left_to_the_process_after_an_exception(monkeypatch, device):
    """A traceback keeps alive the graphs that destroying a communicator would wait for."""
    team = all_reduce.Team([device] * 2, None, 10)
    monkeypatch.setattr(all_reduce, "usable_nccl", FakeNccl)  # it has no destroy
    with pytest.raises(RuntimeError, match="wheels"), all_reduce.joined_nccl(team):
        raise RuntimeError("the wheels came off")


def test_nccl_is_used_where_all_ranks_have_it_and_a_gpu_each_and_not_by_workers_of_one_device(device, monkeypatch):
    nccl = ModuleType("nccl.core")
    monkeypatch.setattr(all_reduce, "find_nccl", lambda: nccl)
    for others, shared, usable in ((True, "", True), (False, "", False), (True, "two", False)):
        comm = SimpleNamespace(allgather=lambda own, others=others: [own, others])
        ranks = SimpleNamespace(comm=comm, rank=0, count=2, shared_device=lambda device, shared=shared: shared)
        assert (all_reduce.usable_nccl(all_reduce.Team([device], ranks, 10)) is nccl) == usable
    assert all_reduce.usable_nccl(all_reduce.Team([device] * 2, None, 10)) is None


def test_a_nccl_without_its_library_is_missing(monkeypatch):
    def fail() -> None:
        raise RuntimeError("libnccl.so.2 was not found")

    found = {"nccl.bindings.nccl": SimpleNamespace(get_version=fail), "nccl.core": ModuleType("nccl.core")}
    monkeypatch.setattr(cuda, "capabilities", lambda: frozenset({"interop"}))
    monkeypatch.setattr(all_reduce.importlib, "import_module", lambda name: found[name])
    assert all_reduce.find_nccl() is None
    found["nccl.bindings.nccl"].get_version = lambda: 23004
    assert all_reduce.find_nccl() is found["nccl.core"]


def test_the_guides_sums_by_nccl_run(device, monkeypatch):
    team = all_reduce.Team([device] * 2, None, 8)
    nccl = FakeNccl(team)
    package, core = ModuleType("nccl"), ModuleType("nccl.core")
    for name in ("Communicator", "SUM", "group"):
        setattr(core, name, getattr(nccl, name))
    package.core = core
    monkeypatch.setitem(sys.modules, "nccl", package)
    monkeypatch.setitem(sys.modules, "nccl.core", core)
    page = Path(__file__).parents[2] / "docs" / "many-devices.md"
    [block] = [text for text in re.findall(r"```py\n(.*?)```", page.read_text(), re.DOTALL) if "init_all" in text]
    team.fill(np.ones((2, 8), np.float32))
    exec(block, {"devices": [device] * 2, "arrays": team.arrays, "streams": team.streams})
    device.synchronize()
    for array in team.arrays:
        # Two in-place sums over both workers, the first by direct calls and the second by the graph.
        assert (array.to_host() == 4).all()


def test_peer_access_ends_with_the_block():
    devices = list(cuda.devices())
    with several.peer_access(devices) as reachable:
        assert reachable == all(one.can_access_peer(other) for one in devices for other in devices if one is not other)
    assert not any(one.peer_enabled(other) for one in devices for other in devices if one is not other)
