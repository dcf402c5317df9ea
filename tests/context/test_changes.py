"""What changed since a launch was checked."""

from __future__ import annotations

import cudart_py as cuda
from cudart_py.context.changes import Changes, changes


def test_nothing_changed_since_a_mark_that_was_just_taken():
    found = Changes()
    mark = found.mark()
    assert mark is not None
    assert found.latest is mark


def test_a_change_outdates_earlier_marks_for_good():
    found = Changes()
    mark = found.mark()
    found.note()
    found.note()
    assert found.latest is not mark
    assert found.latest is found.mark()


def test_nobody_gets_a_mark_while_one_of_two_watchers_is_left():
    found = Changes()
    before = found.mark()
    found.watch("first")
    found.watch("second")
    found.unwatch("first")
    assert found.mark() is None
    assert found.latest is not before
    assert found.latest is not None
    found.unwatch("second")
    assert found.mark() is not None


def test_closing_an_array_a_stream_or_an_event_is_a_change(device):
    for thing in (cuda.empty(1), cuda.Stream(), cuda.Event()):
        mark = changes.mark()
        thing.close()
        assert changes.latest is not mark, thing


def test_dropping_an_array_is_no_change_since_no_launch_can_hold_it(device):
    array = cuda.empty(1)
    mark = changes.mark()
    del array
    assert changes.latest is mark


def test_a_capture_watches_until_its_block_ends(device):
    stream = cuda.Stream()
    with stream.capture():
        assert changes.mark() is None
    assert changes.mark() is not None


def test_debug_mode_watches_until_the_outermost_block_ends(device):
    with cuda.debug():
        with cuda.debug():
            pass
        assert changes.mark() is None
    assert changes.mark() is not None
