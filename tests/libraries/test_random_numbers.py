"""Generators on the host and the module's own; what a GPU's make is recorded for test_random_sequences.py."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.random.generators import KINDS, Generator, log_normal, normal, poisson, uniform

pytestmark = pytest.mark.needs("libraries")


# The host's MT19937 takes seconds to begin.
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
