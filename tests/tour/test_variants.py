from __future__ import annotations

import numpy as np

import cudart_py as cuda
from library_tour import timing
from library_tour.stop import Limit
from library_tour.variants import Variant, measure

LIMIT = Limit("copy bandwidth")


def variant(launch, output, **options) -> Variant:
    return Variant(name="idea", launch=launch, output=output, expected=np.full(8, 3, np.int32), nbytes=32, **options)


def test_a_right_variant_holds():
    output = cuda.zeros(8, np.int32)
    [row] = measure([variant(lambda: cuda.memset(output, 3), output)], LIMIT)
    assert row.check.holds


def test_an_output_that_was_right_before_is_poisoned():
    output = cuda.full(8, 3, np.int32)
    [row] = measure([variant(lambda: None, output)], LIMIT)
    assert not row.check.holds
    assert "is -1, not 3" in row.check.detail


def test_an_output_that_is_an_input_is_prepared_instead():
    output = cuda.zeros(8, np.int32)
    [row] = measure([variant(lambda: None, output, prepare=lambda: cuda.memset(output, 3))], LIMIT)
    assert row.check.holds


def test_a_wrong_variant_is_never_timed(monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: True)
    [row] = measure([variant(lambda: None, cuda.zeros(8, np.int32))], LIMIT)
    assert "ms" not in row.values


def test_every_variant_is_checked_before_any_is_timed(monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: True)
    order = []
    monkeypatch.setattr(timing, "median_ms", lambda work: order.append("time") or 1.0)
    output = cuda.zeros(8, np.int32)

    def launch() -> None:
        order.append("check")
        cuda.memset(output, 3)

    rows = measure([variant(launch, output)] * 2, Limit("copy bandwidth", rate=1.0))
    assert order == ["check", "check", "time", "time"]
    assert rows[0].values == {"ms": 1.0, "GB/s": 32e-6, "of limit": 32e-6}


def test_without_a_gpus_clock_there_are_no_times(monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: False)
    output = cuda.zeros(8, np.int32)
    [row] = measure([variant(lambda: cuda.memset(output, 3), output, columns={"calls": 1})], LIMIT)
    assert row.values == {"calls": 1}


def test_what_the_driver_cannot_run_is_a_row_that_says_so():
    def refuse() -> None:
        raise cuda.NotSupportedError("no such instruction")

    [row] = measure([variant(refuse, cuda.zeros(8, np.int32))], LIMIT)
    assert row.check is None
    assert row.note == "this driver cannot run it: no such instruction"
