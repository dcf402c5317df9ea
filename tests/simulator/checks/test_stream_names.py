"""Reports of work in two streams that nothing orders name both streams, and what the host is told orders its work."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, found, reports
from tests.simulator.checks.test_streams import N, separate

pytestmark = WRONG_ON_PURPOSE

KERNELS = FOLDER / "streams.cu"


def streams_in(text: str) -> tuple[str, ...]:
    """Return the names of this access's stream and of the other's in the report of a race."""
    (names,) = re.findall(r"the two accesses, this one in (.*?) and the other in (.*?): use the same stream", text)
    return names


def test_a_race_names_the_streams_of_both_accesses(kernels: Any, engine: str) -> None:
    """The default streams of two threads have the same name."""
    (one,), x, out = separate(1), cuda.zeros(N, np.int32), cuda.zeros(N, np.int32)

    def fill_and_read(other: Any) -> None:
        x.fill(1, stream=one)
        kernels["get"][6, 48, 0, other](x, out, N)

    for other, name in (
        (cuda.legacy_default, "the legacy default stream"),
        (cuda.per_thread_default, "the per-thread default stream"),
    ):
        cuda.current_device().synchronize()
        (text,) = found(fill_and_read, other)
        mine, theirs = f"stream {one.handle:#x}", name
        assert streams_in(text) == ((mine, theirs) if text.startswith("race: a fill") else (theirs, mine))
    with ThreadPoolExecutor(1) as executor:
        cuda.current_device().synchronize()
        x.fill(2, stream=cuda.per_thread_default)
        fill = executor.submit(x.fill, 3, stream=cuda.per_thread_default)
        (text,) = found(fill.result)
    assert streams_in(text) == (name, f"{name} of another thread or context")


@pytest.mark.needs("peer")
def test_a_race_of_two_devices_names_the_devices_of_the_streams() -> None:
    first, second = cuda.devices()[:2]
    second.enable_peer(first)
    x = cuda.zeros(N, np.int32)
    with second:
        there = cuda.zeros(N, np.int32)
        stream = cuda.Stream(non_blocking=True)
        second.synchronize()
    first.synchronize()

    def fill_and_copy() -> None:
        x.fill(1)
        with second:
            cuda.memcpy_peer(there, x, stream=stream)
            stream.synchronize()

    (text,) = found(fill_and_copy)
    assert set(streams_in(text)) == {
        "the legacy default stream of device 0",
        f"stream {stream.handle:#x} of device 1",
    }


@pytest.mark.parametrize("reader", ["kernel", "copy"])
@pytest.mark.usefixtures("engine")
def test_an_uninitialised_value_that_another_streams_work_may_write_names_both_streams(
    kernels: Any, reader: str
) -> None:
    one, other = separate()
    pinned, kept = cuda.pinned_empty(N, np.int32), []

    def read(x: Any, fill: bool = False) -> list[str]:
        """Read an array in a stream, which the host waits for first, and return the reports without races.

        With `fill`, a fill in the array's stream is queued later.
        """
        out = cuda.zeros(N, np.int32)
        kept.append(x)  # otherwise the next array would reuse its memory, which has been written
        cuda.legacy_default.synchronize()
        with reports() as texts:
            if reader == "kernel":
                kernels["get"][6, 48, 0, one](x, out, N)
            else:
                x.to_host(out=pinned, stream=one)
            if fill:
                x.fill(1)
            one.synchronize()
        return [text for text in texts if "uninitialised" in text]

    (text,) = read(cuda.zeros(N, np.int32, stream=other))
    names = rf"allocated in stream {other.handle:#x}, and nothing orders .* this work in stream {one.handle:#x}: use "
    assert re.search(names, text)
    # No earlier work in the array's stream may still write: it only allocates and records an event.
    unwritten = cuda.empty(N, np.int32, stream=other)
    other.record()
    (text,) = read(unwritten, fill=True)
    assert "nothing orders" not in text


@pytest.mark.parametrize("told", ["a query", "a wait", "pinned memory"])
def test_a_call_tells_the_host_of_work_that_ran_beside_a_wait_for_a_value_and_pinned_memory_does_not(
    kernels: Any, told: str
) -> None:
    (producer, waiting, consumer), x = separate(3), cuda.zeros(N, np.int32)
    gate, flag = (cuda.pinned_empty(1, np.uint32, mapped=True) for _ in range(2))
    gate[:] = flag[:] = 0
    cuda.current_device().synchronize()
    with reports() as texts:
        kernels["put"][6, 48, 0, producer](x, 1, N)
        producer.write_value(flag, 1)
        waiting.wait_value(gate, 1)
        cuda.legacy_default.write_value(gate, 1)
        waiting.synchronize()
        assert flag[0] == 1
        if told == "a query":
            assert producer.done
        elif told == "a wait":
            producer.synchronize()
        kernels["get"][6, 48, 0, consumer](x, cuda.zeros(N, np.int32, stream=consumer), N)
    assert bool(texts) is (told == "pinned memory")
