import pytest

import cudart_py as cuda
from library_tour.course import peer
from library_tour.runner import run_stop
from tests.tour.outcomes import counted, on_devices

CASES = """
from library_tour import timing
from library_tour.course import peer

def once(work, stream=None, quick=False):
    work()
    cuda.legacy_default.synchronize()
    return 1.0

cases = {size: found("peer", size) for size in (1, peer.CHECKED + 5, 4096)}
cases["enabled"] = cuda.Device(0).peer_enabled(cuda.Device(1))
peer.KERNELS, right = {"copy_words": 2, "copy_vectors": 16}, peer.KERNELS
cases["wrong"] = found("peer", 1003)
peer.KERNELS = right
timing.available, timing.median_ms = lambda: True, once
cases["timed"] = found("peer", 1003)
json.dump(cases, sys.stdout)
"""


@pytest.fixture(scope="module")
def cases():
    """Return outcomes on two devices, from a new process, since a driver's number of devices cannot change."""
    if len(cuda.devices()) < 2 and "profile" not in cuda.capabilities():
        pytest.skip("this machine has one device")
    return on_devices(2, CASES)


def test_it_passes_between_two_devices_and_takes_access_back(cases):
    for size in (1, peer.CHECKED + 5, 4096):
        assert (cases[str(size)]["state"], cases[str(size)]["failed"]) == ("passed", [])
    assert not cases["enabled"]
    rows = cases["4096"]["rows"]
    assert [name for name in rows if name not in peer.__doc__] == []
    assert "device 1 has no access" in rows["access has one direction"]["note"]


@counted
def test_wider_loads_are_fewer(cases):
    rows = cases["4096"]["rows"]
    words, vectors = (rows[name]["values"]["loads"] for name in ("kernel reads", "kernel reads 16 bytes"))
    assert words == 4 * vectors == 128


def test_times_become_rates_and_a_latency_and_a_kernel_that_omits_elements_is_noticed(cases):
    timed = cases["timed"]
    assert timed["state"] == "passed"
    assert timed["pictures"] == ["bandwidth"]
    assert timed["rows"]["copy, peer access"]["values"]["of limit"] == 1
    assert timed["rows"]["copy of 64 bytes"]["values"]["us"] == 1000
    assert "of limit" not in timed["rows"]["copies both ways at once"]["values"]
    assert cases["wrong"]["failed"] == ["kernel reads equals NumPy's result"]


def test_with_one_device_the_stop_names_its_need_and_runs_the_other_rows(monkeypatch, nothing_apart, device):
    monkeypatch.setattr(cuda, "devices", lambda: (device,))
    outcome = run_stop("peer", device, 1003)
    assert (outcome.state, outcome.result.notes[-1]) == ("passed", peer.NEEDS)
    assert [row.name for row in outcome.result.rows if row.note != "not run"] == ["copy within one device"]
