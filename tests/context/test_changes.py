"""What changed since a launch was checked."""

import cudart_py as cuda
from cudart_py.context.changes import changes


def test_closing_what_a_launch_may_hold_is_a_change_and_dropping_an_array_is_none(device):
    for thing in (cuda.empty(1), cuda.Stream(), cuda.Event()):
        mark = changes.mark()
        thing.close()
        assert changes.latest is not mark, thing
    array = cuda.empty(1)
    mark = changes.mark()
    del array
    assert changes.latest is mark


def test_a_capture_and_debug_mode_watch_until_the_last_of_their_blocks_ends(device):
    before = changes.mark()
    with cuda.debug():
        with cuda.Stream() as stream, stream.capture():
            assert changes.mark() is None
        with cuda.debug():
            pass
        assert changes.mark() is None
    assert before is not changes.mark() is not None
