"""Generators, orderings, offsets, dimensions, distributions and captured draws make the numbers of an H200.

Those of the host, whose numbers nobody has recorded, agree with them, and are distributed as asked for.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.random.generators import KINDS, Generator, log_normal, normal, poisson, uniform
from tests.libraries.record_random_numbers import CASES, record, statuses

pytestmark = pytest.mark.needs("libraries")

RECORDED = json.loads((Path(__file__).parent / "data" / "random_numbers.json").read_text())
# A GPU's generators of these kinds keep many states, which each launch of a graph moves on, while the library counts a
# captured draw once. So what is drawn after a graph's first launch has an order of its own.
MOVED_BY_GRAPHS = ("xorwow", "mrg32k3a", "philox")
# Which order this is depends on the device.
DYNAMIC = [name for name, case in CASES.items() if case.ordering == "dynamic"]
# What generators of these kinds do by default here: they take seconds to prepare.
AT_ONCE = {"mt19937": (), "mrg32k3a": ("mrg32k3a, bits", "mrg32k3a, offset 3")}


def later(kind, name=""):
    """Return the marks of a case."""
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


RECORDED_KINDS = [kind for kind in KINDS if f"{kind}, statuses" in RECORDED]


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=later(kind)) for kind in RECORDED_KINDS])
def test_calls_are_refused_as_by_an_h200(device, kind):
    assert statuses(kind) == RECORDED[f"{kind}, statuses"]


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.exhaustive] * (k == "mt19937")) for k in KINDS])
def test_host_and_device_generators_agree(device, kind):
    """Under the ordering that makes them agree, where there is a choice."""
    options = {"ordering": "legacy"} if KINDS[kind].seeded else {}
    dtype = np.uint64 if KINDS[kind].bits == 64 else np.uint32
    there = Generator(kind, **options).bits(cuda.empty(20_001, dtype)).to_host()
    here = Generator(kind, host=True, **options)
    assert np.array_equal(there, np.concatenate([here.bits(np.empty(count, dtype)) for count in (20_000, 1)]))
    if KINDS[kind].offsets:
        skipped = 400  # of Philox whole groups of four
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
    arrays = [uniform((4, 5)), uniform((4, 5), np.float64), normal(8), log_normal(8), poisson(8, rate=2.0)]
    assert [array.shape for array in arrays] == [(4, 5), (4, 5), (8,), (8,), (8,)]
    assert len(made) == 1
    out = cuda.empty(10, np.float32)
    assert uniform(out=out) is out


def test_a_closed_generator_is_refused():
    generator = Generator(host=True)
    generator.close()
    with pytest.raises(ValueError, match="closed"):
        generator.uniform(np.empty(4))
