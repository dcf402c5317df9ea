"""Limits of a stop's speed, either measured on this device or computed from its clock rate and unit widths."""

from __future__ import annotations

import numpy as np

import cudart_py as cuda
from cudart_py.benchmark.device.ceilings import measured_ceiling

from . import timing
from .stop import Limit

# Per multiprocessor and clock cycle since compute capability 7.0: bytes of shared memory, lanes of the special-function
# units (sin, cos, exp2, log2, square roots), lanes of instructions issued.
SHARED_BYTES, SPECIAL_LANES, ISSUED_LANES = 128, 16, 128
# Clock cycles until an instruction can use the result of a previous addition or multiplication, and of a shuffle.
ARITHMETIC_CLOCKS, SHUFFLE_CLOCKS = 4, 23


def copy_limit(device: cuda.Device) -> Limit:
    """Return the bandwidth of copying in the device's memory, counting both the bytes read and the bytes written."""
    return Limit("copy bandwidth of device memory", rate=_measured(device, "copy"))


def read_limit(device: cuda.Device) -> Limit:
    """Return the bandwidth of reading the device's memory."""
    return Limit("read bandwidth of device memory", rate=_measured(device, "read"))


def write_limit(device: cuda.Device) -> Limit:
    """Return the bandwidth of writing the device's memory."""
    return Limit("write bandwidth of device memory", rate=_measured(device, "write"))


def arithmetic_limit(device: cuda.Device, kind: str = "fp32") -> Limit:
    """Return the rate of multiply-adds in registers in TFLOP/s, two operations each; `kind` is fp32 or fp64."""
    rate = _measured(device, kind)
    return Limit(f"{kind} multiply-adds", "TFLOP/s", rate and 1e-3 * rate)


def _measured(device: cuda.Device, kind: str) -> float | None:
    return 1e-9 * measured_ceiling(device, kind) if timing.available() else None


def link_limit(nbytes: int) -> Limit:
    """Return the bandwidth of a copy of `nbytes` from pinned memory to the device."""
    if not timing.available():
        return Limit("the link to the host")
    source, target = cuda.pinned_empty(nbytes, np.uint8), cuda.empty(nbytes, np.uint8)
    ms = timing.median_ms(lambda: cuda.memcpy(target, source, stream=cuda.legacy_default))
    return Limit("the link to the host", rate=1e-6 * nbytes / ms)


def shared_limit(device: cuda.Device) -> Limit:
    """Return the bandwidth of all shared memories together, without conflicts."""
    return _by_clock(device, f"shared memory, {SHARED_BYTES} bytes per SM per clock", "GB/s", SHARED_BYTES)


def special_limit(device: cuda.Device, count: int, unit: str) -> Limit:
    """Return how often per second the special-function units perform `count` operations, in a unit like "Gsteps/s"."""
    name = f"special functions, {count} per {_counted(unit)}, {SPECIAL_LANES} per SM per clock"
    return _by_clock(device, name, unit, SPECIAL_LANES / count)


def issue_limit(device: cuda.Device, count: int, unit: str) -> Limit:
    """Return how often per second `count` instructions are issued, in a unit like "Gsteps/s"."""
    return _by_clock(device, f"instructions, about {count} per {_counted(unit)}", unit, ISSUED_LANES / count)


def latency_limit(device: cuda.Device, operations: int, shuffles: int, amount: float, unit: str) -> Limit:
    """Return the rate of repeated work of `amount` if each repetition is a chain of so many dependent instructions."""
    name = f"latency of {shuffles} shuffles, {operations} operations"
    if not timing.available():
        return Limit(name, unit)
    hertz = 1e3 * device.properties.clock_rate
    clocks = operations * ARITHMETIC_CLOCKS + shuffles * SHUFFLE_CLOCKS
    return Limit(name, unit, amount * hertz / clocks / timing.PREFIXES[unit[0]])


def _counted(unit: str) -> str:
    """Return what a rate counts: "step" for "Gsteps/s"."""
    return {"Gops/s": "operation"}.get(unit, unit[1:].removesuffix("s/s"))


def _by_clock(device: cuda.Device, name: str, unit: str, a_clock: float) -> Limit:
    if not timing.available():
        return Limit(name, unit)
    hertz = 1e3 * device.properties.clock_rate
    return Limit(name, unit, device.sm_count * hertz * a_clock / timing.PREFIXES[unit[0]])
