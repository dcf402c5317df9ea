from __future__ import annotations

from library_tour import host_latency, timing


def test_the_host_has_a_row_for_each_size_where_there_are_times(monkeypatch):
    assert 0 < host_latency.host_step(1 << 14) < 1e6
    monkeypatch.setattr(host_latency, "OTHERS", (1 << 15, 1 << 16))
    monkeypatch.setattr(timing, "available", lambda: True)
    rows = host_latency.host_latencies()
    assert [row.name for row in rows] == ["host, 32 KiB", "host, 64 KiB"]
    assert all(row.values["ns"] >= 0 for row in rows)
    monkeypatch.setattr(timing, "available", lambda: False)
    assert host_latency.host_latencies() == []
