"""User objects: host resources that live until their last reference is released, which a graph may own.

A graph's references are retained again for each copy of the graph, for each executable graph, and for each launch until
it is done. So the resources of a graph outlive all launches that use them.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable

from cuda.bindings.driver import CUresult

from ..errors import StatusError
from ..handles import Handles
from .runner import runner

_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class UserObject:
    """A resource with a destructor: a C function at an address, which gets the pointer `data`.

    `references` counts the references of the program, of graphs, of executable graphs and of launches.
    """

    __slots__ = ("data", "destructor", "handle", "references")

    def __init__(self, data: int, destructor: int, references: int) -> None:
        self.data = data
        self.destructor = destructor
        self.references = references
        self.handle = user_objects.add(self)

    def release(self, count: int) -> None:
        """Release references, and call the destructor after the last one.

        Raises CUDA_ERROR_INVALID_VALUE for more references than there are.
        """
        if count > self.references:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        self.references -= count
        if not self.references:
            user_objects.remove(self.handle)
            self._destroy()

    def _destroy(self) -> None:
        """Call the destructor. In the meantime, driver calls are refused, as in a host function."""
        outer, runner.in_callback = runner.in_callback, True
        try:
            _DESTRUCTOR(self.destructor)(self.data)
        finally:
            runner.in_callback = outer


class References:
    """The references that a graph owns: how many to each user object."""

    def __init__(self) -> None:
        self._counts: dict[UserObject, int] = {}

    def own(self, found: UserObject, count: int) -> None:
        """Add references, which have been retained."""
        self._counts[found] = self._counts.get(found, 0) + count

    def release(self, found: UserObject, count: int) -> None:
        """Release references to an object; raise CUDA_ERROR_INVALID_VALUE for more than the graph owns."""
        left = self._counts.get(found, 0) - count
        if left < 0:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        self._counts[found] = left
        if not left:
            del self._counts[found]
        found.release(count)

    def release_all(self) -> None:
        """Release all references."""
        counts, self._counts = self._counts, {}
        for found, count in counts.items():
            found.release(count)

    def copy(self) -> References:
        """Return a copy, for which the references are retained again."""
        copy = References()
        for found, count in self._counts.items():
            found.references += count
            copy.own(found, count)
        return copy

    def items(self) -> Iterable[tuple[UserObject, int]]:
        """Return the objects, each with the number of references to it."""
        return self._counts.items()


class SharedReferences:
    """The references of graphs, retained again for an executable graph and its launches.

    They are released when the last of these drops the object. At the end of the process they are not released, because
    a GPU's driver does not call the destructors then either.
    """

    def __init__(self, owned: Iterable[References]) -> None:
        kept = References()
        for references in owned:
            for found, count in references.items():
                found.references += count
                kept.own(found, count)
        weakref.finalize(self, kept.release_all).atexit = False


user_objects: Handles[UserObject] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)
