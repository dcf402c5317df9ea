"""The best variant of every stop, compared with the stop's limit and with other libraries that do the same work.

A stop runs until it measures this variant, which is then checked and timed here. The arrays are smaller than in the
tour, but larger than the L2 cache. Where nothing is timed, these tests are exhaustive (`conftest.py` marks them).
"""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver.calls import raw
from library_tour import stops, timing, variants
from library_tour.course import cooling, events, vector_add
from library_tour.stop import Limit, Row
from tests.benchmarks.peers import course
from tests.tour.outcomes import SMALL, loaded_once

Size = Callable[[int, int], int]


class Best(NamedTuple):
    """The variant, the size with which it is timed, and the stop's rows that are other libraries' work.

    The stop's own other variants are not peers, because a change that slows both would leave their ratio unchanged.
    """

    variant: str
    size: int
    beside: tuple[str, ...] = ()


BEST = {
    "daxpy": Best("daxpy", 2**24 + 3),
    "map": Best("in registers, fast math", 2**22),
    "launch_shapes": Best("one thread per cell", 2**25 + 3),
    "occupancy": Best("256 threads", 2**26),
    "nan_check": Best("four loads in flight", 2**26 + 3),
    "copies": Best("pinned to device", 2**26 + 5),
    "copies_2d": Best("host to device", 4096),
    "memset": Best("32 bits", 2**25 + 3),
    "stream_ordered": Best("pool, kept, no waits", 2**24 + 3),
    "variables": Best("register", 2**12),
    "pinned_and_mapped": Best("mapped, 16-byte loads", 2**23 + 5, ("pinned, copy alone",)),
    "managed": Best("managed, kept on the host", 2**20 + 3),
    "peer": Best("copy within one device", 2**25 + 3),
    "constant_memory": Best("8 elements per thread", 2**22 + 3),
    "texture": Best("texture, 8 x 4 warps", 4096),
    "local_memory": Best("loop, unrolled", 2**24 + 5),
    "l2_persistence": Best("policy: persisting", 2**24),
    "coalescing": Best("neighbours", 2**26 + 3),
    "stride_and_offset": Best("offset 0", 2**26),
    "aliasing": Best("__restrict__", 2**20 + 5),
    "transpose": Best("down the columns", 8192),
    "bank_conflicts": Best("stride 1", 2**13),
    "divergence": Best("8 functions, by warp", 2**22 + 5),
    "synchronization": Best("cooperative launch", 2**24 + 5),
    "reduction": Best("two passes, one launch", 2**26 + 3),
    "logical_and": Best("four loads in flight", 2**26 + 3),
    "dot_product": Best("four loads of each array", 2**25 + 3),
    "histogram": Best("four loads in flight", 2**26),
    "streams": Best("4 streams, breadth-first", 2**24),
    "graphs": Best("one graph", 2**24 + 3),
    "heat": Best("four cells, down rows", 8192),
    "cooling": Best(cooling.ZIPPED, 2**26 + 3),
    "matmul": Best("8 x 16, pipelined", 2048, ("cuBLAS",)),
    "monte_carlo": Best("Euler, fast math", 2**22),
    "nested_monte_carlo": Best("one warp each", 2**20),
    "crank_nicolson": Best("one warp, factored", 2000),
}
# For stops with peers: the number of elements for the peers, which is almost the number for the stop.
PEERS = {
    "transpose": 8192**2,
    "reduction": 2**26,
    "nan_check": 2**26,
    "logical_and": 2**26,
    "dot_product": 2**25,
    "histogram": 2**26,
    "heat": 8192**2,
    "cooling": 2**26,
}
# Stops whose best variant copies over the link, with the size of the copy in bytes. The links of hosts differ, so each
# is compared with the driver's copy of the same size.
OVER_THE_LINK = {"copies": 2**26 + 5, "copies_2d": 3 * 2**23}
# Stops that do their own measuring have separate benchmarks below.
OWN = {"vector_add", "events"}
UNTIMED = {
    "device_query": "asks for properties",
    "errors": "runs programs that fail",
    "debug_print": "prints",
    "precision": "compares errors",
    **dict.fromkeys(stops.SEVERAL_DEVICES, "its times are the host's, of several devices"),
    **dict.fromkeys(stops.LIBRARIES, "its library's functions are timed in bench_libraries.py"),
}


@pytest.fixture(scope="module", autouse=True)
def share_modules() -> Iterator[None]:
    with loaded_once():
        yield


class _DoneError(BaseException):
    """The variant has been measured, so the stop can end; a BaseException, so that no stop catches it."""


