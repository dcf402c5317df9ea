"""Add arrays from several devices so that each has the sums: through one device, in a ring, with kernels, MPI and NCCL.

On the simulator, which checks results and counts operations but does not measure time, with one device:

    $ library-tour run all_reduce
    all_reduce: Sums over devices: copies, kernels, MPI, NCCL
    size 16,384: elements per device
                      workers  arrays sent  check
    ─────────────────────────────────────────────
    through one             4            3  right
    round a ring            4         1.50  right
    kernels on peers        4         1.50  right
    NCCL
    NCCL: Skipped: NCCL needs one GPU per worker, and nccl4py (pip install
    'nccl4py[cu13]')
    In the first version, one device adds the arrays that all the others send, and
    sends the sums back. Its links carry N - 1 arrays each way. In a ring, each
    device sends one part of its array to the next device, which adds its own
    elements and passes the sums on. After N - 1 steps, each device has the complete
    sums for one part, and the sums are then passed around the ring. No device sends
    more than 2 (N - 1) / N arrays, which is the minimum. Kernels on peers move the
    same number of bytes with one launch per device, and every kernel adds in the
    same order.
    For every version, the GB/s figure is what NCCL's tests call the bus bandwidth:
    the minimum number of bytes divided by the time. In the graph version, NCCL's
    work in all streams is captured once, and a single launch replaces the host
    calls.
    All 4 workers are on one device. This process has one device. For several
    devices, use a machine with several GPUs, `CUDART_PY_SIMULATOR_DEVICES=4` on the
    simulator, or several processes: `mpiexec -n 4 library-tour run all_reduce`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import ranks, timing
from ..checks import compare
from ..counters import counted
from ..device_code import blocks_for, load
from ..ranks import Ranks
from ..several import mean_ms, on_one_device, peer_access, places_from, right_everywhere, wait_for
from ..stop import Curve, Limit, Result, Row, Size, Value

TITLE = "Sums over devices: copies, kernels, MPI, NCCL"
SIZE = Size("elements per device", full=2**28, small=2**14, least=1)
CHECKED = 2**14
BLOCK, MOST_BLOCKS = 256, 1024
GROUP = 4  # elements that a thread adds at a time
INSTALL_NCCL = "Skipped: NCCL needs one GPU per worker, and nccl4py (pip install 'nccl4py[cu13]')"
NOTES = (
    "In the first version, one device adds the arrays that all the others send, and sends the sums back. Its links "
    "carry N - 1 arrays each way. In a ring, each device sends one part of its array to the next device, which adds "
    "its own elements and passes the sums on. After N - 1 steps, each device has the complete sums for one part, and "
    "the sums are then passed around the ring. No device sends more than 2 (N - 1) / N arrays, which is the minimum. "
    "Kernels on peers move the same number of bytes with one launch per device, and every kernel adds in the same "
    "order.",
    "For every version, the GB/s figure is what NCCL's tests call the bus bandwidth: the minimum number of bytes "
    "divided by the time. In the graph version, NCCL's work in all streams is captured once, and a single launch "
    "replaces the host calls.",
)

Floats = NDArray[np.float32]
Work = Callable[[], object]
Way = Callable[["Team"], Work]

# The number of arrays that the busiest device sends, given the number of workers, if all are in one process.
ARRAYS_SENT: dict[str, Callable[[int], float]] = {
    "through one": lambda count: count - 1,
    "round a ring": lambda count: 2 * (count - 1) / count,
    "kernels on peers": lambda count: 2 * (count - 1) / count,
}


class Team:
    """The workers of this process, each with an array, space for another one, and a stream."""

    def __init__(self, places: Sequence[cuda.Device], together: Ranks | None, size: int) -> None:
        self.places, self.ranks, self.size = places, together, size
        self.devices = list(dict.fromkeys(places))
        self.count = together.count if together else len(places)
        self.first = together.rank if together else 0
        # There are as many parts as workers, and each consists of whole groups of elements.
        self.groups = blocks_for(size, GROUP)
        self.ends = [self.groups * number // self.count for number in range(self.count + 1)]
        self.arrays, self.room, self.streams, self.modules = [], [], [], []
        for place in places:
            with place:
                self.arrays.append(cuda.zeros(GROUP * self.groups, np.float32))
                self.room.append(cuda.zeros(GROUP * self.groups, np.float32))
                self.streams.append(cuda.Stream(non_blocking=True))
                self.modules.append(load("all_reduce"))
        wait_for(self.devices)

    def fill(self, numbers: Floats) -> None:
        """Give each worker its row of `numbers`."""
        for place, array, row in zip(self.places, self.arrays, numbers[self.first :], strict=False):
            with place:
                array[: self.size].copy_from(row)
        wait_for(self.devices)

    def part(self, array: cuda.DeviceArray, number: int) -> cuda.DeviceArray:
        """Return one part of an array, which has as many parts as there are workers."""
        begin, end = self.ends[number % self.count : number % self.count + 2]
        return array[GROUP * begin : GROUP * end]

    def add(self, worker: int, source: cuda.DeviceArray, target: cuda.DeviceArray) -> None:
        """Queue a kernel that adds one of a worker's arrays to another."""
        groups = target.size // GROUP
        if groups:
            with self.places[worker]:
                grid = min(MOST_BLOCKS, blocks_for(groups, BLOCK))
                self.modules[worker]["add_into"][grid, BLOCK, 0, self.streams[worker]](source, target, groups)

    def meet(self) -> None:
        """Make each worker's stream wait for all work that the others have queued so far."""
        events = [stream.record() for stream in self.streams]
        for stream in self.streams:
            for event in events:
                stream.wait(event)


