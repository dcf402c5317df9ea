"""The lazy queue: what runs when, in which order, and what it shows."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts
from cudart_py.simulator.state.queue import scheduling
from cudart_py.simulator.state.queue.operations import FaultError, Operation
from cudart_py.simulator.state.streams import find_stream
from tests.simulator.support import HostCalls, Status, ok, upload

NOT_READY = (Status.CUDA_ERROR_NOT_READY,)
LEGACY, PER_THREAD = bindings.CU_STREAM_LEGACY, bindings.CU_STREAM_PER_THREAD


def make_stream(*, blocking: bool = False) -> Any:
    return ok(driver.cuStreamCreate(0 if blocking else 1))


def make_event(flags: int = 0) -> Any:
    return ok(driver.cuEventCreate(flags))


def test_nothing_runs_before_a_synchronise(context: Any, calls: HostCalls) -> None:
    stream = make_stream()
    calls.launch(stream, "a")
    assert calls.names == []
    ok(driver.cuStreamSynchronize(stream))
    assert calls.names == ["a"]


def test_a_stream_runs_in_order(context: Any, calls: HostCalls) -> None:
    stream = make_stream()
    for name in "abcdef":
        calls.launch(stream, name)
    ok(driver.cuStreamSynchronize(stream))
    assert "".join(calls.names) == "abcdef"


def test_synchronising_a_stream_leaves_the_others_alone(context: Any, calls: HostCalls) -> None:
    first, second = make_stream(), make_stream()
    calls.launch(first, "first")
    calls.launch(second, "second")
    ok(driver.cuStreamSynchronize(second))
    assert calls.names == ["second"]


def test_synchronising_an_event_leaves_what_comes_after_it(context: Any, calls: HostCalls) -> None:
    stream, event = make_stream(), make_event()
    calls.launch(stream, "before")
    ok(driver.cuEventRecord(event, stream))
    calls.launch(stream, "after")
    ok(driver.cuEventSynchronize(event))
    assert calls.names == ["before"]


def test_a_stream_waits_for_another_ones_event(context: Any, calls: HostCalls) -> None:
    first, second, event = make_stream(), make_stream(), make_event()
    calls.launch(first, "before")
    ok(driver.cuEventRecord(event, first))
    calls.launch(first, "after")
    ok(driver.cuStreamWaitEvent(second, event, 0))
    calls.launch(second, "second")
    ok(driver.cuStreamSynchronize(second))
    assert calls.names == ["before", "second"]


def test_a_wait_is_for_the_record_that_stood_then(context: Any, calls: HostCalls) -> None:
    first, second, event = make_stream(), make_stream(), make_event()
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    calls.launch(first, "later")
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamSynchronize(second))
    assert calls.names == []


def test_a_wait_alone_is_waited_for(context: Any, calls: HostCalls) -> None:
    first, second, event = make_stream(), make_stream(), make_event()
    calls.launch(first, "first")
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    ok(driver.cuStreamSynchronize(second))
    assert calls.names == ["first"]


def test_a_wait_for_an_event_never_recorded_is_none(context: Any) -> None:
    stream = make_stream()
    ok(driver.cuStreamWaitEvent(stream, make_event(), 0))
    ok(driver.cuStreamQuery(stream))


def test_a_forgotten_wait_between_streams_shows(context: Any, calls: HostCalls) -> None:
    first, second = make_stream(), make_stream()
    calls.launch(first, "producer")
    calls.launch(second, "consumer")
    ok(driver.cuCtxSynchronize())
    assert calls.names == ["consumer", "producer"]


def test_a_query_runs_one_piece_and_is_not_ready_until_none_is_left(context: Any, calls: HostCalls) -> None:
    stream = make_stream()
    calls.launch(stream, "a")
    calls.launch(stream, "b")
    assert driver.cuStreamQuery(stream) == NOT_READY
    assert calls.names == ["a"]
    assert driver.cuStreamQuery(stream) == NOT_READY
    assert calls.names == ["a", "b"]
    ok(driver.cuStreamQuery(stream))


def test_an_event_query_runs_only_what_the_event_needs(context: Any, calls: HostCalls) -> None:
    first, second, event = make_stream(), make_stream(), make_event()
    calls.launch(first, "first")
    calls.launch(second, "second")
    ok(driver.cuEventRecord(event, second))
    answers = []
    while driver.cuEventQuery(event) == NOT_READY:
        answers.append(list(calls.names))
    assert answers == [["second"], ["second"]]


def test_what_is_put_behind_a_full_queue_waits_for_the_work_before_it(
    context: Any, calls: HostCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "_LONGEST_QUEUE", 3)
    stream, others = make_stream(), [make_stream() for _ in range(5)]
    for name in "ab":
        calls.launch(stream, name)
    for other in others:
        calls.launch(other, "other")
    assert calls.names == []
    calls.launch(stream, "c")
    assert calls.names == ["a", "b"]


def test_the_legacy_stream_waits_for_blocking_streams(context: Any, calls: HostCalls) -> None:
    blocking, other = make_stream(blocking=True), make_stream()
    calls.launch(blocking, "blocking")
    calls.launch(other, "non-blocking")
    calls.launch(LEGACY, "legacy")
    ok(driver.cuStreamSynchronize(0))
    assert calls.names == ["blocking", "legacy"]


def test_the_legacy_stream_waits_for_the_threads_default_stream(context: Any, calls: HostCalls) -> None:
    calls.launch(PER_THREAD, "thread's")
    calls.launch(LEGACY, "legacy")
    ok(driver.cuStreamSynchronize(LEGACY))
    assert calls.names == ["thread's", "legacy"]


@pytest.mark.parametrize("legacy", [0, LEGACY])
def test_synchronising_the_legacy_stream_waits_for_the_blocking_streams_alone(
    context: Any, calls: HostCalls, legacy: Any
) -> None:
    blocking, other = ok(driver.cuStreamCreate(0)), ok(driver.cuStreamCreate(1))
    calls.launch(other, "non-blocking")
    calls.launch(blocking, "blocking")
    ok(driver.cuStreamSynchronize(legacy))
    assert calls.names == ["blocking"]


def test_the_legacy_stream_is_not_done_before_the_blocking_streams(context: Any, calls: HostCalls) -> None:
    blocking, other = ok(driver.cuStreamCreate(0)), ok(driver.cuStreamCreate(1))
    calls.launch(other, "non-blocking")
    calls.launch(blocking, "blocking")
    assert driver.cuStreamQuery(LEGACY) == (Status.CUDA_ERROR_NOT_READY,)
    assert calls.names == ["blocking"]
    ok(driver.cuStreamQuery(LEGACY))
    assert calls.names == ["blocking"]


def test_the_default_streams_have_the_ordinary_priority(context: Any) -> None:
    assert [ok(driver.cuStreamGetPriority(stream)) for stream in (0, LEGACY, PER_THREAD)] == [0, 0, 0]


def test_nothing_is_queued_in_a_context_that_has_been_waited_for(context: Any, calls: HostCalls) -> None:
    stream = make_stream()
    calls.launch(stream, "a")
    calls.launch(LEGACY, "b")
    own = contexts.current()
    assert own.busy
    assert own.pending
    ok(driver.cuCtxSynchronize())
    assert not own.busy
    assert not own.pending


def test_work_of_a_context_that_ended_never_runs_and_nothing_waits_for_it(
    two_devices: list[Any], calls: HostCalls
) -> None:
    first, own = two_devices
    ok(driver.cuCtxSetCurrent(first))
    ended = contexts.current()
    gone, event = make_stream(), make_event()
    calls.launch(gone, "gone")
    ok(driver.cuEventRecord(event, gone))
    ok(driver.cuCtxSetCurrent(own))
    stream = make_stream()
    ok(driver.cuStreamWaitEvent(stream, event, 0))
    calls.launch(stream, "own")
    ok(driver.cuDevicePrimaryCtxReset(0))
    assert driver.cuStreamQuery(stream) == NOT_READY
    assert driver.cuStreamQuery(stream) == NOT_READY
    ok(driver.cuStreamQuery(stream))
    assert calls.names == ["own"]
    assert ended.pending == 0


def test_blocking_streams_wait_for_the_legacy_stream(context: Any, calls: HostCalls) -> None:
    blocking, other = make_stream(blocking=True), make_stream()
    calls.launch(None, "legacy")
    calls.launch(blocking, "blocking")
    calls.launch(other, "non-blocking")
    ok(driver.cuStreamSynchronize(other))
    assert calls.names == ["non-blocking"]
    ok(driver.cuStreamSynchronize(blocking))
    assert calls.names == ["non-blocking", "legacy", "blocking"]


def test_the_legacy_stream_orders_two_blocking_streams(context: Any, calls: HostCalls) -> None:
    first, second = make_stream(blocking=True), make_stream(blocking=True)
    calls.launch(first, "first")
    calls.launch(0, "legacy")
    calls.launch(second, "second")
    ok(driver.cuStreamSynchronize(second))
    assert calls.names == ["first", "legacy", "second"]


def test_each_thread_has_its_own_per_thread_stream(context: Any, calls: HostCalls) -> None:
    calls.launch(PER_THREAD, "main")

    def other() -> None:
        ok(driver.cuCtxSetCurrent(context))
        calls.launch(PER_THREAD, "other")
        ok(driver.cuStreamSynchronize(PER_THREAD))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert calls.names == ["other"]


def test_a_destroyed_streams_work_goes_on(context: Any, calls: HostCalls) -> None:
    stream = make_stream()
    calls.launch(stream, "a")
    ok(driver.cuStreamDestroy(stream))
    assert driver.cuStreamSynchronize(stream) == (Status.CUDA_ERROR_INVALID_HANDLE,)
    ok(driver.cuCtxSynchronize())
    assert calls.names == ["a"]


def test_work_of_destroyed_streams_counts_in_a_full_queue(
    context: Any, calls: HostCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "_LONGEST_QUEUE", 3)
    for name in "abcd":
        stream = make_stream()
        calls.launch(stream, name)
        ok(driver.cuStreamDestroy(stream))
    assert calls.names == ["a", "b", "c"]


def test_a_destroyed_stream_without_work_is_forgotten(context: Any, calls: HostCalls) -> None:
    for name in "ab":
        stream = make_stream()
        calls.launch(stream, name)
        ok(driver.cuStreamSynchronize(stream))
        ok(driver.cuStreamDestroy(stream))
    found = contexts.find_context(context)
    assert not found.busy
    assert not found.destroyed


def test_a_destroyed_events_mark_is_still_waited_for(context: Any, calls: HostCalls) -> None:
    first, second, event = make_stream(), make_stream(), make_event()
    calls.launch(first, "first")
    ok(driver.cuEventRecord(event, first))
    ok(driver.cuStreamWaitEvent(second, event, 0))
    ok(driver.cuEventDestroy(event))
    ok(driver.cuStreamSynchronize(second))
    assert calls.names == ["first"]


@pytest.mark.parametrize("handle", [3, 12345, -1])
def test_foreign_handles_are_invalid(context: Any, handle: int) -> None:
    invalid = Status.CUDA_ERROR_INVALID_HANDLE
    assert driver.cuStreamSynchronize(handle)[0] == invalid
    assert driver.cuEventRecord(handle, 0)[0] == invalid
    assert driver.cuStreamDestroy(handle)[0] == invalid


def test_an_event_handle_is_not_a_stream_handle(context: Any) -> None:
    assert driver.cuStreamQuery(int(make_event())) == (Status.CUDA_ERROR_INVALID_HANDLE,)


def test_default_streams_cannot_be_destroyed(context: Any) -> None:
    for handle in (0, LEGACY, PER_THREAD):
        assert driver.cuStreamDestroy(handle) == (Status.CUDA_ERROR_INVALID_HANDLE,)


@pytest.mark.parametrize("handle", [0, LEGACY, PER_THREAD])
def test_without_a_context_there_is_no_default_stream_to_destroy(context: Any, handle: int) -> None:
    ok(driver.cuCtxPopCurrent())
    assert driver.cuStreamDestroy(handle) == (Status.CUDA_ERROR_INVALID_CONTEXT,)


def test_priorities_are_clamped(context: Any) -> None:
    least, greatest = ok(driver.cuCtxGetStreamPriorityRange())
    assert greatest < least
    for wanted, kept in ((100, least), (-100, greatest), (-1, -1)):
        stream = ok(driver.cuStreamCreateWithPriority(1, wanted))
        assert ok(driver.cuStreamGetPriority(stream)) == kept
        assert ok(driver.cuStreamGetFlags(stream)) == 1


def test_streams_have_identities_and_contexts(two_devices: list[Any]) -> None:
    stream = make_stream()
    assert ok(driver.cuStreamGetId(stream)) != ok(driver.cuStreamGetId(0))
    assert int(ok(driver.cuStreamGetCtx(stream))) == int(two_devices[0])
    assert int(ok(driver.cuStreamGetDevice(stream))) == 0


def test_an_event_of_another_context_is_an_invalid_handle(two_devices: list[Any]) -> None:
    event = make_event()
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    assert driver.cuEventRecord(event, 0) == (Status.CUDA_ERROR_INVALID_HANDLE,)


def test_a_stream_waits_for_another_devices_event(two_devices: list[Any], calls: HostCalls) -> None:
    event = make_event()
    calls.launch(0, "first device")
    ok(driver.cuEventRecord(event, 0))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    ok(driver.cuStreamWaitEvent(0, event, 0))
    calls.launch(0, "second device")
    ok(driver.cuCtxSynchronize())
    assert calls.names == ["first device", "second device"]


def test_elapsed_time_has_the_drivers_errors(context: Any) -> None:
    start, end, untimed = make_event(), make_event(), make_event(bindings.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
    invalid = (Status.CUDA_ERROR_INVALID_HANDLE, None)
    assert driver.cuEventElapsedTime(start, end) == invalid
    for event in (start, untimed, end):
        ok(driver.cuEventRecord(event, 0))
    assert driver.cuEventElapsedTime(start, untimed) == invalid
    assert driver.cuEventElapsedTime(start, end) == (Status.CUDA_ERROR_NOT_READY, None)
    ok(driver.cuEventSynchronize(end))
    assert ok(driver.cuEventElapsedTime(start, end)) > 0


def test_an_event_is_created_with_known_flags_only(context: Any) -> None:
    assert driver.cuEventCreate(64) == (Status.CUDA_ERROR_INVALID_VALUE, None)
    assert driver.cuStreamCreate(2) == (Status.CUDA_ERROR_INVALID_VALUE, None)


def test_host_functions_may_not_call_the_driver(context: Any, calls: HostCalls) -> None:
    stream, answers = make_stream(), []
    asked = (
        driver.cuCtxSynchronize,
        driver.cuCtxGetCurrent,
        lambda: driver.cuMemAlloc(16),
        lambda: driver.cuStreamGetPriority(stream),
        lambda: driver.cuMemGetInfo(),
    )
    calls.launch(stream, "a", lambda: answers.extend(ask() for ask in asked))
    calls.launch(stream, "b", lambda: answers.append(driver.cuGetErrorName(Status.CUDA_ERROR_NOT_PERMITTED)))
    ok(driver.cuStreamSynchronize(stream))
    refused = Status.CUDA_ERROR_NOT_PERMITTED
    assert answers == [
        (refused,), *[(refused, None)] * 3, (refused, None, None), (Status.CUDA_SUCCESS, b"CUDA_ERROR_NOT_PERMITTED")
    ]  # fmt: skip  # one line for each answer would say no more
    assert calls.names == ["a", "b"]


def test_a_host_function_gets_its_data(context: Any) -> None:
    import ctypes

    seen = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    address = ctypes.cast(function, ctypes.c_void_p).value
    ok(driver.cuLaunchHostFunc(0, address, 1234))
    ok(driver.cuCtxSynchronize())
    assert seen == [1234]
    assert driver.cuLaunchHostFunc(0, 0, None) == (Status.CUDA_ERROR_INVALID_VALUE,)


def test_a_queue_of_any_length_is_bounded(context: Any, calls: HostCalls) -> None:
    stream = make_stream()
    for number in range(3000):
        calls.launch(stream, str(number))
    assert len(calls.names) >= 1900
    ok(driver.cuStreamSynchronize(stream))
    assert calls.names == [str(number) for number in range(3000)]


def test_freeing_completes_the_contexts_work(context: Any, calls: HostCalls) -> None:
    device = upload(np.zeros(10, np.uint8))
    calls.launch(make_stream(), "a")
    ok(driver.cuMemFree(device))
    assert calls.names == ["a"]


def test_8_threads_with_their_own_streams_agree_with_one(context: Any) -> None:
    results: dict[int, bool] = {}

    def fill(number: int) -> None:
        ok(driver.cuCtxSetCurrent(context))
        stream, host = make_stream(), np.zeros(500, np.uint32)
        for turn in range(50):
            device = ok(driver.cuMemAllocAsync(2000, stream))
            ok(driver.cuMemsetD32Async(device, number * 100 + turn, 500, stream))
            ok(driver.cuMemcpyDtoHAsync(host, device, 2000, stream))
            ok(driver.cuMemFreeAsync(device, stream))
            results[number] = results.get(number, True) and bool((host == number * 100 + turn).all())
        ok(driver.cuStreamDestroy(stream))

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(8), True)


class Failing(Operation):
    """Work that fails without an end of its context."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def run(self, context: contexts.Context) -> None:
        raise FaultError(self.status, "it failed", sticky=False)


def test_of_several_pieces_that_fail_the_first_one_is_told_once(context: Any, calls: HostCalls) -> None:
    stream = make_stream()
    for status in (Status.CUDA_ERROR_NOT_SUPPORTED, Status.CUDA_ERROR_INVALID_PTX):
        scheduling.enqueue(find_stream(stream), Failing(status))
    calls.launch(stream, "behind")
    assert driver.cuStreamSynchronize(stream) == (Status.CUDA_ERROR_NOT_SUPPORTED,)
    assert calls.names == ["behind"]
    assert driver.cuStreamSynchronize(stream) == (Status.CUDA_SUCCESS,)
