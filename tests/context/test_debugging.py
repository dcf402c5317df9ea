"""Debug mode and the log of launches, with several threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import cudart_py as cuda
from cudart_py.context import debugging
from cudart_py.driver import launch_log


def test_debug_mode_ends_with_the_last_of_blocks_that_overlap(device):
    always = debugging.state.always
    first, second = cuda.debug(), cuda.debug()  # as two threads may enter and leave them
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
