"""Wrong usage of the command `library-tour`: what was asked for cannot be done, and one sentence says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UsageError(Exception):
    """The request cannot be carried out; the message says why."""


@contextmanager
def wrong_usage_if(*errors: type[Exception]) -> Iterator[None]:
    """Raise UsageError where the block raises one of some errors, with its message.

    The block is one call that takes what was typed, so that the same kind of error elsewhere stays an error of ours.
    """
    try:
        yield
    except errors as error:
        raise UsageError(str(error)) from error
