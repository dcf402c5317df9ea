"""An observer is told of everything, and changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Observer
from tests.simulator.ptx.machine import Kernels

SOURCE = r"""
extern "C" __global__ void k(int* out, const int* in, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t < n) atomicAdd(&out[0], s[63 - t]);
}
"""


class Recorder(Observer):
    """Keep what happens."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def start(self, state: Any) -> None:
        self.events.append(("start",))

    def access(self, group: Any, kind: str, address: Any, offset: int, size: int, site: Any, values: Any) -> None:
        self.events.append((kind, address.space.name, group.n, size, site.line))

    def branch(self, group: Any, site: Any, taken: Any) -> None:
        self.events.append(("branch", int(np.sum(np.broadcast_to(taken, group.n)))))

    def barrier(self, group: Any, site: Any, event: str) -> None:
        self.events.append((event, group.n))

    def exit(self, group: Any) -> None:
        self.events.append(("exit", group.n))

    def finish(self, state: Any) -> None:
        self.events.append(("finish",))


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def test_events_come_in_order(kernels: Kernels) -> None:
    recorder = Recorder()
    out, values = kernels.zeros(1), kernels.put(np.arange(64, dtype=np.int32))
    kernels.launch("k", 1, 64, out, values, 10, observer=recorder)
    kinds = [event[:3] for event in recorder.events]
    assert kinds[:4] == [("start",), ("ld", "global", 64), ("st", "shared", 64), ("arrive", 64)]
    assert ("branch", 54) in kinds
    assert ("ld", "shared", 10) in kinds
    assert sum(event[1] for event in kinds if event[0] == "exit") == 64
    assert kinds[-1] == ("finish",)
    assert kernels.get(out, 1)[0] == sum(range(54, 64))


def test_results_are_the_same_without(kernels: Kernels) -> None:
    out, values = kernels.zeros(1), kernels.put(np.arange(64, dtype=np.int32))
    kernels.launch("k", 1, 64, out, values, 64)
    assert kernels.get(out, 1)[0] == sum(range(64))
