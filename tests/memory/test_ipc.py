"""Memory and events shared between processes: the checks, and the driver calls in order.

Functions that record their calls replace the driver's, and this process plays both parts.
"""

import ctypes
import dataclasses
import pickle
import uuid

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context import lifetimes
from cudart_py.driver import capabilities, enums
from cudart_py.driver.calls import api, raw
from cudart_py.ipc import handles
from cudart_py.ipc import memory as shared_memory
from cudart_py.streams import event as events

PIECE = 2 << 20
INTERPROCESS = 4  # CU_EVENT_INTERPROCESS


class StandIn:
    """The driver with some functions replaced; it records every call's name and first argument."""

    def __init__(self, driver, noted, others):
        self.driver, self.noted, self.others = driver, noted, others

    def __getattr__(self, name):
        function = self.others.get(name) or getattr(self.driver, name)

        def call(*arguments):
            self.noted.append((name, arguments[0] if arguments else None))
            return function(*arguments)

        return call


def filled(kind, number):
    handle = kind()
    ctypes.memmove(handle.getPtr(), int(number).to_bytes(64, "little"), 64)
    return handle


def number_in(handle):
    return int.from_bytes(ctypes.string_at(handle.getPtr(), 64), "little")


@pytest.fixture
def calls(monkeypatch, device):
    """Simulate a driver with IPC, whose handles contain an address and open to it; return the list of calls."""
    noted = []
    success = enums.CUresult.CUDA_SUCCESS
    others = {
        "cuIpcOpenMemHandle": lambda handle, flags: (success, number_in(handle)),
        "cuIpcOpenEventHandle": lambda handle: (success, api.cuEventCreate(2)),
        "cuIpcGetMemHandle": lambda address: filled(enums.CUipcMemHandle, address),
        "cuIpcGetEventHandle": lambda native: filled(enums.CUipcEventHandle, native),
        "cuIpcCloseMemHandle": lambda address: None,
        "cuEventCreate": lambda flags: api.cuEventCreate(flags & ~INTERPROCESS),
    }
    monkeypatch.setattr(capabilities, "capabilities", lambda: frozenset({"ipc"}))
    for module in (handles, shared_memory):
        monkeypatch.setattr(module, "raw", StandIn(raw, noted, others))
    for module in (handles, shared_memory, lifetimes, events):
        monkeypatch.setattr(module, "api", StandIn(api, noted, others))
    return noted


@pytest.fixture
def sent(monkeypatch):
    """Return a function that sends a handle to another process, which this process plays from then on."""

    def send(handle):
        content = pickle.dumps(handle)
        monkeypatch.setattr(handles, "_token_of", lambda process: "another process")
        return pickle.loads(content)

    return send


def shared_event():
    return cuda.Event(timing=False, interprocess=True)


def test_an_array_lives_through_these_calls(calls, sent):
    x = cuda.ipc.empty((3, 4), np.int32)
    handle = sent(cuda.ipc.handle(x))
    opened = handle.open()
    address = x.pointer
    opened.close()
    opened.close()
    x.close()
    assert calls == [
        ("cuMemAlloc", PIECE),
        ("cuIpcGetMemHandle", address),
        ("cuIpcOpenMemHandle", calls[2][1]),
        ("cuCtxSynchronize", None),
        ("cuIpcCloseMemHandle", address),
        ("cuMemFree", address),
    ]


