"""Generators, orderings, offsets, dimensions, distributions and captured draws make the numbers of an H200."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.libraries.record_random_numbers import CASES, KINDS, record, statuses

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
