"""The record of a measurement: the figures that follow from its samples."""

import math

import numpy as np
import pytest

from cudart_py.benchmark import Measurement
from cudart_py.benchmark.record import interquartile_range, relative_error
from cudart_py.benchmark.table import lines
from cudart_py.benchmark.times import format_seconds

SAMPLES = (1.0e-3, 1.1e-3, 0.9e-3, 1.0e-3, 5.0e-3)


def test_the_median_ignores_an_outlier_and_rates_are_amounts_over_it():
    found = Measurement(SAMPLES, bytes=4_000_000_000, flops=2_000_000_000)
    assert found.median == 1.0e-3
    assert found.spread == pytest.approx(0.1)
    assert (found.gigabytes_per_second, found.teraflops_per_second) == pytest.approx((4000, 2))
    assert Measurement(SAMPLES).gigabytes_per_second is Measurement(SAMPLES).teraflops_per_second is None


@pytest.mark.parametrize(
    ("name", "ceiling", "fraction"),
    [("copy", 8e12, 0.5), (None, 8e12, 0.5), ("fp32", 4e12, 0.5), (None, None, None)],
)
def test_the_fraction_compares_bytes_with_bandwidths_and_operations_with_fp(name, ceiling, fraction):
    found = Measurement(SAMPLES, bytes=4_000_000_000, flops=2_000_000_000, ceiling=ceiling, ceiling_name=name)
    assert found.fraction == (None if fraction is None else pytest.approx(fraction))


@pytest.mark.parametrize(
    ("samples", "found"),
    [((), (None, None, None, None)), ((2.0,), (2.0, 0.0, None, 5e-8)), ((0.0, 0.0), (0.0, None, None, None))],
)
def test_of_few_samples_and_of_zero_seconds_less_is_known(samples, found):
    one = Measurement(samples, bytes=100, flops=100, ceiling=1.0)
    assert (one.median, one.spread, one.error, one.gigabytes_per_second) == found
    assert (one.timed, one.fraction is None) == (bool(samples), found[-1] is None)


@pytest.mark.parametrize(("count", "words"), [(0, "not timed"), (1, "1 launch"), (4, "4 launches")])
def test_what_was_not_timed_says_so_and_how_many_launches_were_counted(count, words):
    found = Measurement((), counters=({"kernel": "k"},) * count)
    assert words in str(found)
    assert words in found._repr_html_()


def test_the_table_counts_conflicts_of_loads_stores_and_atomics():
    metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
    launch = {"kernel": "k", "grid": (1, 1, 1), "block": (32, 1, 1)}
    launch |= {metric.format("ld"): 1, metric.format("st"): 20, metric.format("atom"): 300}
    assert list(lines([("test", Measurement((), counters=(launch,)))]))[-1].split()[-1] == "321"


def test_the_error_shrinks_with_the_root_of_the_count():
    few, many = [1.0, 1.1] * 10, [1.0, 1.1] * 40
    assert relative_error(few) / relative_error(many) == pytest.approx(2)
    assert math.isinf(relative_error([1.0]))
    assert (interquartile_range([1.0, 2.0]), interquartile_range([1.0])) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (
            {"bytes": 4e9, "ceiling": 8e12, "ceiling_name": "copy", "cache": "flushed"},
            "1 ms ± 10.0 %, 4,000 GB/s, 50.0 % of copy (5 samples, L2 flushed)",
        ),
        ({"batch": 300, "captured": True}, "of 300 calls in a graph"),
        ({"batch": 300, "streams": 5}, "5 streams of 300 calls"),
    ],
    ids=["rates", "a graph", "streams"],
)
def test_the_text_has_what_is_known(known, text):
    assert text in str(Measurement(SAMPLES, **known))


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (2.5e-3, "2.5 ms"), (2.5e-6, "2.5 us"), (2.5e-9, "2.5 ns"), (0, "0 ns")]
)
def test_times_are_written_in_the_unit_that_suits_them(seconds, text):
    assert format_seconds(seconds) == text


def test_the_dictionary_has_what_is_known_and_nothing_else():
    plain = {"batch": 3, "rejected": 1, "clock_mhz": 1980.0, "device": "a GPU", "streams": 5, "captured": True}
    known = Measurement(SAMPLES, bytes=4e9, **plain).as_dict()
    assert known["GB/s"] == pytest.approx(4000)
    assert known.items() >= plain.items()
    assert not {"TFLOP/s", "beside"} & known.keys()
    assert "streams" not in Measurement(SAMPLES).as_dict()
    assert Measurement(()).as_dict() == {}


def test_quantiles_and_histograms_are_numpys():
    samples = tuple(np.random.default_rng().lognormal(-7, 1, 137))
    found = Measurement(samples)
    for fraction in (0, 0.05, 0.5, 0.77, 1):
        assert found.quantile(fraction) == pytest.approx(np.quantile(samples, fraction))
    counts, edges = np.histogram(samples, 13)
    assert [one.samples for one in found.histogram(13)] == list(counts)
    assert [one.low for one in found.histogram(13)] == pytest.approx(edges[:-1])
    assert found.histogram(13)[-1].high == pytest.approx(edges[-1])
    bars = str(Measurement((1e-3,) * 3 + (2e-3,) + (3e-3,) * 6).histogram(2)).splitlines()
    assert [bar.split() for bar in bars] == [["1", "ms", "3", "█" * 17], ["2", "ms", "7", "█" * 40]]
    assert (Measurement(()).quantile(0.5), list(Measurement(()).histogram())) == (None, [])
    assert list(Measurement((2.0, 2.0)).histogram(5)) == [(2.0, 2.0, 2)]
    with pytest.raises(ValueError, match="'fraction'"):
        found.quantile(1.5)
