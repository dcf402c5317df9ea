"""Devices, contexts and limits."""

import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

import cudart_py as cuda
from cudart_py.context.current import this_thread
from cudart_py.driver import calls
from tests.interrupts import interrupted


def test_devices_lists_them_all_in_order_and_others_are_a_value_error_naming_the_count():
    assert [d.ordinal for d in cuda.devices()] == list(range(len(cuda.devices())))
    for device in cuda.devices():
        assert cuda.Device(device.ordinal) is pickle.loads(pickle.dumps(device)) is device
    with pytest.raises(ValueError, match="argument 'ordinal' must be an int from 0 to .* not the int 99"):
        cuda.Device(99)


def test_attributes_are_plausible(device):
    p = device.properties
    assert device.compute_capability >= (7, 5)
    assert device.arch == "sm_{}{}".format(*device.compute_capability)
    assert p.warp_size == 32
    assert p.max_grid_dim[0] == 2**31 - 1
    assert p.max_block_dim == (1024, 1024, 64)
    assert p.shared_memory_per_block == 49152
    assert p.shared_memory_per_block <= p.shared_memory_per_block_optin <= p.shared_memory_per_sm
    assert p.sm_count > 0
    assert p.single_to_double_ratio in (1, 2, 3, 4, 8, 16, 24, 32, 64)
    assert p.total_memory >= 2**30
    assert device.name
    info = device.memory_info
    assert 0 < info.free <= info.total
    assert info.used == info.total - info.free
    assert cuda.driver_version()[0] == 13


def test_with_makes_a_device_current_and_restores_the_callers_context():
    before = int(calls.api.cuCtxGetCurrent())
    with cuda.Device(0) as device:
        assert int(calls.api.cuCtxGetCurrent()) == int(device.context)
        with cuda.Device(0):
            assert cuda.current_device() is device
        assert cuda.current_device() is device
    assert int(calls.api.cuCtxGetCurrent()) == before


def in_a_thread(function):
    """Run a function in a new thread, where no device is current yet; return its result."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


@pytest.mark.parametrize("way", [cuda.Device.__enter__, cuda.Device.__exit__])
def test_an_interrupt_on_the_way_into_a_device_or_out_of_it_leaves_the_one_before(device, way):
    def enter_and_leave():
        with device:
            pass

    def interrupt():
        step = 1
        while interrupted(enter_and_leave, {way.__code__}, step):
            assert (this_thread.device, this_thread.stack) == (None, []), f"interrupt {step}"
            assert int(calls.api.cuCtxGetCurrent()) == 0, f"interrupt {step}"
            step += 1
        assert step > 2

    in_a_thread(interrupt)


def test_the_last_device_restores_the_first(device):
    last = cuda.devices()[-1]
    with last:
        assert cuda.current_device() is last
        array = cuda.zeros(5)
        assert array.device is last
    assert cuda.current_device() is device
    assert (array.to_host() == 0).all()


def test_a_context_of_another_librarys_that_is_not_the_primary_one_is_refused(device, monkeypatch):
    monkeypatch.setitem(vars(calls.api), "cuCtxGetCurrent", lambda: 0x1234)
    monkeypatch.setitem(vars(calls.api), "cuCtxGetDevice", lambda: 0)
    with pytest.raises(cuda.errors.InvalidContextError, match="not the primary context of device 0; use `with"):
        in_a_thread(cuda.current_device)


def test_limits_are_read_and_set(device):
    before = device.limits.stack_size
    device.limits.stack_size = before * 2
    try:
        assert device.limits.stack_size >= before * 2
    finally:
        device.limits.stack_size = before
    assert "stack_size=" in repr(device.limits)
    with pytest.raises(ValueError, match="'stack_size' .* not the int -1"):
        device.limits.stack_size = -1


def test_a_device_is_no_peer_of_itself(device):
    with pytest.raises(ValueError, match="always has access"):
        device.enable_peer(device)


def test_every_attribute_is_there_by_its_name(device):
    p, attributes = device.properties, device.attributes
    assert device.attribute("multiprocessor_count") == p.sm_count
    assert device.attribute("WARP_SIZE") == attributes["warp_size"] == 32
    assert device.attribute("CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE") == p.l2_cache_size
    assert attributes["compute_capability_major"] == device.compute_capability[0]
    assert {"maximum_texture2d_width", "gpu_overlap", "cluster_launch", "mem_sync_domain_count"} <= set(attributes)
    assert "max" not in attributes
    assert all(device.attribute(name) == value for name, value in list(attributes.items())[:20])


def test_an_unknown_attribute_names_the_nearest_ones(device):
    with pytest.raises(ValueError, match=r"Device.attribute: argument 'name' .*; did you mean 'warp_size'\?"):
        device.attribute("warp_sise")


def test_a_device_is_found_by_its_pci_address_and_its_uuid(device):
    known = device.properties
    for address in (known.pci_bus_id, known.pci_bus_id.lower(), f"0000{known.pci_bus_id}"):
        assert cuda.Device.from_pci_bus_id(address) is device
    for identity in (known.uuid, str(known.uuid), f"GPU-{known.uuid}", str(known.uuid).upper()):
        assert cuda.Device.from_uuid(identity) is device


@pytest.mark.parametrize(
    "address",
    [
        "",
        "1",
        "fe:1f.7",
        "0000:fe:1f.7",
        "fe:1f",
        "0000:01:00.0x",
        "01:00.0\n",
    ],
)
def test_an_address_of_no_device_lists_those_of_the_devices(device, address):
    with pytest.raises(ValueError, match=rf"'pci_bus_id' must be .* there is {device.properties.pci_bus_id}"):
        cuda.Device.from_pci_bus_id(address)


@pytest.mark.parametrize("identity", ["", "GPU-", "8932f937", uuid.UUID(int=5)])
def test_a_uuid_of_no_device_lists_those_of_the_devices(device, identity):
    with pytest.raises(ValueError, match=rf"'uuid' must be .* there is {device.properties.uuid}"):
        cuda.Device.from_uuid(identity)


def test_an_identity_of_the_wrong_type_is_refused():
    with pytest.raises(TypeError, match="'pci_bus_id' must be a str, not the int 1"):
        cuda.Device.from_pci_bus_id(1)
    with pytest.raises(TypeError, match="'uuid' must be a UUID or its text, not the bytes"):
        cuda.Device.from_uuid(bytes(16))


def test_devices_are_ordered_by_their_ordinals_and_can_be_keys(device):
    assert sorted({*cuda.devices()}) == [*cuda.devices()]
    assert device <= device
    assert not device < device
    assert {device: "first"}[cuda.Device(0)] == "first"
    with pytest.raises(TypeError):
        device < 1  # noqa: B015  # the comparison itself raises
