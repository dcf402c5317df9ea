"""The epoch, which changes at every event after which a bound launch must check its arguments again."""

import cudart_py as cuda
from cudart_py.context.epoch import epoch


def test_closing_what_a_launch_may_hold_begins_an_epoch_and_dropping_an_array_does_not(device):
    for thing in (cuda.empty(1), cuda.Stream(), cuda.Event()):
        mark = epoch.mark()
        thing.close()
        assert epoch.current is not mark, thing
    array = cuda.empty(1)
    mark = epoch.mark()
    del array
    assert epoch.current is mark


def test_a_capture_and_debug_mode_watch_until_the_last_of_their_blocks_ends(device):
    before = epoch.mark()
    with cuda.debug():
        with cuda.Stream() as stream, stream.capture():
            assert epoch.mark() is None
        with cuda.debug():
            pass
        assert epoch.mark() is None
    assert before is not epoch.mark() is not None
