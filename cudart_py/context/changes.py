"""What changed meanwhile: whether a launch that was checked may be repeated without new checks."""

from __future__ import annotations


class Changes:
    """What happened in this process, in any thread, that a launch has to know before it is repeated.

    A launch checks that its module, its stream and its arguments are open. To do so each time would take longer than
    the driver's call. So it takes a `mark` before its checks, keeps it, and compares it with `latest` when it comes
    again: checks are due only where that is another object. While a capture is under way, which has to keep alive what
    a launch uses, or in debug mode, which waits for every launch, nobody gets a mark, so that no launch goes unnoticed.
    """

    __slots__ = ("_watchers", "latest")

    def __init__(self) -> None:
        # Another object after every change, and no number: where threads run at once, adding to one could bring an
        # earlier one back.
        self.latest = object()
        self._watchers: set[object] = set()

    def mark(self) -> object | None:
        """Return `latest`, or None while somebody watches every launch. Take it before the checks."""
        latest = self.latest  # before the question, since another thread may begin to watch in between
        return None if self._watchers else latest

    def note(self) -> None:
        """Note that something was closed on which a launch may depend."""
        self.latest = object()

    def watch(self, watcher: object) -> None:
        """Let every launch be looked at until `unwatch`, because of a capture or of debug mode."""
        self._watchers.add(watcher)
        self.note()

    def unwatch(self, watcher: object) -> None:
        """Let launches be repeated again as far as this watcher is concerned; a second call does nothing."""
        self._watchers.discard(watcher)


changes = Changes()