def through_one(team: Team) -> None:
    """Queue the copies of all arrays to the first worker, its additions, and the copies of the sums."""
    team.meet()
    first, stream = team.arrays[0], team.streams[0]
    for array in team.arrays[1:]:
        cuda.memcpy_peer(team.room[0], array, stream=stream)
        team.add(0, team.room[0], first)
    for array in team.arrays[1:]:
        cuda.memcpy_peer(array, first, stream=stream)
    team.meet()


def ring(team: Team) -> None:
    """Queue two rounds: in the first, each worker adds the parts that arrive, and in the second, it keeps them."""
    count = team.count
    for step in range(count - 1):
        team.meet()
        for worker in range(count):
            target, source = team.room[(worker + 1) % count], team.arrays[worker]
            part = worker - step
            cuda.memcpy_peer(team.part(target, part), team.part(source, part), stream=team.streams[worker])
        team.meet()
        for worker in range(count):
            part = worker - 1 - step
            team.add(worker, team.part(team.room[worker], part), team.part(team.arrays[worker], part))
    for step in range(count - 1):
        team.meet()
        for worker in range(count):
            target, source = team.arrays[(worker + 1) % count], team.arrays[worker]
            part = worker + 1 - step
            cuda.memcpy_peer(team.part(target, part), team.part(source, part), stream=team.streams[worker])
    team.meet()


def on_peers(team: Team) -> Work:
    """Return a function that queues one kernel per device; each adds up one part and writes the sums to every array."""
    launches = []
    for worker, (place, stream) in enumerate(zip(team.places, team.streams, strict=True)):
        begin, end = team.ends[worker : worker + 2]
        if end > begin:
            with place:
                addresses = cuda.to_device(np.array([int(array.pointer) for array in team.arrays], np.uint64))
                place.synchronize()
                grid = min(MOST_BLOCKS, blocks_for(end - begin, BLOCK))
                kernel = team.modules[worker]["reduce_peers"][grid, BLOCK, 0, stream]
                launches.append((place, kernel.bind(addresses, team.count, begin, end - begin)))

    def work() -> None:
        team.meet()
        for place, launch in launches:
            with place:
                launch()
        team.meet()

    return work


def by_mpi(together: Ranks, team: Team) -> Work:
    """Return a function that copies the array to the host, lets MPI add, and copies the sums back."""
    from mpi4py import MPI  # installed, because there are ranks

    [array], [stream] = team.arrays, team.streams
    staged = cuda.pinned_empty(array.shape, array.dtype)

    def work() -> None:
        cuda.memcpy(staged, array, stream=stream)
        stream.synchronize()
        together.comm.Allreduce(MPI.IN_PLACE, staged)
        cuda.memcpy(array, staged, stream=stream)
        stream.synchronize()

    return work


