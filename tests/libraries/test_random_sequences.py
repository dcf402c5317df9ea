"""Generators give an H200's numbers: all orderings, offsets, dimensions, distributions and captured draws.

Host generators, whose numbers are not recorded, agree with device generators and have the requested distributions. On a
machine with a GPU, this module records some numbers from the beginning, middle and end of each draw of a device
generator with a checksum of the whole, or the status of a call that cuRAND refuses:

    python tests/libraries/test_random_sequences.py
"""

import json
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.driver.calls import library
from cudart_py.libraries.random_numbers import KINDS, Generator, exponential, log_normal, normal, poisson, uniform

pytestmark = pytest.mark.needs("libraries")

DATA = Path(__file__).parent / "data" / "random_numbers.json"
# More numbers than any generator has threads: an odd count, and an even one.
COUNT, EVEN_COUNT = 1_000_003, 1_000_002
SHOWN = 8
SEED = 2**40 + 12_345
ORDERINGS = ("best", "default", "seeded", "legacy", "dynamic")


class Draw(NamedTuple):
    """One draw: a method of Generator, the number and dtype of elements, and the distribution's parameters."""

    method: str
    count: int
    dtype: str = "bits"
    parameters: tuple[float, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the numbers need no logarithm or sine, whose last bits depend on the machine."""
        # From a mean of 4000 on, cuRAND rounds normal numbers to get Poisson numbers.
        return self.method in ("bits", "uniform") or (self.method == "poisson" and self.parameters[0] < 4000)


class Case(NamedTuple):
    """One generator and its draws in order; if `captured`, launches of a graph make all but the first and the last."""

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
# A generator of this kind takes seconds to initialize on the host, so it has few cases.
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
            bell = (Draw("normal", 3 * 1001, "float32", (0.0, 1.0)),)
            found[f"{kind}, 3 dimensions, normal"] = Case(kind, bell, dimensions=3)
        found[f"{kind}, parts"] = Case(kind, parts)
        if about.offsets:
            for offset in (3, 4096 * 5 + 8):
                found[f"{kind}, offset {offset}"] = Case(kind, whole, offset=offset)
        found |= {f"{kind}, {name}": Case(kind, (draw,)) for name, draw in DISTRIBUTIONS.items()}
    # Bits that one distribution has not used up are not passed on to the next.
    mixed = tuple(DISTRIBUTIONS[name]._replace(count=1002) for name in ("normal", "uniform double", "uniform"))
    for kind in ("xorwow", "philox"):
        found[f"{kind}, distributions in turn"] = Case(kind, (*mixed, Draw("bits", 101)))
    return found


CASES = _cases()


def drawn(case: Case) -> list[NDArray[Any]]:
    """Return the numbers of each draw of a case; in a captured case, launches of a graph make the middle draws."""
    generator = Generator(case.kind, case.seed, offset=case.offset, ordering=case.ordering, dimensions=case.dimensions)
    bits = "uint64" if KINDS[case.kind].bits == 64 else "uint32"
    outs = [cuda.full(draw.count, 0, bits if draw.dtype == "bits" else draw.dtype) for draw in case.draws]
    with generator, cuda.Stream() as stream:
        if not case.captured:
            draws = zip(case.draws, outs, strict=True)
            return [getattr(generator, draw.method)(out, *draw.parameters).to_host() for draw, out in draws]
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
    """Return some of the numbers, a checksum of all, and their sum if they are floating-point."""
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


# Calls of nvmath's bindings that some generators refuse: the function, the count, and the distribution's parameters.
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


RECORDED = json.loads(DATA.read_text())
# On a GPU, generators of these kinds have many states, which each launch of a graph advances, while the library counts
# a captured draw once. So draws after a graph's first launch come in another order than on the simulator.
MOVED_BY_GRAPHS = ("xorwow", "mrg32k3a", "philox")
# The dynamic ordering depends on the device.
DYNAMIC = [name for name, case in CASES.items() if case.ordering == "dynamic"]
# The cases of these kinds that run at the default level; the others are left to the exhaustive level because these
# generators take seconds to prepare.
AT_ONCE = {"mt19937": (), "mrg32k3a": ("mrg32k3a, bits",)}


def later(kind, name=""):
    """Return the marks of a case: `exhaustive` if it does not run at the default level."""
    return [pytest.mark.exhaustive] if name not in AT_ONCE.get(kind, (name,)) else []


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=later(case.kind, name)) for name, case in CASES.items() if name not in DYNAMIC],
)
def test_numbers_are_those_of_an_h200(device, name):
    case, recorded = CASES[name], RECORDED[name]
    found = record(case)
    if "refused" in recorded or "refused" in found:
        assert found == recorded
        return
    count = 2 if case.captured and case.kind in MOVED_BY_GRAPHS else len(case.draws)
    for draw, here, there in zip(case.draws[:count], found["draws"], recorded["draws"], strict=False):
        if draw.exact:
            # NumPy's versions add floating-point numbers in different orders.
            sums = {"sum": pytest.approx(there["sum"], rel=1e-14)} if "sum" in there else {}
            assert here == {**there, **sums}
        elif draw.method == "poisson":
            np.testing.assert_allclose(here["shown"], there["shown"], atol=1)
        else:
            tolerance = 4e-6 if draw.dtype == "float32" else 2e-14
            np.testing.assert_allclose(here["shown"], there["shown"], rtol=tolerance, atol=tolerance)
            assert here["sum"] == pytest.approx(there["sum"], rel=tolerance)


@pytest.mark.parametrize("name", [pytest.param(name, marks=later(CASES[name].kind)) for name in DYNAMIC])
def test_the_dynamic_ordering_is_taken_or_refused_as_by_an_h200(device, name):
    assert ("refused" in record(CASES[name])) == ("refused" in RECORDED[name])


@pytest.mark.parametrize(("kind", "ordering", "host"), [("philox", "seeded", False), ("xorwow", "dynamic", True)])
def test_the_error_for_an_ordering_lists_those_that_an_h200_takes(device, kind, ordering, host):
    with pytest.raises(ValueError, match=f"^Generator: .* with kind='{kind}'.*, not the str '{ordering}'") as raised:
        Generator(kind, ordering=ordering, host=host)
    listed = re.findall(r"'(\w+)'", str(raised.value).partition("must be")[2].partition("with")[0])
    # A generator on the host has all orderings of one on a device but "dynamic".
    taken = [name for name in ORDERINGS if "refused" not in RECORDED[f"{kind}, {name}"] and name != ordering]
    assert sorted(listed) == sorted(taken)


RECORDED_KINDS = [kind for kind in KINDS if f"{kind}, statuses" in RECORDED]


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=later(kind)) for kind in RECORDED_KINDS])
def test_calls_are_refused_as_by_an_h200(device, kind):
    assert statuses(kind) == RECORDED[f"{kind}, statuses"]


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.exhaustive] * (k == SLOW)) for k in KINDS])
def test_host_and_device_generators_agree(device, kind):
    """Where there is a choice, the ordering is "legacy", with which they agree."""
    if kind == SLOW and "in_process" in cuda.capabilities():
        pytest.skip("the simulator draws both from cuRAND's host generator, as for the other kinds")
    options = {"ordering": "legacy"} if KINDS[kind].seeded else {}
    dtype = np.uint64 if KINDS[kind].bits == 64 else np.uint32
    there = Generator(kind, **options).bits(cuda.empty(20_001, dtype)).to_host()
    here = Generator(kind, host=True, **options)
    assert np.array_equal(there, np.concatenate([here.bits(np.empty(count, dtype)) for count in (20_000, 1)]))
    if KINDS[kind].offsets:
        skipped = 400  # a multiple of four, since Philox draws groups of four
        here.skip_to(skipped)
        for generator in (here, Generator(kind, offset=skipped, host=True, **options)):
            assert np.array_equal(generator.bits(np.empty(64, dtype)), there[skipped : skipped + 64])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_the_host_are_distributed_as_asked_for(dtype):
    generator, count = Generator(seed=1, host=True), 100_000
    found = generator.uniform(np.empty(count, dtype))
    assert 0 < found.min() < 1e-3
    assert 0.999 < found.max() <= 1
    found = generator.normal(np.empty(count, dtype), 5.0, 2.0)
    assert (found.mean(), found.std()) == pytest.approx((5.0, 2.0), abs=0.04)
    found = np.log(generator.log_normal(np.empty(count, dtype), 0.5, 0.25))
    assert (found.mean(), found.std()) == pytest.approx((0.5, 0.25), abs=0.01)
    assert generator.poisson(np.empty(count, np.uint32), 4.5).mean() == pytest.approx(4.5, abs=0.05)
    first, again, other = (Generator(seed=seed, host=True).uniform(np.empty(64, dtype)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_module_has_a_generator_of_its_own(device, record):
    made = record("curand", "create_generator")
    arrays = [uniform(0, 1, (4, 5)), normal(5.0, 2.0, 8, np.float64), log_normal(size=8), poisson(2.0, 8)]
    arrays += [exponential(3.0, (2, 2)), normal(size=(3, 5))]
    assert [array.shape for array in arrays] == [(4, 5), (8,), (8,), (8,), (2, 2), (3, 5)]
    assert len(made) == 1
    out = cuda.empty(10, np.float32)
    assert uniform(out=out) is out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("host", [False, True])
def test_exponential_numbers_and_intervals_come_from_uniform_ones(device, dtype, host):
    """The logarithm and the product have errors of a few units in the last place."""

    def drawn(name, *parameters):
        generator = Generator("philox", 5, host=host)
        if host:
            return getattr(generator, name)(np.empty(999, dtype), *parameters)
        return getattr(generator, name)(cuda.empty(999, dtype), *parameters).to_host()

    uniform = drawn("uniform").astype(np.longdouble)
    eps = np.finfo(dtype).eps
    assert np.allclose(drawn("exponential", 2.5), -2.5 * np.log(uniform), rtol=4 * eps, atol=0)
    assert np.allclose(drawn("uniform", -3, 4), 7 * uniform - 3, rtol=0, atol=8 * eps)


def test_a_closed_generator_is_refused():
    generator = Generator(host=True)
    generator.close()
    with pytest.raises(ValueError, match="closed"):
        generator.uniform(np.empty(4))


def record_all() -> None:
    with cuda.Device(0) as device:
        found = {"about": {"device": device.name, "curand": library("curand").get_version()}}
        found |= {name: record(case) for name, case in CASES.items()}
        found |= {f"{kind}, statuses": statuses(kind) for kind in KINDS}
    lines = [f"{json.dumps(name)}: {json.dumps(recorded)}" for name, recorded in found.items()]
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record_all()
