"""Streams and events that stand for the same thing of the driver's are equal."""

from __future__ import annotations

import cudart_py as cuda


def test_streams_of_one_handle_are_equal_and_have_one_hash(device):
    with cuda.Stream() as stream, cuda.Stream() as other:
        again = cuda.Stream.borrow(stream.handle)
        assert stream == again
        assert hash(stream) == hash(again)
        assert stream != other
        assert {stream: 1}[again] == 1
        assert cuda.legacy_default == cuda.Stream.borrow(cuda.legacy_default.handle)
        assert cuda.legacy_default != cuda.per_thread_default


def test_a_stream_is_no_event_and_no_number(device):
    with cuda.Stream() as stream, cuda.Event() as event:
        assert stream != event
        assert stream != stream.handle
        assert event == event  # that is the question
        assert event != cuda.Event()


def test_a_closed_stream_equals_itself_alone_and_keeps_its_hash(device):
    stream = cuda.Stream()
    again = cuda.Stream.borrow(stream.handle)
    keys = {stream}
    before = hash(stream)
    stream.close()
    assert hash(stream) == before
    assert stream in keys
    assert stream != again
    assert stream != cuda.Stream()


def test_what_is_hashed_only_when_closed_is_a_key_too(device):
    event = cuda.Event()
    event.close()
    assert event in {event}
