"""Record the numbers that cuRAND's device generators make.

    python tests/libraries/record_random_numbers.py tests/libraries/data/random_numbers.json

This needs a GPU. The recording holds, for each case, some numbers from the beginning, the middle and the end of what
was drawn, and a checksum of all of it, or the status of a call that cuRAND refuses. `test_random_sequences.py` compares
the software cuRAND with it.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.driver.seam import library
from cudart_py.libraries.random.generators import KINDS, Generator

# An odd number of numbers, more than any generator has threads.
COUNT = 1_000_003
EVEN_COUNT = 1_000_002
SHOWN = 8
SEED = 2**40 + 12_345
ORDERINGS = ("best", "default", "seeded", "legacy", "dynamic")


class Draw(NamedTuple):
    """A method of Generator, how many numbers it draws, and a distribution's parameters."""

    method: str
    count: int
    dtype: str = "bits"
    parameters: tuple[float, ...] = ()

    @property
    def exact(self) -> bool:
        """Return whether no logarithm or sine is in the numbers, whose last bits depend on the machine."""
        # Above 4000, cuRAND rounds normal numbers to Poisson's.
        return self.method in ("bits", "uniform") or (self.method == "poisson" and self.parameters[0] < 4000)


class Case(NamedTuple):
    """One generator, and what is drawn from it in order; `captured` draws the middle ones by a graph's launches."""

    kind: str
    draws: tuple[Draw, ...]
    ordering: str | None = None
    seed: int = 0
    offset: int = 0
    dimensions: int = 1
    captured: bool = False


DISTRIBUTIONS = {
    "uniform": Draw("uniform", COUNT, "float32"),
    "uniform double": Draw("uniform", COUNT, "float64"),
    "normal": Draw("normal", EVEN_COUNT, "float32", (1.5, 2.0)),
    "normal double": Draw("normal", EVEN_COUNT, "float64", (1.5, 2.0)),
    "log-normal": Draw("log_normal", EVEN_COUNT, "float32", (0.25, 0.5)),
    "log-normal double": Draw("log_normal", EVEN_COUNT, "float64", (0.25, 0.5)),
    "Poisson of 0.5": Draw("poisson", COUNT, "uint32", (0.5,)),
    "Poisson of 64.5": Draw("poisson", COUNT, "uint32", (64.5,)),
    "Poisson of 5000": Draw("poisson", COUNT, "uint32", (5000.0,)),
}
# A generator of this kind takes seconds to begin on the host, so it has few cases.
SLOW = "mt19937"


def _cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    whole = (Draw("bits", COUNT),)
    parts = (Draw("bits", 4), Draw("bits", 7), Draw("bits", 20_001), Draw("bits", 100_000))
    for kind, about in KINDS.items():
        if kind != SLOW:
            found[f"{kind}, bits"] = Case(kind, whole)
        found[f"{kind}, captured"] = Case(kind, (Draw("bits", 5000),) * 4, captured=True)
        if kind == SLOW:
            found |= {f"{kind}, {ordering}": Case(kind, whole, ordering) for ordering in ("seeded", "dynamic")}
            found[f"{kind}, legacy, seed"] = Case(kind, whole, "legacy", SEED)
            found[f"{kind}, distributions"] = Case(kind, tuple(DISTRIBUTIONS.values()))
            continue
        if about.seeded:
            found |= {f"{kind}, {ordering}": Case(kind, whole, ordering) for ordering in ORDERINGS}
            found[f"{kind}, seed"] = Case(kind, whole, seed=SEED)
            found[f"{kind}, legacy, seed"] = Case(kind, whole, "legacy", SEED)
        else:
            for n in (3, 200):
                points = (Draw("bits", n * 5), Draw("bits", n * 3001))
                found[f"{kind}, {n} dimensions"] = Case(kind, points, dimensions=n)
                found[f"{kind}, {n} dimensions, offset"] = Case(kind, points, offset=1001, dimensions=n)
            normal = (Draw("normal", 3 * 1001, "float32", (0.0, 1.0)),)
            found[f"{kind}, 3 dimensions, normal"] = Case(kind, normal, dimensions=3)
        found[f"{kind}, parts"] = Case(kind, parts)
        if about.offsets:
            for offset in (3, 4096 * 5 + 8):
                found[f"{kind}, offset {offset}"] = Case(kind, whole, offset=offset)
        found |= {f"{kind}, {name}": Case(kind, (draw,)) for name, draw in DISTRIBUTIONS.items()}
    # What one distribution leaves over of a number of bits, the next does not see.
    mixed = tuple(DISTRIBUTIONS[name]._replace(count=1002) for name in ("normal", "uniform double", "uniform"))
    for kind in ("xorwow", "philox"):
        found[f"{kind}, distributions in turn"] = Case(kind, (*mixed, Draw("bits", 101)))
    return found


