"""The kernels that `measuring.py` compares, and their measurements, which run in separate processes.

    python -m tests.benchmarks.peers.measuring_cases measure_all|launch CASE|nvbench CASE KIND|host|ceilings

The results are printed as one line of JSON.
"""

import dataclasses
import functools
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda
from cudart_py import benchmark
from cudart_py.benchmark import measure, measure_host

SOURCE = Path(__file__).with_name("sources") / "measuring.cu"
# The number of launches that Nsight Compute measures.
LAUNCHES = 25
# The number of launches in the graph that nvbench times for a short kernel, because a single launch takes longer than
# such a kernel.
GRAPH_CALLS = 100
# The number of streams in which a short kernel is measured.
STREAMS = 48
# In a small batch, the device finishes before the length of its queue could matter.
HOST_BATCHES = (5, 50, 250)


class Case(NamedTuple):
    """A kernel of a certain duration, and the share by which Nsight Compute's duration may differ, or None for any.

    A `short` kernel is measured in batches, with the L2 cache as the previous call left it.
    """

    kernel: str
    amount: int
    bar: float | None
    short: bool = False


CASES = {
    "saxpy 1 ms": Case("saxpy", 340_000_000, 0.01),
    "chain 1 ms": Case("chain", 450_000, 0.01),
    "saxpy 50 us": Case("saxpy", 18_000_000, 0.03),
    "chain 50 us": Case("chain", 25_000, 0.03),
    "saxpy 3 us": Case("saxpy", 400_000, 0.10, short=True),
    "chain 3 us": Case("chain", 480, 0.10, short=True),
    "nothing": Case("nothing", 0, None, short=True),
}


def make_launch(case: Case) -> Callable[[Any], Callable[[], None]]:
    kernel, device = cuda.compile(SOURCE)[case.kernel], cuda.current_device()
    shape: tuple[int, int] = (1, 32)
    arguments: tuple[Any, ...] = ()
    if case.kernel == "saxpy":
        shape = -(-case.amount // 256), 256
        arguments = 2.0, cuda.zeros(case.amount, np.float32), cuda.zeros(case.amount, np.float32), case.amount
    elif case.kernel == "chain":
        shape = 2 * device.sm_count, 256
        arguments = cuda.zeros(math.prod(shape), np.float32), 0.5, case.amount
    device.synchronize()
    return lambda stream: kernel[*shape, 0, stream].bind(*arguments)


def make_work(case: Case, stream: Any = None) -> Callable[[], None]:
    return make_launch(case)(stream)


def measure_all() -> dict[str, Any]:
    """Measure all cases in a stream, short kernels in a graph and in many streams too, and the first of these twice.

    The second measurement shows whether a time depends on what the process has done before.
    """
    stream = cuda.Stream(non_blocking=True)
    short = [(name, way) for name, case in CASES.items() if case.short for way in ("graph", "streams")]
    again = short[:2]
    found = {}
    for name, way in [*again, *((name, "") for name in CASES), *short]:
        label = f"{name}, {way}" if way else name
        if way == "streams":
            bound = functools.cache(make_launch(CASES[name]))
            one = measure(lambda stream, bound=bound: bound(stream)(), streams=STREAMS)
        else:
            one = measure(make_work(CASES[name], stream), stream=stream, graph=way == "graph")
        if not one.timed:
            raise SystemExit("this driver has no device times (gpu_timing): run it on a GPU")
        names = ("median", "spread", "batch", "cache", "blocked", "captured", "streams", "overhead", "clock_mhz")
        kept = {"samples": len(one.samples), **{name: getattr(one, name) for name in names}}
        found[f"{label}, again" if label in found else label] = kept
    return found


def launch(name: str) -> None:
    case = CASES[name]
    work = make_work(case)
    flush = cuda.zeros(2 * cuda.current_device().properties.l2_cache_size, np.uint8)
    for _ in range(LAUNCHES):
        if not case.short:
            cuda.memset(flush, 0)
        work()
    cuda.current_device().synchronize()


def nvbench(name: str, kind: str) -> dict[str, float]:
    """Measure a case with nvbench and with our function, in the same process and stream.

    The kind "cold" is a single launch after flushing the L2 cache, and includes the overhead of events. The kind
    "graph" is a graph of many launches, which nvbench times many times in a row.
    """
    from cuda import bench  # in the package cuda-bench, which is rarely installed

    ours: dict[str, float] = {}

    def body(state: Any) -> None:
        with cuda.Device(0):
            stream = cuda.Stream.borrow(state.get_stream().__cuda_stream__()[1])
            work = make_work(CASES[name], stream)
            if kind == "graph":
                work = make_graph(work, stream)
            # Ours comes first, because it brings the process into the state in which both measure.
            found = measure(work, stream=stream, batch=1, flush_l2=kind == "cold")
            state.exec(lambda launch: work())
            ours["seconds"] = (found.median or 0.0) + (found.overhead if kind == "cold" else 0.0)

    bench.register(body).set_name("case")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        # nvbench prints its report to standard output, which is for our JSON.
        saved = os.dup(1)
        os.dup2(2, 1)
        try:
            bench.run_all_benchmarks(["measuring", "--devices", "0", "--json", str(path)])
        finally:
            os.dup2(saved, 1)
        (state,) = json.loads(path.read_text())["benchmarks"][0]["states"]
    summaries = {summary["tag"]: summary.get("data", ()) for summary in state.get("summaries", ())}
    tag = {"cold": "nv/cold/time/gpu/median", "graph": "nv/batch/time/gpu/mean"}[kind]
    if tag not in summaries:
        raise SystemExit(f"nvbench: {state.get('skip_reason') or f'no {tag}'}")
    (theirs,) = (float(entry["value"]) for entry in summaries[tag] if entry["name"] == "value")
    return {"ours": ours["seconds"], "theirs": theirs}


def make_graph(work: Callable[[], None], stream: Any) -> Callable[[], None]:
    with stream.capture() as calls:
        for _ in range(GRAPH_CALLS):
            work()
    executable = calls.instantiate()
    return lambda: executable.launch(stream)


def host() -> dict[str, Any]:
    """Measure the host overhead of launches with kernels of different durations, and of cuBLAS products in batches."""
    stream = cuda.Stream(non_blocking=True)
    launches = {name: measure_host(make_work(case, stream), stream=stream).median for name, case in CASES.items()}
    products = {}
    if "libraries" in cuda.capabilities():
        from cudart_py import libraries

        a, b, out = (cuda.zeros((128, 128), np.float32, stream=stream) for _ in range(3))
        for batch in HOST_BATCHES:
            found = measure_host(lambda: libraries.gemm(a, b, out, stream=stream), stream=stream, batch=batch)
            products[str(batch)] = found.median
    return {"launches": launches, "products": products}


def ceilings() -> dict[str, Any]:
    device = cuda.Device(0)
    return {"device": device.name, **dataclasses.asdict(benchmark.ceilings(device))}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
