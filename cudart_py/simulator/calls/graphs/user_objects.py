"""User objects: creating them, retaining and releasing references, and giving references to graphs."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUuserObject, CUuserObject_flags, CUuserObjectRetain_flags

from ...state.arguments import host_address, number
from ...state.errors import invalid_value
from ...state.queue.graphs import find_graph
from ...state.queue.user_objects import UserObject, user_objects
from ..entry import entry

_NO_SYNC = CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.value
_MOVE = CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE.value
_MOST = 2**31 - 1  # INT_MAX


def _count(count: Any) -> int:
    """Return a number of references, or raise CUDA_ERROR_INVALID_VALUE for one that the driver does not allow."""
    wanted = number(count)
    if not 0 < wanted <= _MOST:
        raise invalid_value()
    return wanted


@entry(values=1)
def cuUserObjectCreate(ptr: Any, destroy: Any, initialRefcount: Any, flags: Any) -> Any:
    """Create a user object, whose first references belong to the program (cuUserObjectCreate)."""
    destructor, references = number(destroy), _count(initialRefcount)
    if not destructor or number(flags) != _NO_SYNC:
        raise invalid_value()
    return CUuserObject(UserObject(host_address(ptr), destructor, references).handle)


@entry()
def cuUserObjectRetain(object: Any, count: Any) -> None:
    """Retain references for the program (cuUserObjectRetain)."""
    user_objects.find(object).references += _count(count)


@entry()
def cuUserObjectRelease(object: Any, count: Any) -> None:
    """Release references of the program; the destructor runs after the last one (cuUserObjectRelease)."""
    user_objects.find(object).release(_count(count))


@entry()
def cuGraphRetainUserObject(graph: Any, object: Any, count: Any, flags: Any) -> None:
    """Give a graph new references, or with a flag the program's own (cuGraphRetainUserObject)."""
    owner, found, wanted, moves = find_graph(graph), user_objects.find(object), _count(count), number(flags)
    if moves not in (0, _MOVE) or (moves and wanted > found.references):
        raise invalid_value()
    if not moves:
        found.references += wanted
    owner.references.own(found, wanted)


@entry()
def cuGraphReleaseUserObject(graph: Any, object: Any, count: Any) -> None:
    """Release references that a graph owns (cuGraphReleaseUserObject)."""
    find_graph(graph).references.release(user_objects.find(object), _count(count))
