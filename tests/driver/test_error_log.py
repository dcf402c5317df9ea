"""The driver's explanation of a failed call, which is part of the error."""

import ctypes
import threading

import pytest

import cudart_py as cuda
from cudart_py.driver import backend, error_log
from cudart_py.driver.calls import api, raw
from cudart_py.driver.enums import CUresult

INVALID_VALUE = int(CUresult.CUDA_ERROR_INVALID_VALUE)


@pytest.fixture
def log(device, monkeypatch):
    """Let the reader of a GPU's log read the simulator's, through the C functions of the stand-in for libcuda."""
    if "in_process" in cuda.capabilities():
        from cudart_py.standins.driver.table import implementation
        from cudart_py.standins.functions import driver_functions

        class Library:
            def __getattr__(self, name):
                call = implementation(driver_functions()[name])
                return lambda *arguments: call(*map(_number, arguments))

        monkeypatch.setattr(error_log, "_library", Library)
        monkeypatch.setattr(error_log, "_last", error_log._Look())
    yield error_log
    backend.chosen().explanation(0)  # later tests get none of what these have left


def _number(argument):
    """Return an argument as C passes it: an int, or the address of what a pointer or an array refers to."""
    return argument if isinstance(argument, int) else ctypes.cast(argument, ctypes.c_void_p).value or 0


def lines(*messages):
    return "".join(f"[11:18:22.{n:03}][{thread}][CUDA][E] {text}\n" for n, (thread, text) in enumerate(messages))


def returning(status, call):
    return f"Returning {status} (CUDA_ERROR_SOMETHING) from {call}"


def test_an_explanation_is_of_the_last_failure_of_its_thread():
    here, other = threading.get_ident(), threading.get_ident() + 1
    content = lines(
        (here, "an earlier failure"),
        (here, returning(1, "cuMemAlloc_v2")),
        (here, "The grid\nis too large"),
        (other, "another thread"),
        (here, "and empty"),
        (other, returning(1, "cuMemFree_v2")),
        (here, returning(1, "cuLaunchKernel")),
        (other, "another failure"),
    )
    assert error_log.explanation_in(content, 1) == "The grid\nis too large\nand empty"
    assert error_log.explanation_in(content, 2) == ""  # the last failure was another
    assert error_log.explanation_in(content + lines((here, returning(1, "cuMemFree_v2"))), 1) == ""
    assert error_log.explanation_in("", 1) == ""


def test_a_failure_of_the_runtime_has_no_status_of_its_own():
    here = threading.get_ident()
    content = lines((here, returning(1, "cuMemFree_v2")), (here, "Invalid device number"))
    assert error_log.explanation_in(content, 101) == "Invalid device number"


def test_the_reader_finds_what_the_driver_has_logged_once(log):
    status, _ = raw.cuModuleLoadData(b"neither PTX nor machine code\0")
    assert len(log.explanation(int(status)).split()) > 3
    assert log.explanation(int(status)) == ""


def test_threads_do_not_get_each_others_explanations(log):
    found = {}

    def fail(name, call):
        with cuda.Device(0):
            statuses = [call()[0] for _ in range(5)]
            found[name] = log.explanation(int(statuses[-1]))

    calls = {
        "image": lambda: raw.cuModuleLoadData(b"neither PTX nor machine code\0"),
        "handle": lambda: raw.cuDeviceGet(99),
    }
    threads = [threading.Thread(target=fail, args=each) for each in calls.items()]
    for each in (*threads,):
        each.start()
    for each in threads:
        each.join()
    assert found["image"]
    assert found["image"] != found["handle"]


def test_an_error_has_the_explanation_as_an_attribute_and_in_its_message(device):
    with pytest.raises(cuda.errors.ImageError) as caught:
        api.cuModuleLoadData(b"neither PTX nor machine code\0")
    assert caught.value.explanation
    assert str(caught.value).endswith(f"\n{caught.value.explanation}")


def test_an_error_about_memory_has_the_explanation_after_the_sizes(device, monkeypatch):
    monkeypatch.setattr(type(backend.chosen()), "explanation", lambda self, status: f"the driver says {status}")
    with pytest.raises(cuda.OutOfMemoryError, match=r"were requested; .*\)\nthe driver says 2$") as caught:
        cuda.empty(1 << 50, "u1")
    assert caught.value.explanation == "the driver says 2"


@pytest.mark.needs("gpu_timing")
def test_a_gpus_driver_says_which_argument_is_wrong(device):
    with pytest.raises(cuda.errors.InvalidValueError) as caught:
        api.cuMemAlloc(0)
    assert "0 byte" in caught.value.explanation


def test_a_driver_without_a_log_explains_nothing(monkeypatch, device):
    monkeypatch.setattr(error_log, "_library", lambda: None)
    raw.cuDeviceGet(99)
    assert error_log.explanation(101) == ""
    backend.chosen().explanation(0)
