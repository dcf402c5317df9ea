"""Multicast objects: the checks, and the driver calls in order.

A mistake with the driver's multicast functions can make devices unavailable to all programs on the machine. So these
tests never call them: functions that record their calls replace the driver's.
"""

import gc

import pytest

import cudart_py as cuda
from cudart_py import multicast
from cudart_py.driver import capabilities, enums

UNIT = 2 << 20
CREATED, MEMORY = 0x1000, 0x2000


class StandIn:
    """A driver of devices behind NVSwitch, which records its calls; `statuses` are those of functions that fail."""

    def __init__(self, calls, raises):
        self.calls, self.raises, self.statuses = calls, raises, {}

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            value = {"cuMulticastGetGranularity": UNIT, "cuMulticastCreate": CREATED}.get(name)
            return value if self.raises else (self.statuses.get(name, enums.CUresult.CUDA_SUCCESS),)

        return call


@pytest.fixture
def calls(monkeypatch, device):
    calls = []
    monkeypatch.setattr(capabilities, "capabilities", lambda: frozenset({"multicast"}))
    monkeypatch.setattr(multicast, "api", StandIn(calls, raises=True))
    monkeypatch.setattr(multicast, "raw", StandIn(calls, raises=False))
    yield calls
    gc.collect()  # the stand-in, not the next test's and not the driver, releases what the test has left


def test_an_object_lives_through_these_calls(calls, device):
    with multicast.MulticastObject(4 * UNIT, 1) as team:
        (_, created), (_, properties) = calls[0][:2], calls[1]
        assert (created.size, created.numDevices, created.flags) == (4 * UNIT, 1, 0)
        assert properties.size == 4 * UNIT
        assert (team.handle, team.nbytes, team.device_count, team.devices) == (CREATED, 4 * UNIT, 1, ())
        team.add_device(device)
        assert team.devices == (device,)
        team.bind(MEMORY, UNIT, offset=2 * UNIT, memory_offset=3 * UNIT)
        team.unbind(device, UNIT, offset=2 * UNIT)
        assert repr(team) == "<MulticastObject of 8,388,608 bytes on 1 devices>"
    team.close()
    assert [name for name, *_ in calls[:2]] == ["cuMulticastGetGranularity", "cuMulticastCreate"]
    assert calls[2:] == [
        ("cuMulticastAddDevice", CREATED, device.handle),
        ("cuMulticastBindMem", CREATED, 2 * UNIT, MEMORY, 3 * UNIT, UNIT, 0),
        ("cuMulticastUnbind", CREATED, device.handle, 2 * UNIT, UNIT),
        ("cuMemRelease", CREATED),
    ]


def test_the_granularity_is_the_recommended_or_the_smallest_one(calls):
    flags = enums.CUmulticastGranularity_flags
    assert multicast.granularity(UNIT, 2) == UNIT
    assert multicast.granularity(UNIT, 2, minimum=True) == UNIT
    assert [option for _, _, option in calls] == [
        flags.CU_MULTICAST_GRANULARITY_RECOMMENDED,
        flags.CU_MULTICAST_GRANULARITY_MINIMUM,
    ]


def test_a_device_that_the_driver_refuses_is_not_part_of_the_object(calls, device):
    team = multicast.MulticastObject(UNIT, 1)
    multicast.raw.statuses["cuMulticastAddDevice"] = enums.CUresult.CUDA_ERROR_INVALID_DEVICE
    with pytest.raises(cuda.CudaError, match="NVSwitch must connect the device") as raised:
        team.add_device(device)
    assert raised.value.call == "cuMulticastAddDevice"
    assert team.devices == ()


BAD = {
    "size": (
        lambda t, d: multicast.MulticastObject(UNIT + 1, 1),
        ValueError,
        "MulticastObject: argument 'nbytes' must be a multiple",
    ),
    "no bytes": (
        lambda t, d: multicast.MulticastObject(0, 1),
        ValueError,
        "MulticastObject: argument 'nbytes' must be an int from 1",
    ),
    "count": (
        lambda t, d: multicast.MulticastObject(UNIT, 0),
        ValueError,
        "MulticastObject: argument 'device_count' must be",
    ),
    "minimum": (
        lambda t, d: multicast.granularity(UNIT, 1, minimum=1),
        TypeError,
        "multicast.granularity: argument 'minimum'",
    ),
    "device": (
        lambda t, d: t.add_device(0),
        TypeError,
        "MulticastObject.add_device: argument 'device' must be a Device",
    ),
    "twice": (
        lambda t, d: (t.add_device(d), t.add_device(d)),
        ValueError,
        "argument 'device' must be a device that has not been added",
    ),
    "missing": (
        lambda t, d: t.bind(MEMORY, UNIT),
        ValueError,
        "MulticastObject.bind: 1 of 1 devices have not been added",
    ),
    "memory": (
        lambda t, d: t.bind(0, UNIT),
        ValueError,
        "MulticastObject.bind: argument 'memory' must be an int from 1",
    ),
    "past the end": (
        lambda t, d: t.bind(MEMORY, 2 * UNIT, offset=UNIT),
        ValueError,
        "argument 'offset' must be an int from 0 to 0",
    ),
    "misaligned": (
        lambda t, d: t.bind(MEMORY, UNIT, memory_offset=5),
        ValueError,
        "argument 'memory_offset' must be a multiple",
    ),
    "other device": (
        lambda t, d: t.unbind(d, UNIT),
        ValueError,
        "MulticastObject.unbind: argument 'device' must be a device that has",
    ),
    "closed": (lambda t, d: (t.close(), t.add_device(d)), ValueError, "this MulticastObject is closed"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named(calls, device, case):
    call, error, text = BAD[case]
    team = multicast.MulticastObject(2 * UNIT, 1)
    with pytest.raises(error, match=text):
        call(team, device)
    assert not any("Bind" in name or "Unbind" in name for name, *_ in calls)


def test_without_the_capability_nothing_is_called(calls, monkeypatch):
    monkeypatch.setattr(capabilities, "capabilities", frozenset)
    for call in (multicast.granularity, multicast.MulticastObject):
        with pytest.raises(cuda.errors.NotSupportedError, match="lacks the capability 'multicast': no device is conn"):
            call(UNIT, 1)
    assert calls == []


def test_the_capability_is_what_the_devices_report(device):
    assert ("multicast" in cuda.capabilities()) == any(each.attribute("multicast_supported") for each in cuda.devices())
