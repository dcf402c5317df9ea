"""The lazy work queue: when work runs, and in which order."""

import concurrent.futures
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts
from cudart_py.simulator.state.queue import scheduling
from cudart_py.simulator.state.queue.operations import FaultError, Operation
from cudart_py.simulator.state.streams import find_stream
from tests.simulator.support import HostCalls, Player, Status, ok, upload

# The steps to play, and the host functions that have run after them.
ORDERS = {
    "nothing runs before a synchronise": ("run s a", ""),
    "a stream runs in order": ("run s a, run s b, run s c, run s d, sync s", "a b c d"),
    "synchronising a stream leaves the others alone": ("run s a, run t b, sync t", "b"),
    "synchronising an event leaves what comes after it": ("run s a, record e s, run s b, sync e", "a"),
    "a stream waits for another one's event": ("run s a, record e s, run s b, wait t e, run t c, sync t", "a c"),
    "a wait is for the record that stood then": ("record e s, wait t e, run s a, record e s, sync t", ""),
    "a wait alone is waited for": ("run s a, record e s, wait t e, sync t", "a"),
    "a wait for an event never recorded is none": ("wait s e, query s", ""),
    "a forgotten wait between streams shows": ("run s producer, run t consumer, sync device", "consumer producer"),
    "a query runs one piece": ("run s a, run s b, query s -> NOT_READY", "a"),
    "a query is not ready until none is left": (f"run s a, run s b{', query s -> NOT_READY' * 2}, query s", "a b"),
    "an event's query runs only what the event needs": (
        f"run s a, run t b, record e t{', query e -> NOT_READY' * 2}, query e",
        "b",
    ),
    "the legacy stream waits for blocking streams": ("run b a, run s c, run legacy l, sync null", "a l"),
    "the legacy stream waits for the thread's own": ("run thread a, run legacy b, sync legacy", "a b"),
    "synchronising the null stream waits for blocking streams alone": ("run s c, run b a, sync null", "a"),
    "synchronising the legacy stream waits for blocking streams alone": ("run s c, run b a, sync legacy", "a"),
    "the legacy stream is not done before blocking ones": ("run b a, query legacy -> NOT_READY, query legacy", "a"),
    "a non-blocking stream passes the legacy stream": ("run null l, run b a, run s c, sync s", "c"),
    "blocking streams wait for the legacy stream": ("run null l, run b a, sync b", "l a"),
    "the legacy stream orders two blocking streams": ("run b a, run null l, run b2 c, sync b2", "a l c"),
    "a destroyed stream's work goes on": ("run s a, destroy s, sync s -> INVALID_HANDLE, sync device", "a"),
    "a destroyed event's mark is still waited for": ("run s a, record e s, wait t e, destroy e, sync t", "a"),
}


@pytest.mark.parametrize("case", ORDERS)
def test_work_runs_when_it_must(play: Player, case: str) -> None:
    steps, expected = ORDERS[case]
    play(steps)
    assert play.calls.names == expected.split()


@pytest.mark.parametrize(
    ("steps", "run"),
    [
        ("run s a, run s b, run t x, run u x, run v x", ""),
        ("run s a, run s b, run t x, run u x, run v x, run s c", "a b"),  # the work before it in its stream
        (", ".join(f"run {name} {name}, destroy {name}" for name in "stuv"), "s t u"),
    ],
)
def test_a_full_queue_runs(play: Player, monkeypatch: pytest.MonkeyPatch, steps: str, run: str) -> None:
    monkeypatch.setattr(scheduling, "_LONGEST_QUEUE", 3)
    play(steps)
    assert play.calls.names == run.split()


def test_a_queue_of_any_length_is_bounded(play: Player) -> None:
    names = [str(number) for number in range(1200)]
    for name in names:
        play(f"run s {name}")
    assert len(play.calls.names) >= 100
    play("sync s")
    assert play.calls.names == names