@pytest.fixture
def run(
    gpu_benchmark: Any, device: cuda.Device, size: Size, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Mapping[str, Any]], None]:
    """Return a function that runs a stop until it measures its best variant, and times that together with its peers."""
    if not gpu_benchmark.enabled:  # at the sizes for tests, machine code takes longer to compile than it saves
        monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")

    def run(name: str, peers: Mapping[str, Any]) -> None:
        stop, best = importlib.import_module(stops.module_name(name)), BEST[name]

        def measure(found: Sequence[variants.Variant], limit: Limit | None, *_: Any, quick: bool = False) -> list[Row]:
            known = {variant.name: variant for variant in found}
            if best.variant not in known:
                return [Row(variant.name) for variant in found]
            row = variants._check(known[best.variant], (), quick=True)
            assert row.check, row.note
            assert row.check.holds, row.check.detail
            others = {other: known[other].timed or known[other].launch for other in best.beside if other in known}
            benchmark(gpu_benchmark, known[best.variant], limit, {**others, **peers})
            raise _DoneError

        monkeypatch.setattr(stop, "measure", measure)
        # Programs with deliberate mistakes run in separate processes, and contribute nothing here.
        monkeypatch.setattr(stop, "shown_wrong", lambda name, *_, **__: Row(name), raising=False)
        monkeypatch.setattr(stop, "all_shown_wrong", lambda *_, **__: [], raising=False)
        with pytest.raises(_DoneError):
            stop.run(device, size(best.size, SMALL.get(name, 64)))

    return run


def benchmark(gpu_benchmark: Any, variant: variants.Variant, limit: Limit | None, peers: Mapping[str, Any]) -> None:
    """Time a variant, and record its share of the limit, whatever the limit's unit is."""
    unit = limit.unit if limit else ""
    per_second = limit.rate * timing.PREFIXES[unit[0]] if limit and limit.rate else None
    amounts = {"GB/s": {"bytes": variant.amount}, "TFLOP/s": {"flops": variant.amount}}.get(unit, {})
    work = variant.timed or variant.launch
    found = gpu_benchmark(work, beside=peers, **amounts, ceiling=per_second if amounts and variant.amount else None)
    if limit:
        gpu_benchmark.extra_info["limit"] = limit.name
    if found.median and per_second and variant.amount:
        gpu_benchmark.extra_info["of limit"] = variant.amount / found.median / per_second


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in BEST])
@pytest.mark.benchmark(group="stops")
def test_stop(run: Callable[[str, Mapping[str, Any]], None], device: cuda.Device, size: Size, name: str) -> None:
    peers = course.peers(name, size(PEERS.get(name, 0), 2**12))
    if name in OVER_THE_LINK:
        peers["driver"] = drivers_copy(size(OVER_THE_LINK[name], 2**12))
    run(name, peers)


def drivers_copy(nbytes: int) -> Callable[[], object]:
    source, target = cuda.pinned_empty(nbytes, np.uint8), cuda.empty(nbytes, np.uint8)

    def copy() -> None:
        cuda.check(raw.cuMemcpyHtoDAsync(target.pointer, source.ctypes.data, nbytes, cuda.legacy_default.handle))

    return copy


@pytest.mark.benchmark(group="stops")
def test_vector_add(gpu_benchmark: Any, device: cuda.Device, size: Size) -> None:
    n = size(2**26 + 3, 2**12 + 3)
    a, b, out = cuda.full(n, 1, np.float32), cuda.full(n, 2, np.float32), cuda.empty(n, np.float32)
    launch = vector_add.load("vector_add")["vector_add"][vector_add.blocks_for(n, 256), 256].bind(a, b, out, n)
    gpu_benchmark(launch, bytes=3 * out.nbytes, flops=n, ceiling="copy")
    assert (out[-1:].to_host() == 3).all()


@pytest.mark.benchmark(group="stops")
def test_events(gpu_benchmark: Any, device: cuda.Device, size: Size) -> None:
    temperatures = cuda.full(size(2**26, 2**12), events.AMBIENT, np.float32)
    steps = events.cooling(temperatures, wait=False)
    gpu_benchmark(steps, bytes=2 * events.STEPS * temperatures.nbytes, ceiling="copy")
    assert (temperatures[-1:].to_host() == events.AMBIENT).all()


def test_every_stop_is_timed_or_has_a_reason() -> None:
    assert sorted([*BEST, *OWN, *UNTIMED]) == sorted(stops.names())


def test_every_stop_with_peers_has_their_numbers(device: cuda.Device) -> None:
    """Without a number in PEERS, a peer would get no elements and do no work."""
    assert {name for name in BEST if any(course.others(name, 1))} == set(PEERS)
