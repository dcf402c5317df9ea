"""Generators: known numbers, offsets, distributions, and what is refused."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.libraries.random.generators import KINDS, Generator, log_normal, normal, poisson, uniform

stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")

# The host's MT19937 takes seconds to begin; it has a test of its own.
QUICK = [kind for kind in KINDS if kind != "mt19937"]
SEEDED = [kind for kind in QUICK if KINDS[kind].seeded]


def dtype_of(kind: str) -> type:
    return np.uint64 if KINDS[kind].bits == 64 else np.uint32


def bits(kind: str, count: int, **options) -> np.ndarray:
    return Generator(kind, host=True, **options).bits(np.empty(count, dtype_of(kind)))


@functools.cache
def beginning(kind: str) -> np.ndarray:
    """Some generators take a second to begin."""
    return bits(kind, 40_100)


def philox(counter: int, key: int = 0) -> list[int]:
    """Philox 4x32-10 as its authors have it: ten rounds of two products."""
    x, k = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)], [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [
            second >> 32 ^ x[1] ^ k[0],
            second & 0xFFFFFFFF,
            first >> 32 ^ x[3] ^ k[1],
            first & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def test_philox_begins_with_the_known_numbers():
    assert [f"{number:08x}" for number in bits("philox", 4)] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def test_our_philox_has_the_known_numbers():
    """The published test vectors: counter and key of zeros, of ones, and of digits of pi."""
    assert [f"{x:08x}" for x in philox(0)] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    ones = philox(2**128 - 1, 2**64 - 1)
    assert [f"{x:08x}" for x in ones] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]
    counter = 0x0370734413198A2E85A308D3243F6A88
    assert [f"{x:08x}" for x in philox(counter, 0x299F31D0A4093822)] == ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"]


def test_philoxs_groups_of_four_are_streams_of_one_counter_each():
    """Group i of four is the first of subsequence i, whose counter has i in its upper half."""
    expected = [number for group in range(6) for number in philox(group << 64)]
    assert bits("philox", 24).tolist() == expected


def test_mt19937_begins_as_its_authors_seeding_does():
    """The first of its interleaved streams is the sequence of the seed. Making the streams takes seconds."""
    generator = Generator("mt19937", 0, host=True)
    first = generator.bits(np.empty(4096, np.uint32))
    assert first[0] == np.random.RandomState(0).randint(2**32, dtype=np.uint32)
    assert len(np.unique(np.concatenate([first, generator.bits(np.empty(4096, np.uint32))]))) > 8180


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].offsets])
@pytest.mark.parametrize("skipped", [1, 5, 4096, 10_001])
def test_an_offset_is_the_same_as_skipping(kind, skipped):
    if kind == "philox":
        skipped *= 4  # cuRAND takes whole groups
    assert np.array_equal(bits(kind, 64, offset=skipped), beginning(kind)[skipped : skipped + 64])


@pytest.mark.parametrize("kind", QUICK)
def test_two_calls_continue_one_sequence(kind):
    generator = Generator(kind, host=True)
    parts = [generator.bits(np.empty(4096, dtype_of(kind))) for _ in range(2)]
    assert np.array_equal(np.concatenate(parts), beginning(kind)[:8192])


@pytest.mark.parametrize("kind", QUICK)
def test_host_and_device_generators_agree(device, kind):
    """Under the ordering that makes them agree, where there is a choice."""
    options = {"ordering": "legacy"} if KINDS[kind].seeded else {}
    device = Generator(kind, **options).bits(cuda.empty(20_001, dtype_of(kind))).to_host()
    assert np.array_equal(device, bits(kind, 20_001, **options))


def test_sobol_is_scipys_sequence():
    points, dimensions = 256, 40
    ours = bits("sobol", points * dimensions, dimensions=dimensions).reshape(dimensions, points).T / 2.0**32
    theirs = stats.qmc.Sobol(dimensions, scramble=False).random(points)
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("kind", SEEDED)
def test_seeds_make_different_numbers(kind):
    first, again, other = (bits(kind, 64, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("kind", QUICK)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_numbers_are_uniform_and_above_zero(kind, dtype):
    found = Generator(kind, host=True).uniform(np.empty(100_000, dtype))
    assert found.min() > 0
    assert found.max() <= 1
    counts = np.histogram(found, 64, (0, 1))[0]
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("kind", SEEDED)
def test_normal_numbers_have_their_moments(kind):
    found = Generator(kind, 3, host=True).normal(np.empty(200_000), 5.0, 2.0)
    assert abs(found.mean() - 5) < 6 * 2 / np.sqrt(found.size)
    assert abs(found.std() - 2) < 0.02
    assert stats.kstest((found[:20_000] - 5) / 2, "norm").pvalue > 1e-6


def test_log_normal_numbers_are_exponentials():
    first = Generator("philox", host=True).normal(np.empty(100), 0.5, 0.25)
    assert np.allclose(Generator("philox", host=True).log_normal(np.empty(100), 0.5, 0.25), np.exp(first))


@pytest.mark.parametrize("rate", [4.5, 400_000])
def test_poisson_numbers_have_their_rate(rate):
    found = Generator("philox", host=True).poisson(np.empty(100_000, np.uint32), rate)
    assert abs(found.mean() - rate) < 6 * np.sqrt(rate / found.size)


def test_generators_fill_device_arrays(device):
    generator = Generator("philox")
    assert [f"{x:08x}" for x in generator.bits(cuda.empty(2, np.uint32)).to_host()] == ["6627e8d5", "e169c58d"]


def test_the_module_has_a_generator_of_its_own(device, record):
    made = record("curand", "create_generator")
    arrays = [uniform((4, 5)), uniform((4, 5), np.float64), normal(8), log_normal(8), poisson(8, rate=2.0)]
    assert [array.shape for array in arrays] == [(4, 5), (4, 5), (8,), (8,), (8,)]
    assert len(made) == 1
    out = cuda.empty(10, np.float32)
    assert uniform(out=out) is out


BAD = {
    "kind": (
        lambda: Generator("dice", host=True),
        ValueError,
        "'kind' must be one of 'xorwow', .*dice",
    ),
    "seed": (lambda: Generator(seed=-1, host=True), ValueError, "'seed' must be an int from 0 to"),
    "seed's type": (lambda: Generator(seed=1.5, host=True), TypeError, "'seed' must be an int, not the float 1.5"),
    "seed of sobol": (
        lambda: Generator("sobol", 7, host=True),
        ValueError,
        "seed=7: the generator 'sobol' takes no seed",
    ),
    "offset": (lambda: Generator("mt19937", offset=3, host=True), ValueError, "offset=3: .* has no offsets"),
    "dimensions": (lambda: Generator(dimensions=3, host=True), ValueError, "dimensions=3: .* not quasi-random"),
    "ordering": (
        lambda: Generator(ordering="random", host=True),
        ValueError,
        "ordering='random' is not an ordering of cuRAND",
    ),
    "dtype": (lambda: Generator(host=True).uniform(np.empty(4, np.int32)), TypeError, "out has dtype int32"),
    "odd": (lambda: Generator(host=True).normal(np.empty(3)), ValueError, "out has 3 elements; .* in pairs: .* of 4"),
    "odd shape": (
        lambda: normal((3, 5)),
        ValueError,
        r"normal: argument 'shape' asks for 15 numbers, .* normal\(16\)\[:15\]$",
    ),
    "odd count": (lambda: log_normal(3), ValueError, r"asks for 3 numbers, .* log_normal\(4\)\[:3\]$"),
    "points": (
        lambda: Generator("sobol", dimensions=3, host=True).uniform(np.empty(4)),
        ValueError,
        "out has 4 elements, no multiple of the 3 dimensions",
    ),
    "deviation": (lambda: Generator(host=True).normal(np.empty(4), 0, -1), ValueError, "deviation=-1 is not positive"),
    "mean's type": (lambda: Generator(host=True).normal(np.empty(4), "x"), TypeError, "mean must be a number, not str"),
    "deviation's type": (
        lambda: Generator(host=True).log_normal(np.empty(4), 0.0, None),
        TypeError,
        "deviation must be a number, not NoneType",
    ),
    "rate's type": (
        lambda: Generator(host=True).poisson(np.empty(4, np.uint32), "x"),
        TypeError,
        "rate must be a number, not str",
    ),
    "rate": (lambda: Generator(host=True).poisson(np.empty(4, np.uint32), 0), ValueError, "rate=0 is not above 0"),
    "high rate": (
        lambda: Generator(host=True).poisson(np.empty(4, np.uint32), 400_000.5),
        ValueError,
        "rate=400000.5 is not above 0, or exceeds 400000",
    ),
    "endless rate": (
        lambda: Generator(host=True).poisson(np.empty(4, np.uint32), math.inf),
        ValueError,
        "rate=inf is not above 0, or exceeds 400000",
    ),
    "gaps": (lambda: Generator(host=True).uniform(np.empty(8)[::2]), TypeError, "out must be a contiguous NumPy array"),
    "uniform's list": (lambda: Generator(host=True).uniform([0.0]), TypeError, "out must be a contiguous NumPy array"),
    "normal's list": (lambda: Generator(host=True).normal([0.0]), TypeError, "out must be a contiguous NumPy array"),
    "bits' list": (lambda: Generator(host=True).bits([0]), TypeError, "out must be a contiguous NumPy array"),
    "poisson's list": (lambda: Generator(host=True).poisson([0], 3), TypeError, "out must be a contiguous NumPy array"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(case):
    call, kind, text = BAD[case]
    with pytest.raises(kind, match=text):
        call()


def test_a_host_array_for_the_device_is_refused(device):
    with pytest.raises(TypeError, match="out must be a DeviceArray, not ndarray"):
        Generator().uniform(np.empty(4))


def test_what_is_no_stream_is_refused(device):
    with pytest.raises(TypeError, match="stream must be a cudart_py Stream or None, not str"):
        Generator().uniform(cuda.empty(4, np.float32), stream="0")


def test_a_closed_generator_is_refused():
    generator = Generator(host=True)
    generator.close()
    with pytest.raises(ValueError, match="closed"):
        generator.uniform(np.empty(4))