def test_a_context_is_idle_when_it_has_been_waited_for_which_a_free_does_too(play: Player) -> None:
    own, device = contexts.current(), upload(np.zeros(10, np.uint8))
    for wait in (lambda: play("sync device"), lambda: ok(driver.cuMemFree(device))):
        play("run s a, run legacy b")
        assert own.busy
        assert own.pending
        wait()
        assert not own.busy
        assert not own.pending
    assert sorted(play.calls.names) == ["a", "a", "b", "b"]
    play("destroy s")
    assert not own.destroyed


def test_work_of_a_context_that_ended_never_runs_and_nothing_waits_for_it(two_devices: list[Any], play: Player) -> None:
    ended = contexts.current()
    play("run gone gone, record e gone")
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    play("wait s e, run s own")
    ok(driver.cuDevicePrimaryCtxReset(0))
    play("query s -> NOT_READY, query s -> NOT_READY, query s")
    assert play.calls.names == ["own"]
    assert ended.pending == 0


def test_each_thread_has_its_own_per_thread_stream(context: Any, play: Player) -> None:
    play("run thread main")

    def other() -> None:
        ok(driver.cuCtxSetCurrent(context))
        play("run thread other, sync thread")

    with concurrent.futures.ThreadPoolExecutor() as pool:
        pool.submit(other).result()
    assert play.calls.names == ["other"]


@pytest.mark.parametrize("name", ["null", "legacy", "thread"])
def test_default_streams_have_the_ordinary_priority_and_cannot_be_destroyed(play: Player, name: str) -> None:
    assert ok(driver.cuStreamGetPriority(play[name])) == 0
    play(f"destroy {name} -> INVALID_HANDLE")
    ok(driver.cuCtxPopCurrent())
    play(f"destroy {name} -> INVALID_CONTEXT")


def test_priorities_are_clamped(context: Any) -> None:
    least, greatest = ok(driver.cuCtxGetStreamPriorityRange())
    assert greatest < least
    for wanted, kept in ((100, least), (-100, greatest), (-1, -1)):
        stream = ok(driver.cuStreamCreateWithPriority(1, wanted))
        assert ok(driver.cuStreamGetPriority(stream)) == kept
        assert ok(driver.cuStreamGetFlags(stream)) == 1


def test_a_stream_waits_for_another_devices_event_but_does_not_record_it(two_devices: list[Any], play: Player) -> None:
    play("run null first, record e null")
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    play("record e null -> INVALID_HANDLE, wait null e, run null second, sync device")
    assert play.calls.names == ["first", "second"]


def test_host_functions_may_not_call_the_driver(stream: Any, calls: HostCalls) -> None:
    answers: list[Any] = []
    asked: list[tuple[Any, ...]] = [
        (driver.cuCtxSynchronize,),
        (driver.cuCtxGetCurrent,),
        (driver.cuMemAlloc, 16),
        (driver.cuStreamGetPriority, stream),
        (driver.cuMemGetInfo,),
        (driver.cuGetErrorName, Status.CUDA_ERROR_NOT_PERMITTED),
    ]
    calls.launch(stream, "a", lambda: answers.extend(ask(*given) for ask, *given in asked))
    ok(driver.cuStreamSynchronize(stream))
    assert [status.name for status, *_ in answers] == [*["CUDA_ERROR_NOT_PERMITTED"] * 5, "CUDA_SUCCESS"]


class Failing(Operation):
    """Work that fails without ending its context."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def run(self, context: contexts.Context) -> None:
        raise FaultError(self.status, "it failed", sticky=False)


def test_of_several_pieces_that_fail_the_first_one_is_told_once(play: Player) -> None:
    for status in (Status.CUDA_ERROR_NOT_SUPPORTED, Status.CUDA_ERROR_INVALID_PTX):
        scheduling.enqueue(find_stream(play["s"]), Failing(status))
    play("run s behind, sync s -> NOT_SUPPORTED, sync s")
    assert play.calls.names == ["behind"]
