"""Stream-ordered memory: what pools hold, and what a missing wait between two streams does."""

from __future__ import annotations

import cudart_py as cuda
from library_tour import timing
from library_tour.course import stream_ordered


def test_a_pool_keeps_what_is_freed_until_a_trim_returns_it_and_a_full_one_names_its_limit(rows):
    found = [rows[name].values for name in ("four arrays", "three freed", "all freed, trimmed")]
    assert [values["used MiB"] for values in found] == [256, 64, 0]
    assert found[0]["reserved MiB"] == found[1]["reserved MiB"] >= 256
    assert found[2]["reserved MiB"] == 0
    assert f"the pool holds {stream_ordered.CHUNK:,} at most" in rows["more than max_size"].note


def test_a_missing_wait_is_reported_as_a_race_and_only_memory_given_away_gives_wrong_numbers(rows):
    for name in ("used without a wait", "freed too early"):
        assert "race" in rows[name].note
        assert "in another stream" in rows[name].note
    assert rows["freed too early"].note.startswith("4,095 of 4,095 numbers are wrong.")
    assert "are wrong" not in rows["used without a wait"].note


def test_the_waiting_program_has_no_wrong_numbers(device):
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with cuda.checks("error"):
        assert stream_ordered.second_reads(first, second, lambda term: term.close(stream=second)) == ""


def test_the_costs_are_drawn_for_three_ways(device, monkeypatch):
    monkeypatch.setattr(stream_ordered, "CURVE", (2**12, 2**20))
    monkeypatch.setattr(timing, "call_ms", timing.waiting_ms)
    with cuda.MemoryPool() as keeping, cuda.MemoryPool(release_threshold=0) as returning:
        curve = stream_ordered.costs(keeping, returning)
    assert len(curve.lines) == 3
    assert all(us > 0 for points in curve.lines.values() for _, us in points)
