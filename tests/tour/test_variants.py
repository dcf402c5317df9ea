from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import counters, timing
from library_tour.stop import Check, Limit, Row
from library_tour.variants import Variant, measure, of_slowest, side_by_side

METRICS = [f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("sectors", "requests")]
LIMIT = Limit("copy bandwidth")


def variant(launch, output, **options) -> Variant:
    return Variant(name="idea", launch=launch, output=output, expected=np.full(8, 3, np.int32), amount=32, **options)


def test_an_output_is_poisoned_and_one_that_is_an_input_prepared_instead_and_only_a_gpus_clock_gives_times(monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: False)
    output, columns = cuda.full(8, 3, np.int32), {"calls": 1}
    prepared = variant(lambda: None, output, prepare=lambda: cuda.memset(output, 3), columns=columns)
    first, second = measure([variant(lambda: None, output), prepared], LIMIT)
    assert "is -1, not 3" in first.check.detail
    assert (second.check.holds, second.values) == (True, columns)


def test_the_state_is_made_before_the_check_and_each_timed_launch(monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: True)
    output, order = cuda.zeros(8, np.int32), []

    def launch() -> None:
        order.append("launch")
        cuda.memset(output, 3)

    measure([variant(launch, output, before=lambda: order.append("before"))], LIMIT)
    assert order == ["before", "launch"] * (1 + timing.FRESH_TIMES)


def test_every_variant_is_checked_before_any_is_timed_and_a_wrong_one_never(monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: True)
    order = []
    monkeypatch.setattr(timing, "median_ms", lambda work, quick: order.append("time") or 1.0)
    output = cuda.zeros(8, np.int32)

    def launch() -> None:
        order.append("check")
        cuda.memset(output, 3)

    wrong = variant(lambda: None, output)
    rows = measure([*[variant(launch, output)] * 2, wrong], Limit("copy bandwidth", rate=1.0))
    assert order == ["check", "check", "time", "time"]
    assert "ms" not in rows[2].values
    assert rows[0].values == {"ms": 1.0, "GB/s": 32e-6, "of limit": 32e-6}


def test_what_the_driver_cannot_run_is_a_row_that_says_so():
    def refuse() -> None:
        raise cuda.errors.NotSupportedError("no such instruction")

    [row] = measure([variant(refuse, cuda.zeros(8, np.int32))], LIMIT)
    assert (row.check, row.note) == (None, "Skipped: no such instruction")


@pytest.mark.needs("profile")
def test_counters_become_columns_but_those_that_the_driver_does_not_have(monkeypatch):
    output = cuda.zeros(8, np.int32)
    monkeypatch.setattr(counters, "available", lambda: True)
    launch = SimpleNamespace(grid=(2, 1, 1), metrics=dict.fromkeys(METRICS, 12) | {METRICS[1]: 3})
    monkeypatch.setattr(cuda, "profile", lambda: nullcontext(SimpleNamespace(launches=[launch, launch])))
    [row] = measure([variant(lambda: cuda.memset(output, 3), output)], LIMIT, ["sectors/load", "loads", "conflicts"])
    assert row.values == {"sectors/load": 4.0, "loads": 6}


def test_wide_loads_use_all_that_they_move_and_shared_atomics_count_as_loads_and_stores_do():
    metrics = {METRICS[0]: 16, "smsp__sass_data_bytes_mem_global_op_ld.sum": 512}
    assert counters.values(metrics, ["load efficiency", "sectors/load"]) == {"load efficiency": 1.0}
    for column, name in (("conflicts", "bank_conflicts_pipe_lsu"), ("wavefronts", "pipe_lsu_wavefronts")):
        counts = {"ld": 1, "st": 20, "atom": 300}
        metrics = {f"l1tex__data_{name}_mem_shared_op_{kind}.sum": count for kind, count in counts.items()}
        assert counters.values(metrics, [column]) == {column: 321}


def test_cases_stand_side_by_side_and_the_slowest_has_the_share_of_the_limit():
    right, wrong, limit = Check("it is", True), Check("it is", False, "it is not"), Limit("copy bandwidth", rate=4.0)
    first = [Row("a", {"GB/s": 1.0}, right), Row("b", note="not here")]
    second = [Row("a", {"GB/s": 2.0}, wrong), Row("b", {"GB/s": 3.0}, right)]
    a, b = side_by_side({"few": first, "many": second}, "GB/s")
    assert a.values == {"few": 1.0, "many": 2.0}
    assert (a.check.holds, a.check.detail) == (False, "it is not")
    assert (b.values, b.check.holds, b.note) == ({"many": 3.0}, True, "not here")
    assert of_slowest(a, limit).values["of limit"] == 0.25
    assert of_slowest(Row("a"), limit) == Row("a")
