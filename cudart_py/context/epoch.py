"""The epoch, which tells a repeated launch whether it must be checked again."""

from __future__ import annotations


class Epoch:
    """The time between two events, in any thread of this process, after which repeated launches must be checked again.

    A launch checks that its module, its stream and its arguments are open. Doing so each time would take longer than
    the driver's call. So it takes a `mark` before its checks, keeps it, and compares it with `current` when it is
    repeated: it checks again only if a new epoch has begun. There are no marks during a capture, which must keep alive
    the objects that every launch uses, or in debug mode, which must wait for every launch.
    """

    __slots__ = ("_watchers", "current")

    def __init__(self) -> None:
        # A new object per epoch, not a counter: with threads that run in parallel, an increment could restore an
        # earlier value.
        self.current = object()
        self._watchers: set[object] = set()

    def mark(self) -> object | None:
        """Return the current epoch, or None while a watcher must see every launch. Call this before the checks."""
        current = self.current  # read before `_watchers`, since another thread may call `watch` in between
        return None if self._watchers else current

    def advance(self) -> None:
        """Begin a new epoch, because an object on which a launch may depend was closed."""
        self.current = object()

    def watch(self, watcher: object) -> None:
        """Give out no marks until `unwatch`, so that a capture or debug mode sees every launch."""
        self._watchers.add(watcher)
        self.advance()

    def unwatch(self, watcher: object) -> None:
        """Remove a watcher; without watchers, there are marks again. A second call does nothing."""
        self._watchers.discard(watcher)


epoch = Epoch()
