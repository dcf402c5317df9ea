"""A device's status, of which a GPU's is from NVML."""

import os
from types import SimpleNamespace

import pytest

import cudart_py as cuda
from cudart_py.context import nvml
from cudart_py.context.nvml import DeviceProcess, status_at


@pytest.fixture
def library(monkeypatch):
    """Replace NVML by one that knows a single busy device, without a sensor for the power."""

    class NvmlError(Exception):
        pass

    def fail(*_):
        raise NvmlError("Not Supported")

    busy = SimpleNamespace(
        NvmlError=NvmlError,
        ClockType=SimpleNamespace(CLOCK_SM="sm", CLOCK_MEM="memory"),
        TemperatureSensors=SimpleNamespace(TEMPERATURE_GPU="gpu"),
        device_get_handle_by_pci_bus_id_v2={"0000:01:00.0": 1}.__getitem__,
        device_get_memory_info_v2=lambda handle: SimpleNamespace(total=1000, reserved=100, free=600, used=300),
        device_get_compute_running_processes_v3=lambda handle: [
            SimpleNamespace(pid=7, used_gpu_memory=250),
            SimpleNamespace(pid=8, used_gpu_memory=2**64 - 1),
        ],
        device_get_enforced_power_limit=lambda handle: 700_000,
        device_get_utilization_rates=lambda handle: SimpleNamespace(gpu=97, memory=3),
        device_get_power_usage=fail,
        device_get_temperature_v=lambda handle, sensor: {"gpu": 55}[sensor],
        device_get_clock_info=lambda handle, clock: {"sm": 1980, "memory": 3201}[clock],
    )
    monkeypatch.setattr(nvml, "nvml", lambda: busy)
    return busy


def test_readings_of_nvml_have_the_units_of_properties_and_a_missing_one_is_none(library):
    status = status_at("0000:01:00.0")
    assert status.memory == (600, 900)
    assert status.memory.used == 300
    assert status.processes == (DeviceProcess(7, 250), DeviceProcess(8, None))
    assert (status.temperature, status.power, status.power_limit) == (55, None, 700)
    assert (status.clock_rate, status.memory_clock_rate, status.utilization) == (1_980_000, 3_201_000, 0.97)


def test_a_device_that_nvml_does_not_know_is_not_supported(library):
    def unknown(address):
        raise library.NvmlError("Not Found")

    library.device_get_handle_by_pci_bus_id_v2 = unknown
    with pytest.raises(cuda.errors.NotSupportedError, match="Not Found"):
        status_at("0000:01:00.0")


def test_a_status_has_this_process_and_the_memory_that_it_uses(device):
    before = device.status
    with cuda.MemoryPool() as pool, cuda.empty(64 << 20, "u1", pool=pool):  # the current pool may have unused memory
        during = device.status
    assert os.getpid() in {process.pid for process in during.processes}
    assert during.memory.total == before.memory.total == device.memory_info.total
    assert during.memory.used > 0
    if "in_process" in cuda.capabilities():  # nobody else uses the device
        assert during.memory.used - before.memory.used == 64 << 20
        assert during.temperature is None


@pytest.mark.needs("gpu_timing")
def test_a_gpu_reports_plausible_readings(device):
    status = device.status
    assert 0 < status.temperature < 110
    assert 0 < status.power < 1.5 * status.power_limit
    assert 0 < status.clock_rate <= 1.1 * device.properties.clock_rate
    assert 0 <= status.utilization <= 1