def by_mpi_on_device(together: Ranks, team: Team) -> Work:
    """Return a function that lets MPI add the arrays in device memory."""
    from mpi4py import MPI  # installed, because there are ranks

    def work() -> None:
        team.streams[0].synchronize()
        together.comm.Allreduce(MPI.IN_PLACE, team.arrays[0])

    return work


@contextmanager
def joined_nccl(team: Team) -> Iterator[Way | None]:
    """Yield the version with NCCL, or None if NCCL is not usable; destroy its communicators at the end of the block.

    No graph may exist by then, because a communicator is destroyed only after all graphs that captured its work. After
    an exception, whose traceback keeps graphs alive, that would take forever. The communicators then end with the
    process.
    """
    nccl = usable_nccl(team)
    if nccl is None:
        yield None
        return
    members = join_nccl(team, nccl)
    yield partial(by_nccl, nccl, members)
    for member in members:
        member.destroy()


def join_nccl(team: Team, nccl: ModuleType) -> list[Any]:
    """Return the NCCL communicators of the workers of this process."""
    if not team.ranks:
        members: list[Any] = nccl.Communicator.init_all([place.ordinal for place in team.places])
        return members
    identifier = bytes(nccl.get_unique_id()) if team.ranks.rank == 0 else None
    identifier = team.ranks.comm.bcast(identifier)
    with team.places[0]:
        of_all = nccl.UniqueId.from_bytes(identifier)
        return [nccl.Communicator.init(team.count, team.ranks.rank, of_all)]


def by_nccl(nccl: ModuleType, members: Sequence[Any], team: Team) -> Work:
    """Return a function that lets NCCL add the arrays, in the streams of the workers."""

    def work() -> None:
        with nccl.group():
            for member, array, stream in zip(members, team.arrays, team.streams, strict=True):
                member.allreduce(array, array, nccl.SUM, stream=stream)

    return work


def as_graph(team: Team, work: Work) -> Work:
    """Return a function that launches the work of all streams as one graph; the first stream waits for the others.

    The work runs once before the capture, because NCCL sets up its connections outside of any stream.
    """
    first, *others = team.streams
    work()
    wait_for(team.devices)
    with first.capture() as graph:
        for stream in others:
            stream.wait(first)
        work()
        for stream in others:
            first.wait(stream)
    executable = graph.instantiate()

    return partial(launch_graph, executable, first, team, work)


def launch_graph(graph: cuda.graphs.ExecutableGraph, stream: cuda.Stream, *_kept: object) -> None:
    """Launch a graph. The other arguments keep alive the objects that it does not own: communicators and arrays."""
    graph.launch(stream)


def find_nccl() -> ModuleType | None:
    """Return nccl4py if it and NCCL are installed and the driver's addresses belong to a GPU."""
    if "interop" not in cuda.capabilities():
        return None
    try:
        importlib.import_module("nccl.bindings.nccl").get_version()
        return importlib.import_module("nccl.core")
    except (ImportError, RuntimeError):  # the latter if NCCL's library is not found
        return None


def usable_nccl(team: Team) -> ModuleType | None:
    """Return nccl4py if each worker has its own GPU and all ranks have found it. All ranks must call this."""
    nccl = find_nccl()
    if team.ranks is None:
        return nccl if len(team.devices) == team.count else None
    everywhere = all(team.ranks.comm.allgather(nccl is not None))
    return nccl if everywhere and not team.ranks.shared_device(team.places[0]) else None


