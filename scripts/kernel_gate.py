#!/usr/bin/env python3
"""Compare the counters of the tour's kernels with the accepted figures, so that no kernel becomes worse unnoticed.

    python scripts/kernel_gate.py              print a table and exit with 1 if a figure is worse than the accepted one
    python scripts/kernel_gate.py --accept     write today's figures, to be reviewed as a change to kernel_figures.json
    python scripts/kernel_gate.py --only histogram

Every stop with kernels runs on the simulator at its small size, with the same random numbers each time. The figures of
a kernel are those of `cudart_py.benchmark.gates.counter_gate`, summed over its launches, plus the registers and the
bytes of spills that the assembler reports. Figures that depend on the compiler's version (instructions, registers,
spills) are compared only if NVRTC has the version that the accepted figures were recorded with. The sanitizer is off
unless `CUDART_PY_SANITIZER` says otherwise, because it does not change the figures.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py.benchmark.gates.counter_gate import Change, Limit, figures, table
from cudart_py.compilation.programs import library_version
from library_tour import device_code, stops
from library_tour.processes import pool
from library_tour.runner import run_stop

FILE = Path(__file__).with_name("kernel_figures.json")
SEED = 14
OF_THE_COMPILER = ("instructions", "registers", "spills")
LIMITS = (
    Limit("instructions", 2, relative=True),
    *(Limit(name, 1, relative=True) for name in ("requests", "sectors", "local", "wavefronts", "conflicts")),
    Limit("lanes", 2, relative=True),
    *(Limit(name, 0, relative=False) for name in ("registers", "spills")),
)
Figures = dict[str, dict[str, float]]


def count(name: str) -> Figures:
    """Run a stop and return the figures of each of its kernels, keyed by "STOP: KERNEL"."""
    seeded = np.random.PCG64(SEED)
    np.random.default_rng = lambda seed=None: (
        seed
        if isinstance(seed, np.random.Generator)  # as SciPy passes it
        else np.random.Generator(seeded if seed is None else np.random.PCG64(seed))
    )
    attributes: list[tuple[str, cuda.KernelAttributes]] = []
    compile_source = cuda.compile

    def compile_and_note(*arguments: Any, **named: Any) -> cuda.Module:
        module = compile_source(*arguments, **named)
        attributes.extend((kernel, module[kernel].attributes) for kernel in module.kernels)
        return module

    device_code.cuda.compile = compile_and_note  # type: ignore[attr-defined]  # every stop compiles through this name
    stop = stops.load(name)
    with cuda.profile() as profile:
        outcome = run_stop(name, cuda.Device(0), stop.SIZE.small if stop.SIZE else None)
    if outcome.bad:
        raise SystemExit(f"{name}: {outcome.message or outcome.failed_checks}\n{outcome.traceback}")
    launches = defaultdict(list)
    for launch in profile.launches:
        launches[launch.kernel].append(launch.metrics)
    found = {kernel: figures(metrics) for kernel, metrics in launches.items()}
    for kernel, taken in attributes:
        row = found.get(kernel, {})
        row["registers"] = max(row.get("registers", 0), taken.registers)
        row["spills"] = max(row.get("spills", 0), (taken.spill_load_bytes or 0) + (taken.spill_store_bytes or 0))
    return {
        f"{name}: {kernel}": {figure: round(value, 3) for figure, value in row.items() if value}
        for kernel, row in found.items()
    }


def count_all(names: Sequence[str]) -> Figures:
    """Return the figures of several stops, each run in its own process."""
    with pool([*map(stops.module_name, names)], os.environ, one_task_each=True) as processes:
        return {kernel: row for found in processes.map(count, names) for kernel, row in found.items()}


def written(compiler: str, kernels: Figures) -> str:
    """Return figures as the JSON text of the accepted ones, with one line per kernel."""
    lines = [f" {json.dumps(name)}: {json.dumps(kernels[name])}" for name in sorted(kernels)]
    return f'{{"nvrtc": {json.dumps(compiler)}, "kernels": {{\n' + ",\n".join(lines) + "\n}}\n"


def compare(accepted: Mapping[str, Any], now: Figures, compiler: str, names: Sequence[str]) -> list[Change]:
    """Return the differences from the accepted figures of the stops that ran."""
    same_compiler = accepted["nvrtc"] == compiler
    before: Figures = {key: row for key, row in accepted["kernels"].items() if key.partition(":")[0] in names}
    found = []
    for kernel in sorted(before.keys() | now.keys()):
        if kernel not in before or kernel not in now:
            found.append(Change(kernel, only="new" if kernel in now else "gone", failed=True))
            continue
        for limit in LIMITS:
            if limit.figure in OF_THE_COMPILER and not same_compiler:
                continue
            was, is_now = before[kernel].get(limit.figure, 0), now[kernel].get(limit.figure, 0)
            if was != is_now:
                found.append(Change(kernel, limit.figure, was, is_now, limit.exceeded(was, is_now)))
    return found


def main() -> int:
    """Count, then compare with the accepted figures or replace them; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="write today's figures")
    parser.add_argument("--only", nargs="+", choices=stops.names(), metavar="STOP", help="some stops")
    options = parser.parse_args()
    # The counting processes inherit both variables.
    os.environ.setdefault("CUDART_PY_SANITIZER", "off")
    os.environ["CUDART_PY_DRIVER"] = "simulator"
    names = options.only or stops.names()
    compiler = ".".join(map(str, library_version()))
    now = count_all(names)
    accepted = json.loads(FILE.read_text()) if FILE.exists() else {"nvrtc": compiler, "kernels": {}}
    if options.accept:
        kept = {key: row for key, row in accepted["kernels"].items() if key.partition(":")[0] not in names}
        if options.only and accepted["nvrtc"] != compiler:
            parser.error(f"the other figures are of NVRTC {accepted['nvrtc']}, and this is {compiler}: accept all")
        FILE.write_text(written(compiler, {**kept, **now}))
        print(f"{len(now)} kernels accepted: review {FILE.name}")
        return 0
    if accepted["nvrtc"] != compiler:
        left_out = ", ".join(OF_THE_COMPILER)
        print(f"The accepted figures are of NVRTC {accepted['nvrtc']}, and this is {compiler}: no {left_out} compared.")
    found = compare(accepted, now, compiler, names)
    print("\n".join(table(found)) if found else f"{len(now)} kernels match the accepted figures.")
    if any(change.failed for change in found):
        print("If that is intended, run `python scripts/kernel_gate.py --accept` and commit the change of its file.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
