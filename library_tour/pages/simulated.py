"""Runs of the stops on the simulator with per-line counters of their kernels, for the documentation site."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import cudart_py as cuda
from cudart_py.profiling.metric_names import add
from cudart_py.profiling.source_lines import Source, sources_of

from .. import stops
from ..diagrams.drawn import StepDiagram, diagrams_of
from ..processes import pool
from ..runner import Outcome, run_stop

# Enough for the stops that copy between devices, or compute on several.
DEVICES = 2


@dataclass(frozen=True)
class KernelRun:
    """A kernel's launches in a stop's run: their number, the sums of their metrics, and the sums per source line."""

    name: str
    launches: int
    metrics: Mapping[str, float]
    sources: Sequence[Source]


@dataclass(frozen=True)
class StopRun:
    """A stop's run on the simulator, the kernels that it launched, and the diagrams of its lesson's steps."""

    device: str
    outcome: Outcome
    kernels: Sequence[KernelRun]
    diagrams: Sequence[StepDiagram]


def run_all(names: Sequence[str]) -> Iterator[StopRun]:
    """Run stops at their small sizes, each in its own process, and yield the runs in the order of `names`."""
    environment = {**os.environ, "CUDART_PY_DRIVER": "simulator", "CUDART_PY_SIMULATOR_DEVICES": str(DEVICES)}
    modules = [__name__, *map(stops.module_name, names)]
    with pool(modules, environment, one_task_each=True) as processes:
        yield from processes.map(run, names)


def run(name: str) -> StopRun:
    """Run a stop on the driver of this process, which must support profiling."""
    device = cuda.Device(0)
    size = stops.load(name).SIZE
    # A stop prints nothing by itself, but kernels may.
    with cuda.profile() as profile, open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        outcome = run_stop(name, device, size.small if size else None)
    by_kernel: dict[str, list[cuda.profiling.LaunchProfile]] = {}
    for launch in profile.launches:
        by_kernel.setdefault(launch.kernel, []).append(launch)
    kernels = [_kernel(kernel, launches) for kernel, launches in by_kernel.items()]
    with device:
        diagrams = () if outcome.state == "error" else diagrams_of(name)
    return StopRun(device.name, outcome, kernels, diagrams)


def _kernel(name: str, launches: Sequence[cuda.profiling.LaunchProfile]) -> KernelRun:
    metrics: dict[str, float] = {}
    for launch in launches:
        add(metrics, launch.metrics)
    return KernelRun(name, len(launches), metrics, sources_of(launches))
