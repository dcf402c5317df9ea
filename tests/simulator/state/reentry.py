"""Kernels for the tests of calls in the middle of other calls, and a count of the driver's live objects."""

from typing import Any

import numpy as np

from cudart_py.simulator import driver
from cudart_py.simulator.calls.graphs.execution import executables
from cudart_py.simulator.calls.modules import functions, libraries, linking, modules
from cudart_py.simulator.calls.streams import events
from cudart_py.simulator.state import contexts, memory, streams
from cudart_py.simulator.state.memory import pools
from cudart_py.simulator.state.queue import captures, graphs
from tests.simulator.support import ok

SOURCE = r"""
extern "C" __global__ void step(unsigned *x, int rounds) {
    unsigned value = x[threadIdx.x];
    for (int i = 0; i < rounds; i++) value = value * 1664525u + 1013904223u;
    x[threadIdx.x] = value;
}
extern "C" __global__ void add(int *p, int value) { atomicAdd(p, value); }
extern "C" __global__ void endless(volatile int *p) { p[1] = 1; while (*p == 0) ; p[1] = 2; }
extern "C" __global__ void speak(int value) { printf("spoken %d\n", value); }
"""
LANES = 64


def stepped(x: Any, rounds: int) -> Any:
    multiplier, increment = 1, 0
    for bit in f"{rounds:b}":
        increment, multiplier = increment * (multiplier + 1), multiplier * multiplier
        if bit == "1":
            increment, multiplier = increment * 1664525 + 1013904223, multiplier * 1664525
        increment, multiplier = increment % (1 << 32), multiplier % (1 << 32)
    return np.array(x, np.uint32) * np.uint32(multiplier) + np.uint32(increment)


def live() -> tuple[int, ...]:
    tables = (
        streams.streams,
        events.events,
        modules.modules,
        functions.functions,
        functions.kernels,
        libraries.libraries,
        linking.links,
        graphs.graphs,
        graphs.nodes,
        executables.executables,
        pools.pools,
    )
    context = contexts.current()
    return (
        *map(len, tables),
        len(memory.known.by_start),
        len(memory.live.by_start),
        len(context.textures),
        len(captures.active),
        context.pending,
        *ok(driver.cuMemGetInfo()),
    )