def test_the_memory_is_whole_pieces_that_nothing_else_lies_in(calls):
    cuda.ipc.empty(PIECE // 8 + 1, np.float64).close()
    assert calls[0] == ("cuMemAlloc", 2 * PIECE)


def test_what_is_opened_has_the_content_the_shape_and_the_dtype_of_its_view(calls, sent):
    kind = np.dtype([("a", np.int32), ("b", np.float64)])
    content = np.zeros((6, 8), kind)
    content["a"] = np.arange(48).reshape(6, 8)
    x = cuda.ipc.empty((6, 8), kind)
    x.copy_from(content)
    handle = sent(cuda.ipc.handle(x[2:5, 3:]))
    assert (handle.shape, handle.dtype) == ((3, 5), kind)
    with handle.open() as opened:
        assert (opened.to_host() == content[2:5, 3:]).all()
        assert (opened.strides, opened.device) == ((96, 12), x.device)


def test_memory_that_nobody_refers_to_is_given_up(calls, sent):
    x = cuda.ipc.empty(3)
    opened = sent(cuda.ipc.handle(x)).open()
    view = opened[1:]
    del opened
    assert "cuIpcCloseMemHandle" not in dict(calls)
    del view
    assert "cuIpcCloseMemHandle" in dict(calls)
    del x
    assert calls[-1][0] == "cuMemFree"


def test_memory_of_another_process_that_is_dropped_in_a_capture_is_given_up_at_its_end(calls, sent):
    x = cuda.ipc.empty(3)
    opened = sent(cuda.ipc.handle(x)).open()
    with cuda.Stream() as stream, stream.capture():
        del opened
        assert "cuIpcCloseMemHandle" not in dict(calls)
    assert [name for name, _ in calls[-2:]] == ["cuCtxSynchronize", "cuIpcCloseMemHandle"]


def test_an_empty_array_needs_no_memory_of_another_process(calls, sent):
    with sent(cuda.ipc.handle(cuda.ipc.empty((0, 3), np.int8))).open() as opened:
        assert (opened.shape, opened.dtype) == ((0, 3), np.int8)
    assert calls == []


@pytest.mark.parametrize(("noun", "make"), [("array", lambda: cuda.ipc.empty(3)), ("event", shared_event)])
def test_a_handle_that_cannot_be_opened_says_why(calls, sent, noun, make):
    thing = make()
    handle = pickle.loads(pickle.dumps(cuda.ipc.handle(thing)))
    with pytest.raises(ValueError, match="this handle was made in this process"):
        handle.open()
    handle, unseen = sent(handle), uuid.uuid4()
    with pytest.raises(ValueError, match=f"a device that is not visible to this process, with the UUID {unseen}"):
        dataclasses.replace(handle, device_uuid=unseen).open()
    refused = enums.CUresult.CUDA_ERROR_INVALID_VALUE, None
    for module in (handles, shared_memory):
        module.raw.others.update(cuIpcOpenMemHandle=lambda *_: refused, cuIpcOpenEventHandle=lambda *_: refused)
    with pytest.raises(cuda.errors.InvalidValueError, match=f"The {noun} must be open in the process that made it"):
        handle.open()
    thing.close()
    with pytest.raises(ValueError, match="argument 'thing' must be open"):
        cuda.ipc.handle(thing)


def test_only_what_was_made_for_it_is_shared(calls, sent):
    opened = sent(cuda.ipc.handle(cuda.ipc.empty(3))).open()
    for array in (cuda.zeros(3), cuda.zeros(3)[1:], cuda.empty_pitched((2, 2)), opened):
        with pytest.raises(ValueError, match="argument 'thing' .* allocate it with ipc.empty"):
            cuda.ipc.handle(array)
    with pytest.raises(ValueError, match=r"make it with Event\(timing=False, interprocess=True\)"):
        cuda.ipc.handle(cuda.Event(timing=False))


def test_more_bytes_than_there_are_is_an_error_with_the_size(calls):
    with pytest.raises(cuda.OutOfMemoryError, match="1,152,921,504,606,846,976 bytes"):
        cuda.ipc.empty(2**60, np.int8)
    with pytest.raises(cuda.OutOfMemoryError, match="bytes of device memory were requested"):
        cuda.ipc.empty(2**62, np.float64)


def test_an_event_for_other_processes_is_made_with_both_flags_and_has_no_times(calls):
    with pytest.raises(ValueError, match="argument 'timing' must be False with interprocess=True"):
        cuda.Event(interprocess=True)
    event = shared_event()
    assert calls == [("cuEventCreate", 2 | INTERPROCESS)]
    assert event.interprocess
    assert not cuda.Event().interprocess


def test_an_event_that_was_opened_is_recorded_waited_for_and_destroyed(calls, sent, device):
    event = shared_event()
    native = event.handle
    with sent(cuda.ipc.handle(event)).open() as opened, cuda.Stream() as stream:
        assert opened.device is device
        stream.wait(event)  # another process may have recorded it
        stream.wait(opened)
        assert event.recorded
        assert opened.recorded
        opened.record(stream)
        stream.wait(opened)
        opened.synchronize()
        assert opened.done
        with pytest.raises(cuda.errors.EventTimingError):
            opened - event
        with pytest.raises(ValueError, match="an event that other processes cannot open"):
            cuda.ipc.handle(opened)
        number = opened.handle
    assert int(dict(calls)["cuIpcGetEventHandle"]) == native
    assert calls[-1] == ("cuEventDestroy", number)


def test_a_driver_that_cannot_share_names_the_capability(calls, sent, monkeypatch):
    x, event = cuda.ipc.empty(3), shared_event()
    handles = [cuda.ipc.handle(x), cuda.ipc.handle(event)]
    monkeypatch.setattr(capabilities, "capabilities", frozenset)
    ask = [lambda: cuda.ipc.empty(3), shared_event, lambda: cuda.ipc.handle(x), lambda: cuda.ipc.handle(event)]
    for attempt in (*ask, *(handle.open for handle in handles)):
        with pytest.raises(cuda.errors.NotSupportedError, match="lacks the capability 'ipc'"):
            attempt()


def test_the_drivers_own_answer_says_whether_it_can_share(device):
    can = all(each.attribute("ipc_event_supported") for each in cuda.devices())
    assert ("ipc" in cuda.capabilities()) == can
