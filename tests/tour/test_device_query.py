"""Limits and peaks in device_query."""

import dataclasses

import pytest

import cudart_py as cuda
from library_tour.course import device_query


@pytest.fixture
def tables(result):
    return [{row.name: row.values for row in rows} for rows in result.tables.values()]


def test_capabilities_with_equal_limits_share_a_row(tables):
    held, allowed, peaks = tables
    assert held["1.0 to 1.1"] == {"threads": 768, "warps": 24, "blocks": 8, "registers": 8192, "shared KiB": 16}
    assert held["2.0 to 2.1"]["warps"] == 48
    assert allowed["3.0"]["per thread"] == 63
    assert allowed["1.2 to 1.3"]["max grid (x, y, z)"] == "65535 x 65535 x 1"
    assert [peaks[f"course: {name}"]["fp32 / fp64"] for name in ("T1000", "V100")] == [32, 2]


def test_every_known_capability_is_in_one_row(tables):
    for table in tables[:2]:
        edges = [tuple(map(float, name.split(" to "))) for name in table]
        for capability in cuda.MULTIPROCESSORS:
            number = float("{}.{}".format(*capability))  # minor versions have one digit
            assert sum(edge[0] <= number <= edge[-1] for edge in edges) == 1, capability


def test_a_device_that_the_table_does_not_describe_is_noticed(device):
    odd = dataclasses.replace(device.properties, max_threads_per_sm=96)
    check = device_query.agreement(odd)
    assert not check.holds
    assert "'threads': 96" in check.detail


def test_a_devices_gflops_per_watt_are_its_peak_over_its_power(device, monkeypatch):
    monkeypatch.setattr(device_query, "power_limit", lambda address: 700.0)
    ours = device_query.peaks(device.properties)[0].values
    if "fp32 TFLOP/s" in ours:
        assert ours["GFLOP/s per W"] == pytest.approx(1e3 * ours["fp32 TFLOP/s"] / 700)
