"""The epoch: whether a launch that was checked may be repeated without new checks."""

from __future__ import annotations


class Epoch:
    """The time between two events, in any thread of this process, that a launch has to know before it is repeated.

    A launch checks that its module, its stream and its arguments are open. To do so each time would take longer than
    the driver's call. So it takes a `mark` before its checks, keeps it, and compares it with `current` when it comes
    again: the checks are due only if a new epoch has begun. Nobody gets a mark while a capture is under way, which has
    to keep alive what a launch uses, or in debug mode, which waits for every launch. So no launch goes unnoticed there.
    """

    __slots__ = ("_watchers", "current")

    def __init__(self) -> None:
        # A new object per epoch and not a number: where threads run at once, adding to one could bring an earlier
        # epoch back.
        self.current = object()
        self._watchers: set[object] = set()

    def mark(self) -> object | None:
        """Return the current epoch, or None while somebody watches every launch. Take it before the checks."""
        current = self.current  # before the question, since another thread may begin to watch in between
        return None if self._watchers else current

    def advance(self) -> None:
        """Begin a new epoch: something on which a launch may depend was closed."""
        self.current = object()

    def watch(self, watcher: object) -> None:
        """Let every launch be looked at until `unwatch`, because of a capture or of debug mode."""
        self._watchers.add(watcher)
        self.advance()

    def unwatch(self, watcher: object) -> None:
        """Let launches be repeated again as far as this watcher is concerned; a second call does nothing."""
        self._watchers.discard(watcher)


epoch = Epoch()
