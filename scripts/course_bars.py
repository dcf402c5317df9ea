#!/usr/bin/env python3
"""Measure the course's fastest kernels beside CUB, CuPy and PyTorch, and say which speed bars they reach.

    python scripts/course_bars.py [--json FILE] [--only SECTION...] [--seconds N]

Runs on a GPU with nvcc; CuPy and PyTorch are measured where they are installed. Everything is in one process, on the
same arrays and timed in the same way. Every candidate is first checked on a small input. One that fails, or what does
not fit into the seconds, is named and costs nothing else.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py.benchmark import MeasureOptions, measure
from library_tour.course import heat, histogram, map, monte_carlo
from library_tour.device_code import blocks_for, find
from library_tour.record import environment

HERE = Path(__file__).parent
OPTIONS = MeasureOptions(precision=0.0005, min_samples=5, min_seconds=0.08, max_seconds=0.25, warm_up_seconds=0.02)
# Rows and columns, numbers summed, values counted, rows and columns of the plate and of the film's, paths, numbers.
SIDE, SUMMED, COUNTED, PLATE, FILMED, PATHS, MAPPED = 16384, 2**29, 2**28, 16384, 4096, 2**24, 2**28
SECTIONS = ("transpose", "reduction", "histogram", "heat", "monte_carlo", "map")
Work = Callable[[], object]


@dataclass(frozen=True)
class Line:
    """One measured way: its rate in `unit`; a rival is nobody of ours; `trouble` says why there is no rate."""

    section: str
    name: str
    rate: float | None = None
    unit: str = "GB/s"
    ms: float | None = None
    rival: bool = False
    trouble: str = ""


@dataclass(frozen=True)
class Bar:
    """What the best of ours has to reach: `bar` times the rate of `against`, or `bar` itself in the unit."""

    section: str
    bar: float
    against: str = ""


BARS = [
    Bar("transpose", 0.95, "copy, device to device"),
    Bar("reduction", 1.0, "CUB"),
    *(Bar(f"histogram {bins} {kind}", 1.0, "CUB") for bins in (10, 256) for kind in ("uniform", "equal")),
    Bar("heat", 0.90, "copy, device to device"),
    Bar("heat overlap", 1 / 1.05, "longer of steps and writing"),
    Bar("monte_carlo", 1000.0),
    Bar("map precise", 2**28 * 256 / 0.412 / 1e9),
    Bar("map fast math", 2**28 * 256 / 0.119 / 1e9),
]


class Bench:
    """What all sections share: the device, the time that is left, and the lines so far."""

    def __init__(self, seconds: float) -> None:
        self.device = cuda.current_device()
        self.lines: list[Line] = []
        self.end = time.monotonic() + seconds

    def add(
        self, section: str, name: str, make: Callable[[], Work], amount: float, unit: str = "GB/s",
        check: Callable[[], bool] | None = None, *, rival: bool = False,
    ) -> None:  # fmt: skip
        """Check and measure one way; whatever goes wrong becomes its line."""
        if time.monotonic() > self.end:
            self.lines.append(Line(section, name, rival=rival, trouble="no time left"))
            return
        try:
            if check is not None and not check():
                raise ValueError("WRONG RESULT")
            seconds = measure(make(), options=OPTIONS).median
            assert seconds is not None
            scale = {"G": 1e9, "T": 1e12}[unit[0]]
            line = Line(section, name, amount / seconds / scale, unit, 1e3 * seconds, rival)
        except Exception as error:  # the others go on
            line = Line(section, name, rival=rival, trouble=f"{type(error).__name__}: {error}"[:300])
        self.lines.append(line)
        shown = f"{line.rate:12.1f} {unit} {line.ms:10.4f} ms" if line.rate and line.ms else f"  {line.trouble}"
        print(f"  {section:22} {name:44} {shown}", flush=True)

    def compile(self, stem: str, names: Sequence[str], *, fast_math: bool = False, ours: bool = True) -> Any:
        """Compile device code with these instances; where one does not compile, with each that does."""
        path = find(stem) if ours else HERE / f"{stem}.cu"
        try:
            return cuda.compile(path, names=names, fast_math=fast_math)
        except cuda.CudaError:
            modules: dict[str, Any] = {}
            for name in names:
                try:
                    modules[name] = cuda.compile(path, names=[name], fast_math=fast_math)[name]
                except cuda.CudaError as error:
                    print(f"  {name} does not compile: {str(error)[:2000]}", file=sys.stderr)
            return modules


class Cub:
    """CUB's functions on arrays of ours, compiled meanwhile by nvcc."""

    def __init__(self) -> None:
        self._library = Path(tempfile.mkdtemp()) / "cub_baseline.so"
        command = ["nvcc", "-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
        self._compiling = subprocess.Popen(
            [*command, str(HERE / "cub_baseline.cu"), "-o", str(self._library)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._loaded: Any = None

    def bind(self, name: str, *arguments: Any) -> Work:
        """Return a call of a function with its temporary storage."""
        if self._loaded is None:
            said, _ = self._compiling.communicate()
            if self._compiling.returncode:
                raise RuntimeError(f"nvcc: {said[-300:]}")
            self._loaded = ctypes.CDLL(str(self._library))
        function = self._loaded[name]
        given = [
            ctypes.c_void_p(argument.pointer) if isinstance(argument, cuda.DeviceArray) else ctypes.c_int(argument)
            for argument in arguments
        ]
        nbytes = ctypes.c_size_t()
        self._check(function(None, ctypes.byref(nbytes), *given))
        storage = cuda.empty(max(1, nbytes.value), np.uint8)
        first = ctypes.c_void_p(storage.pointer)

        def call() -> None:
            self._check(function(first, ctypes.byref(nbytes), *given))

        call.storage = storage  # type: ignore[attr-defined]  # it lives as long as the call
        return call

    @staticmethod
    def _check(status: int) -> None:
        if status:
            raise RuntimeError(f"cudaError {status}")


def transpose(bench: Bench, cub: Cub) -> None:
    """Measure transposes beside a copy of the same bytes."""
    n, small = SIDE, 512
    first, second = cuda.empty(n * n, np.float32), cuda.empty(n * n, np.float32)
    fill_random(first)
    nbytes = 2 * first.nbytes
    bench.add("transpose", "copy, device to device", lambda: lambda: cuda.memcpy(second, first), nbytes, rival=True)
    add_rivals(bench, "transpose", nbytes, first, {
        "CuPy": lambda x, library: lambda: library.ascontiguousarray(x.reshape(n, n).T),
        "PyTorch": lambda x, library: lambda: x.reshape(n, n).t().contiguous(),
    })  # fmt: skip
    tiles = [(64, 1), (64, 2), (64, 4), (64, 8), (64, 16), (64, 32), (64, 64), (32, 8), (32, 32)]
    names = ["transpose_tile<1>", *(f"transpose_vector<{tile}, {band}>" for tile, band in tiles)]
    ours = bench.compile("transpose", names)
    twice = [f"transpose_twice<64, {band}, {hints}>" for band in (1, 8, 32) for hints in ("true", "false")]
    others = bench.compile("course_candidates", twice, ours=False)
    matrix = np.random.default_rng().random((small, 2 * small), np.float32)
    small_in, small_out = cuda.to_device(matrix), cuda.empty(matrix.size, np.float32)

    def add(name: str, module: Any, kernel: str, tile: tuple[int, int], block: tuple[int, int]) -> None:
        def launch(source: Any, target: Any, rows: int, columns: int) -> Work:
            grid = (blocks_for(columns, tile[0]), blocks_for(rows, tile[1]))
            return module[kernel][grid, block].bind(source, target, rows, columns)

        def check() -> bool:
            cuda.memset(small_out.view(np.uint8), 0xFF)
            launch(small_in, small_out, *matrix.shape)()
            return np.array_equal(small_out.to_host().reshape(matrix.T.shape), matrix.T)

        bench.add("transpose", name, lambda: launch(first, second, n, n), nbytes, check=check)

    add("tile, padded by one", ours, "transpose_tile<1>", (32, 32), (32, 8))
    for block in ((8, 32), (16, 16), (4, 64), (8, 8), (32, 8), (4, 32)):
        add(f"transpose_registers, block {block}", ours, "transpose_registers", (4 * block[0], 4 * block[1]), block)
    for (tile, _), name in zip(tiles, names[1:], strict=True):
        add(name, ours, name, (tile, tile), (tile // 4, tile // 4))
    for name in twice:
        add(name, others, name, (64, 64), (16, 8))


def reduction(bench: Bench, cub: Cub) -> None:
    """Measure sums."""
    n = SUMMED
    x, total = cuda.empty(n, np.float32), cuda.empty(1, np.float32)
    sums = cuda.empty(2**16, np.float32)
    fill_random(x)
    bench.add("reduction", "CUB", lambda: cub.bind("cub_sum", x, total, n), x.nbytes, rival=True)
    add_rivals(bench, "reduction", x.nbytes, x, {
        "CuPy": lambda values, library: values.sum, "PyTorch": lambda values, library: values.sum,
    })  # fmt: skip
    few = np.random.default_rng().integers(-32, 33, 2**20).astype(np.float32) / 64
    small = cuda.to_device(few)
    loads = (2, 4, 8, 16)
    ours = bench.compile("reduction", [f"sum_once<{count}>" for count in loads])
    others = bench.compile("course_candidates", [f"sum_strided<{count}>" for count in loads], ours=False)
    sms = bench.device.sm_count
    for module, kernel in ((ours, "sum_once"), (others, "sum_strided")):
        for count in loads:
            for block, resident in ((256, 2), (256, 4), (256, 8), (512, 2), (512, 4), (1024, 1), (1024, 2), (256, 64)):
                name = f"{kernel}<{count}>"

                def launch(
                    values: Any, module: Any = module, name: str = name, block: int = block, resident: int = resident
                ) -> Work:
                    return module[name][sms * resident, block].bind(values, sums, total, values.size)

                def check(launch: Callable[[Any], Work] = launch) -> bool:
                    cuda.memset(total.view(np.uint8), 0xFF)
                    launch(small)()
                    return float(total.to_host()[0]) == few.sum(dtype=np.float64)

                shape = f"{name}, {block} threads x {resident} an SM"
                bench.add("reduction", shape, lambda launch=launch: launch(x), x.nbytes, check=check)

    def two_passes() -> Work:
        first = ours["sum_partials"][sms * 8, 256].bind(x, sums, n)
        second = ours["sum_partials"][1, 256].bind(sums, total, sms * 8)
        return lambda: (first(), second())

    bench.add("reduction", "sum_partials twice", two_passes, x.nbytes)


def histograms(bench: Bench, cub: Cub) -> None:
    """Measure histograms in four cases."""
    n = COUNTED
    sms = bench.device.sm_count
    few = np.random.default_rng().random(2**18 + 5, np.float32)
    few[::1000] = 1.5
    small = cuda.to_device(few)
    values = cuda.empty(n, np.float32)
    work = cuda.empty(64 * sms * 257, np.uint32)
    for bins in (10, 256):
        counts = cuda.empty(bins + 1, np.uint32)
        columns = [f"histogram_columns<{bins}, {c}, {k}>" for c in (32, 16, 8, 1) for k in (2, 4, 8)]
        ours = bench.compile("histogram", [*columns, f"histogram_shared<{bins}>"])
        threads = [f"histogram_threads<{bins}, {k}>" for k in (2, 4)]
        registers = ["histogram_registers<2>", "histogram_registers<4>"] if bins == 10 else []
        others = bench.compile("course_candidates", [*threads, *registers], ours=False)
        ways = [(ours, name, 0) for name in [*columns, f"histogram_shared<{bins}>"]]
        ways += [(others, name, (bins // 4 + 1) * 1024) for name in threads]
        ways += [(others, name, 0) for name in registers]
        expected = histogram.reference(few, bins)
        for kind in ("uniform", "equal"):
            section = f"histogram {bins} {kind}"
            if kind == "uniform":
                fill_random(values)
            else:
                cuda.memset(values, 0.5)
            bench.add(
                section, "CUB", lambda c=counts, b=bins: cub.bind("cub_histogram", values, c, b, n), values.nbytes,
                rival=True,
            )  # fmt: skip
            add_rivals(bench, section, values.nbytes, values, {
                "CuPy": lambda x, library, b=bins: lambda: library.histogram(x, b, (0, 1)),
                "PyTorch": lambda x, library, b=bins: lambda: library.histc(x, b, 0, 1),
            })  # fmt: skip
            for module, name, shared in ways:

                def launch(
                    x: Any, module: Any = module, name: str = name, shared: int = shared, c: Any = counts
                ) -> Work:
                    kernel = module[name]
                    grid = sms * kernel.occupancy(256, shared).blocks
                    bound = kernel[grid, 256, shared].bind(x, c, work, x.size)

                    def count() -> None:
                        cuda.memset(c, 0)
                        bound()

                    return count

                def check(launch: Callable[[Any], Work] = launch, c: Any = counts, e: Any = expected) -> bool:
                    cuda.memset(c.view(np.uint8), 0xFF)
                    launch(small)()
                    return np.array_equal(c.to_host()[:-1], e[:-1])

                bench.add(section, name, lambda launch=launch: launch(values), values.nbytes, check=check)


def heat_steps(bench: Bench, cub: Cub) -> None:
    """Measure one step of heat, and the film that overlaps steps with writing."""
    n, few = PLATE, 1000
    planes = [cuda.empty(n * n, np.float32) for _ in range(2)]
    fill_random(planes[0])
    plates = [plane.reshape(n, n) for plane in planes]
    nbytes = 2 * plates[0].nbytes
    bench.add("heat", "copy, device to device", lambda: lambda: cuda.memcpy(*plates[::-1]), nbytes, rival=True)
    heights = (2, 4, 8, 16, 32)
    module = bench.compile("heat", [f"heat_rows<{height}>" for height in heights])
    plate = heat.make_plate(few - 1, few)
    small = [cuda.to_device(plate), cuda.to_device(plate)]
    expected = heat.reference(plate, 2)

    def add(name: str, way: heat.Way) -> None:
        def check() -> bool:
            for array in small:
                array.copy_from(plate)
            heat.stepper(module, way, small, cuda.legacy_default)(2)
            return np.allclose(small[0].to_host(), expected, 0, 1e-6)

        def make() -> Work:
            step = heat.stepper(module, way, plates, cuda.legacy_default)
            return lambda: step(1)

        bench.add("heat", name, make, nbytes, check=check)

    for name in ("a thread a cell", "through a tile"):
        add(name, heat.WAYS[name])
    for height in heights:
        for block in ((32, 8), (64, 4), (128, 2), (256, 1), (32, 4), (64, 2), (32, 2)):
            cells = (4 * block[0], height * block[1])
            add(f"heat_rows<{height}>, block {block}", heat.Way(f"heat_rows<{height}>", block, cells))
    if time.monotonic() < bench.end:
        try:
            found = heat.film(bench.device, cuda.compile(find("heat"), names=[heat.ROWS]), FILMED)[0]
            ms = {row.name.removeprefix("film: "): float(row.values["ms"]) for row in found}
            longer = max(ms["steps"], ms["writing"])
            named = {
                "longer of steps and writing": longer,
                "overlapped": ms["overlapped"],
                "in turn": ms["in turn"],
            }
            for name, value in named.items():
                rival = name.startswith("longer")
                bench.lines.append(Line("heat overlap", name, 1e3 / value, "films/s", value, rival))
                print(f"  heat overlap           {name:44} {value:10.2f} ms", flush=True)
            print("  ", ms, found[-1].note, flush=True)
        except Exception as error:  # the others go on
            bench.lines.append(Line("heat overlap", "overlapped", trouble=f"{type(error).__name__}: {error}"[:300]))
            print(f"  {bench.lines[-1].trouble}", flush=True)


def monte_carlo_steps(bench: Bench, cub: Cub) -> None:
    """Measure the steps of random paths, and count the intervals that cover."""
    paths = PATHS
    kernels = ["price<Euler>", "price<LogSteps>"]
    modules = {fast: bench.compile("monte_carlo", kernels, fast_math=fast) for fast in (True, False)}
    for name, scheme in monte_carlo.SCHEMES.items():
        kernel = modules[scheme.fast_math][scheme.kernel]
        for block in (64, 128, 256, 512, 1024):
            full = bench.device.sm_count * kernel.occupancy(block).blocks
            for times in (1, 4):
                sums = cuda.empty((times * full, 2), np.float64)
                bound = kernel[times * full, block].bind(monte_carlo.option(scheme.kernel), paths, 1, sums)

                def check(bound: Work = bound, sums: Any = sums) -> bool:
                    bound()
                    price = 0.904837418 * sums.to_host()[:, 0].sum() / paths
                    return abs(price - 6.634) < 0.003 + 45 / paths**0.5

                shape = f"{name}, {block} threads x {times} full grids"
                bench.add("monte_carlo", shape, lambda b=bound: b, paths * monte_carlo.STEPS, "Gsteps/s", check)
    pricer = monte_carlo.Pricer(bench.device, monte_carlo.SCHEMES["Euler, fast math"], modules)
    print("  ", monte_carlo.coverage(pricer, paths).detail, flush=True)


def maps(bench: Bench, cub: Cub) -> None:
    """Measure the function applied in a loop."""
    n, few = MAPPED, min(MAPPED, 10000)
    a, b = cuda.empty(n, np.float32), cuda.empty(n, np.float32)
    fill_random(a)
    fill_random(b)
    host = [array[:few].to_host().astype(np.float64) for array in (a, b)]
    expected = map.reference(*host, map.PASSES)
    small = cuda.to_device(host[1].astype(np.float32))
    calls = n * map.PASSES
    for fast in (False, True):
        module = bench.compile("map", map.WAYS, fast_math=fast)
        for kernel in map.WAYS:
            for block in (128, 256, 512):

                def check(kernel: str = kernel, module: Any = module, fast: bool = fast) -> bool:
                    start = cuda.to_device(host[0].astype(np.float32))
                    module[kernel][blocks_for(few, 256), 256](start, small, few, map.PASSES)
                    # By fast math's pow the results are NaN, which is no reason not to time it.
                    return (kernel == "map_loop<Pow>" and fast) or np.allclose(start.to_host(), expected, 0, 1e-5)

                bound = module[kernel][blocks_for(n, block), block].bind(a, b, n, map.PASSES)
                section = "map fast math" if fast else "map precise"
                bench.add(section, f"{kernel}, {block} threads", lambda x=bound: x, calls, "Gcalls/s", check)


def fill_random(array: cuda.DeviceArray) -> None:
    """Fill floats with random ones in [0, 1), a block of 2^24 again and again."""
    block = np.random.default_rng().random(min(2**24, array.size), np.float32)
    array[: block.size].copy_from(block)
    for start in range(block.size, array.size, block.size):
        length = min(block.size, array.size - start)
        cuda.memcpy(array[start : start + length], array[:length])


def add_rivals(
    bench: Bench, section: str, nbytes: float, array: cuda.DeviceArray, works: dict[str, Callable[[Any, Any], Work]]
) -> None:
    """Measure other libraries on the same array, as far as they are installed."""

    def make(name: str) -> Work:
        if name == "CuPy":
            import cupy

            return works[name](cupy.asarray(array), cupy)
        import torch

        return works[name](torch.as_tensor(array, device="cuda"), torch)

    for name in works:
        bench.add(section, name, lambda name=name: make(name), nbytes, rival=True)


def judged(lines: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    """Yield the table of bars: section, the best of ours, its rate, what it is compared with, ratio, verdict."""
    for bar in BARS:
        if all(line.section != bar.section for line in lines):
            continue
        mine = [line for line in lines if line.section == bar.section and not line.rival and line.rate]
        rivals = {line.name: line for line in lines if line.section == bar.section and line.rival}
        if not mine:
            yield bar.section, "nothing measured", "", "", "", "?"
            continue
        best = max(mine, key=lambda line: line.rate or 0)
        other = rivals[bar.against].rate if bar.against in rivals else None
        whole = other if bar.against else bar.bar
        rate, of = f"{best.rate:,.1f} {best.unit}", f"{bar.against} {whole:,.1f}" if whole else bar.against
        if not whole:
            yield bar.section, best.name, rate, of, "", "?"
            continue
        ratio = (best.rate or 0) / whole
        needed = bar.bar if bar.against else 1.0
        yield bar.section, best.name, rate, of, f"{ratio:.4f}", "PASS" if ratio >= needed else f"FAIL < {needed:.3f}"


def main() -> int:
    """Measure, print, write; 0 if every bar is reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write everything there")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="these alone")
    parser.add_argument("--seconds", type=float, default=220, help="start nothing after so long (220)")
    options = parser.parse_args()
    functions = dict(
        zip(SECTIONS, (transpose, reduction, histograms, heat_steps, monte_carlo_steps, maps), strict=True)
    )
    cub = Cub()
    with cuda.Device(0) as device:
        bench = Bench(options.seconds)
        for section in options.only:
            print(f"{section}  ({bench.end - time.monotonic():.0f} s left)", flush=True)
            try:
                functions[section](bench, cub)
            except Exception as error:  # the other sections go on
                bench.lines.append(Line(section, "all", trouble=f"{type(error).__name__}: {error}"[:500]))
                print(f"  {bench.lines[-1].trouble}", flush=True)
        table = list(judged(bench.lines))
        if options.json:
            found = {**environment(device), "lines": [asdict(line) for line in bench.lines], "bars": table}
            options.json.write_text(json.dumps(found, indent=1) + "\n")
    print("\nrivals")
    for line in bench.lines:
        if line.rival:
            shown = f"{line.rate:12.1f} {line.unit} {line.ms:9.4f} ms" if line.rate and line.ms else line.trouble
            print(f"  {line.section:22} {line.name:30} {shown}")
    print("\nbars")
    for section, name, rate, of, ratio, verdict in table:
        print(f"  {section:22} {name:42} {rate:>18} | {of:38} {ratio:>7} {verdict}")
    return 0 if all(verdict == "PASS" for *_, verdict in table) else 1


if __name__ == "__main__":
    sys.exit(main())
