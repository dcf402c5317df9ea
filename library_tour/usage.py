"""Wrong usage of the command `library-tour`: the request cannot be carried out, and one sentence says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class UsageError(Exception):
    """The request cannot be carried out; the message says why."""


@contextmanager
def wrong_usage_if(*errors: type[Exception]) -> Iterator[None]:
    """Raise UsageError, with the same message, if the block raises one of these errors.

    The block should be a single call that takes what the user typed. The same error elsewhere is a bug in the tour.
    """
    try:
        yield
    except errors as error:
        raise UsageError(str(error)) from error
