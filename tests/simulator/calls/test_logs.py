"""The simulator's error log: what a failed call adds to it, and how programs read it."""

import ctypes
import re
import threading

import pytest
from cuda.bindings.driver import CUlogIterator, CUresult

from cudart_py.simulator import driver
from tests.simulator.support import ok

INVALID_VALUE, INVALID_DEVICE = CUresult.CUDA_ERROR_INVALID_VALUE, CUresult.CUDA_ERROR_INVALID_DEVICE
_LINE = re.compile(r"\[\d\d:\d\d:\d\d\.\d{3}\]\[(\d+)\]\[CUDA\]\[E\] (.*)")


@pytest.fixture(autouse=True)
def end():
    """Return an iterator at the log's end."""
    ok(driver.cuInit(0))
    return ok(driver.cuLogsCurrent(0))


def read(iterator, room=25600):
    """Return the lines of the log from an iterator on."""
    buffer = bytearray(b"\xa5" * room)
    returned, size = ok(driver.cuLogsDumpToMemory(iterator, buffer, room, 0))
    assert returned is iterator
    assert buffer[size:].startswith(b"\0" + b"\xa5" * 8)
    return buffer[:size].decode().splitlines()


def test_a_failed_call_adds_its_explanation_and_its_status_and_a_successful_one_nothing(end, context):
    ok(driver.cuCtxSynchronize())
    assert read(end) == []
    assert driver.cuModuleLoad(b"/there/is/no/file")[0]
    lines = [_LINE.fullmatch(line) for line in read(end)]
    assert {int(line[1]) for line in lines} == {threading.get_ident()}
    explanation, status = (line[2] for line in lines)
    assert "'/there/is/no/file' cannot be read" in explanation
    assert status == "Returning 301 (CUDA_ERROR_FILE_NOT_FOUND) from cuModuleLoad"
    assert read(end) == []  # the iterator has moved


def test_each_message_has_the_number_of_its_thread(end):
    numbers = []

    def fail():
        numbers.append(threading.get_ident())
        driver.cuDeviceGet(99)

    for _ in range(2):
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    assert [int(_LINE.fullmatch(line)[1]) for line in read(end)] == numbers


def test_callbacks_receive_each_message_until_they_are_unregistered():
    received = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
    def receive(data, level, message, length):
        received.append((data, level, ctypes.string_at(message, length)))

    handle = ok(driver.cuLogsRegisterCallback(ctypes.cast(receive, ctypes.c_void_p).value, 77))
    driver.cuDeviceGet(99)
    ok(driver.cuLogsUnregisterCallback(handle))
    driver.cuDeviceGet(98)
    assert received == [(77, 0, b"Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuDeviceGet")]
    assert driver.cuLogsUnregisterCallback(handle)[0] == INVALID_VALUE


def test_the_log_keeps_the_latest_hundred_messages_and_says_that_others_are_lost(end):
    for ordinal in range(120):
        driver.cuDeviceGet(1000 + ordinal)
    first, *others = read(CUlogIterator(int(end)))
    assert "latest 100 messages" in first
    assert len(others) == 100
    assert int(ok(driver.cuLogsCurrent(0))) == int(end) + 120


def test_a_small_buffer_receives_the_latest_messages(end):
    for _ in range(3):
        driver.cuDeviceGet(99)
    driver.cuDeviceGetAttribute(9999, 0)
    whole = read(CUlogIterator(int(end)))
    lines = read(CUlogIterator(int(end)), 200)
    assert "too small" in lines[0]
    assert lines[1:] == whole[-1:]
    assert driver.cuLogsDumpToMemory(end, bytearray(20), 20, 0)[0] == INVALID_VALUE


def test_a_file_receives_the_messages(end, tmp_path):
    path = tmp_path / "log"
    path.write_text("an earlier dump")
    driver.cuDeviceGet(99)
    expected = read(CUlogIterator(int(end)))
    ok(driver.cuLogsDumpToFile(end, bytes(path), 0))
    assert path.read_text().splitlines() == expected
    assert driver.cuLogsDumpToFile(end, bytes(tmp_path / "no" / "log"), 0)[0] == INVALID_VALUE


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: driver.cuLogsDumpToMemory(CUlogIterator(1 << 30), bytearray(100), 100, 0),
        lambda: driver.cuLogsDumpToMemory(None, None, 100, 0),
        lambda: driver.cuLogsDumpToFile(None, None, 0),
        lambda: driver.cuLogsRegisterCallback(0, None),
    ],
)
def test_bad_arguments_are_refused(wrong):
    assert wrong()[0] == INVALID_VALUE