CASES = _cases()


def drawn(case: Case) -> list[NDArray[Any]]:
    """Return the numbers of each draw of a case; captured ones are drawn directly, by launches of a graph, directly."""
    generator = Generator(case.kind, case.seed, offset=case.offset, ordering=case.ordering, dimensions=case.dimensions)
    bits = "uint64" if KINDS[case.kind].bits == 64 else "uint32"
    outs = [cuda.full(draw.count, 0, bits if draw.dtype == "bits" else draw.dtype) for draw in case.draws]
    with generator, cuda.Stream() as stream:
        if not case.captured:
            for draw, out in zip(case.draws, outs, strict=True):
                getattr(generator, draw.method)(out, *draw.parameters)
            return [out.to_host() for out in outs]
        first, *_, last = outs
        results = [generator.bits(first, stream=stream).to_host(stream=stream)]
        with stream.capture() as graph:
            generator.bits(last, stream=stream)
        with graph.instantiate() as executable:
            for _ in outs[1:-1]:
                executable.launch(stream)
                results.append(last.to_host(stream=stream))
        return [*results, generator.bits(last, stream=stream).to_host(stream=stream)]


def summary(numbers: NDArray[Any]) -> dict[str, Any]:
    """Return some numbers and a checksum of all of them, and the sum of a distribution's."""
    count, middle = len(numbers), len(numbers) // 2
    chosen = {*range(SHOWN), *range(middle, middle + SHOWN), *range(count - SHOWN, count)}
    shown = numbers[sorted(place for place in chosen if 0 <= place < count)].tolist()
    found: dict[str, Any] = {"shown": shown, "checksum": zlib.crc32(numbers.tobytes())}
    if numbers.dtype.kind == "f":
        found["sum"] = float(numbers.sum(dtype=np.float64))
    return found


def record(case: Case) -> dict[str, Any]:
    """Return a summary of each draw, or the status with which cuRAND refuses the case."""
    try:
        return {"draws": [summary(numbers) for numbers in drawn(case)]}
    except cuda.CudaError as error:
        return {"refused": str(error.status)}


# Calls of nvmath's bindings that some generators refuse: the function, how many numbers, a distribution's parameters.
CALLS: dict[str, tuple[str, int, tuple[float, ...]]] = {
    "32 bits": ("generate", 6, ()),
    "64 bits": ("generate_long_long", 6, ()),
    "no number": ("generate_uniform", 0, ()),
    "5 normal numbers": ("generate_normal", 5, (0.0, 1.0)),
    "5 normal doubles": ("generate_normal_double", 5, (0.0, 1.0)),
    "5 log-normal numbers": ("generate_log_normal", 5, (0.0, 1.0)),
    "a negative deviation": ("generate_normal", 6, (0.0, -1.0)),
    "a rate of 0": ("generate_poisson", 6, (0.0,)),
    "a rate above 400,000": ("generate_poisson", 6, (400_001.0,)),
    "4 numbers in 3 dimensions": ("generate_uniform", 4, ()),
}


def statuses(kind: str) -> dict[str, str]:
    """Return the status of each of `CALLS` for a generator of a kind."""
    curand = library("curand")
    out = cuda.empty(8, np.uint64)
    generator = curand.create_generator(int(curand.RngType[KINDS[kind].name]))
    found = {}
    for name, (function, count, parameters) in CALLS.items():
        try:
            if "dimensions" in name:
                curand.set_quasi_random_generator_dimensions(generator, 3)
            getattr(curand, function)(generator, out.pointer, count, *parameters)
            found[name] = "SUCCESS"
        except curand.cuRANDError as error:
            found[name] = curand.Status(error.status).name
    curand.destroy_generator(generator)
    return found


def main(path: Path) -> None:
    """Record all cases in a file, one on each line."""
    about = {"device": cuda.Device(0).name, "curand": library("curand").get_version()}
    lines = [f'"about": {json.dumps(about)}']
    with cuda.Device(0):
        for name, case in CASES.items():
            lines.append(f"{json.dumps(name)}: {json.dumps(record(case))}")
            print(lines[-1][:100])
        lines += [f"{json.dumps(f'{kind}, statuses')}: {json.dumps(statuses(kind))}" for kind in KINDS]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path}: {len(lines) - 1} lines, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