def run(device: cuda.Device, size: int) -> Result:
    """Check the sums of every version on every worker; time large arrays; draw the bandwidth against the bytes."""
    together = ranks.world()
    places = places_from(device, together)
    every = list(dict.fromkeys(places))
    limit, pictures = None, []
    few = Team(places, together, min(size, CHECKED))
    random = np.random.default_rng(1)
    numbers = random.integers(-1000, 1000, (few.count, few.size)).astype(np.float32)
    with peer_access(every) as reachable, joined_nccl(few) as by_all:
        makers = ways(few, by_all, reachable=reachable)
        rows = [checked(name, few, make(few), numbers) for name, make in makers.items()]
        if timing.available():
            limit = link_limit(every, size)
            team = partial(Team, places, together)
            right = right_everywhere(rows, together)
            rows = [timed(row, team(size), makers[row.name], limit) if row.name in right else row for row in rows]
            pictures = [bandwidths(team, size, {name: makers[name] for name in makers if name in right}, limit)]
    if not any(row.name == "NCCL" for row in rows):
        rows.append(Row("NCCL", note=INSTALL_NCCL))
    notes = [*NOTES, *on_one_device(places, together, "all_reduce", "workers")]
    return Result(rows, limit, pictures=pictures, notes=notes)


def ways(team: Team, by_all: Way | None, *, reachable: bool) -> dict[str, Way]:
    """Return the versions that this process or its ranks can run, by name; `by_all` is the NCCL version, if any."""
    found: dict[str, Way]
    if team.ranks:
        found = {"MPI, through the host": partial(by_mpi, team.ranks)}
        if team.ranks.takes_device_memory():
            found["MPI, device memory"] = partial(by_mpi_on_device, team.ranks)
    else:
        found = {
            "through one": lambda team: partial(through_one, team),
            "round a ring": lambda team: partial(ring, team),
        }
        if reachable:
            found["kernels on peers"] = on_peers
    if by_all:
        found["NCCL"] = by_all
        found["NCCL, as a graph"] = lambda team: as_graph(team, by_all(team))
    return found


def checked(name: str, team: Team, work: Work, numbers: Floats) -> Row:
    """Return a row whose check holds if every worker of this process has the sums of all arrays."""
    team.fill(numbers)
    metrics = counted(work)
    wait_for(team.devices)
    expected = np.tile(numbers.sum(axis=0), (len(team.arrays), 1))
    got = []
    for place, array in zip(team.places, team.arrays, strict=True):
        with place:
            got.append(array[: team.size].to_host())
    values: dict[str, Value] = {"workers": team.count}
    moved: dict[str, float] = {}
    if name in ARRAYS_SENT:
        values["arrays sent"] = ARRAYS_SENT[name](team.count)
        if not timing.available():
            moved["bytes sent by the busiest worker"] = int(4 * team.size * ARRAYS_SENT[name](team.count))
    check = compare(f"{name}: every worker has the sums", np.array(got), expected)
    return Row(name, values, check, metrics=metrics, work=moved)


def least_bytes(team: Team) -> float:
    """Return the least number of bytes that each worker must send."""
    return 2 * (team.count - 1) / team.count * 4 * team.size


def timed(row: Row, team: Team, way: Way, limit: Limit | None) -> Row:
    """Add the time of large arrays."""
    ms = mean_ms(way(team), team.devices, team.ranks)
    return replace(row, values={**timing.rates(ms, least_bytes(team), limit), **row.values})


def link_limit(devices: Sequence[cuda.Device], size: int) -> Limit | None:
    """Return the one-way bandwidth of a copy between the first two devices, or None if there is only one."""
    if len(devices) < 2:
        return None
    pair = Team(devices[:2], None, size)
    copy = partial(cuda.memcpy_peer, pair.arrays[1], pair.arrays[0], stream=pair.streams[0])
    return Limit("the link between two devices, one way", rate=1e-6 * 4 * size / mean_ms(copy, pair.devices))


def bandwidths(team: Callable[[int], Team], size: int, makers: Mapping[str, Way], limit: Limit | None) -> Curve:
    """Measure the bandwidth of every version against the bytes per worker."""
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
    for some in [*(4**power for power in range(4, 14) if 4**power < size), size]:
        workers = team(some)
        for name, make in makers.items():
            ms = mean_ms(make(workers), workers.devices, workers.ranks)
            lines[name].append((4 * some, 1e-6 * least_bytes(workers) / ms))
    return Curve("bandwidth", "bytes", "GB/s", lines, logarithmic="x", line=limit)
