"""Debug mode and the log of launches with several threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import cudart_py as cuda
from cudart_py.context import debugging
from cudart_py.driver import launch_log


def test_debug_mode_ends_with_the_last_of_blocks_that_overlap(device):
    always = debugging.state.always
    first, second = cuda.debug(), cuda.debug()  # two threads may enter and leave in this order
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert debugging.state.enabled
    second.__exit__(None, None, None)
    assert debugging.state.enabled is always


def test_an_error_is_explained_while_another_thread_launches(device):
    records = [launch_log.LaunchRecord(0, stream, "work", (1, 1, 1), (1, 1, 1)) for stream in range(2)]
    done = threading.Event()

    def launch():
        while not done.is_set():
            for record in records:
                launch_log.note_launched(record)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(launch)
        try:
            for _ in range(3000):
                launch_log.blame()
        finally:
            done.set()
    launch_log.note_synchronized(0, None)


@pytest.mark.parametrize(
    ("stream", "named"),
    [(1, "the legacy default stream"), (2, "the per-thread default stream"), (0x5F0, "stream 0x5f0")],
    ids=str,
)
def test_a_launch_names_its_default_stream(stream, named):
    launch = launch_log.LaunchRecord(0, stream, "work", (1, 1, 1), (32, 1, 1))
    assert str(launch) == f"work[grid (1, 1, 1), block (32, 1, 1)] on {named}"
    assert str(launch_log.GraphRecord(0, stream, 2)) == f"a graph of 2 nodes on {named}"
