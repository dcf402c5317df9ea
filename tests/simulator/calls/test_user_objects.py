"""User objects: the destructor runs after the last reference of the program, of graphs and of launches."""

import ctypes
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.support import Status, ok

INVALID = Status.CUDA_ERROR_INVALID_VALUE
NO_SYNC = bindings.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
MOVE = bindings.CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE
PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Destroyed(list[int]):
    """The data of the objects that have been destroyed, and a destructor that appends to it."""

    def __init__(self) -> None:
        self.status: Any = None
        self._callback = PROTOTYPE(self._destroy)
        self.destructor = ctypes.cast(self._callback, ctypes.c_void_p).value

    def _destroy(self, data: int) -> None:
        self.status = driver.cuCtxSynchronize()[0]
        self.append(data)

    def create(self, data: int, references: int = 1) -> Any:
        return ok(driver.cuUserObjectCreate(data, self.destructor, references, NO_SYNC))


@pytest.fixture
def destroyed() -> Destroyed:
    return Destroyed()


def graph_of(found: Any, flags: Any = MOVE) -> Any:
    graph = ok(driver.cuGraphCreate(0))
    ok(driver.cuGraphAddEmptyNode(graph, [], 0))
    ok(driver.cuGraphRetainUserObject(graph, found, 1, flags))
    return graph


def test_the_destructor_runs_after_the_last_reference_and_may_not_call_the_driver(
    context: Any, destroyed: Destroyed
) -> None:
    found = destroyed.create(7, 2)
    ok(driver.cuUserObjectRetain(found, 3))
    ok(driver.cuUserObjectRelease(found, 4))
    assert not destroyed
    ok(driver.cuUserObjectRelease(found, 1))
    assert destroyed == [7]
    assert destroyed.status == Status.CUDA_ERROR_NOT_PERMITTED
    assert driver.cuUserObjectRetain(found, 1) == (INVALID,)


def test_a_graph_owns_references_that_are_moved_to_it(context: Any, destroyed: Destroyed) -> None:
    graph = graph_of(destroyed.create(1))
    ok(driver.cuGraphDestroy(graph))
    assert destroyed == [1]


def test_a_graph_with_references_of_its_own_leaves_the_programs(context: Any, destroyed: Destroyed) -> None:
    found = destroyed.create(2)
    graph = graph_of(found, 0)
    ok(driver.cuGraphReleaseUserObject(graph, found, 1))
    assert not destroyed
    assert driver.cuGraphReleaseUserObject(graph, found, 1) == (INVALID,)
    ok(driver.cuUserObjectRelease(found, 1))
    assert destroyed == [2]


def test_copies_and_executable_graphs_hold_the_references_again(context: Any, destroyed: Destroyed) -> None:
    graph = graph_of(destroyed.create(3))
    copy = ok(driver.cuGraphClone(graph))
    executable = ok(driver.cuGraphInstantiate(copy, 0))
    ok(driver.cuGraphDestroy(graph))
    ok(driver.cuGraphDestroy(copy))
    assert not destroyed
    ok(driver.cuGraphExecDestroy(executable))
    assert destroyed == [3]


def test_a_launch_holds_the_references_until_it_is_done(context: Any, destroyed: Destroyed) -> None:
    stream = ok(driver.cuStreamCreate(bindings.CUstream_flags.CU_STREAM_NON_BLOCKING))
    graph = graph_of(destroyed.create(4))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(graph))
    assert not destroyed
    ok(driver.cuStreamSynchronize(stream))
    assert destroyed == [4]


def test_an_update_replaces_the_references(context: Any, destroyed: Destroyed) -> None:
    first, second = graph_of(destroyed.create(5)), graph_of(destroyed.create(6))
    executable = ok(driver.cuGraphInstantiate(first, 0))
    ok(driver.cuGraphDestroy(first))
    ok(driver.cuGraphExecUpdate(executable, second))
    assert destroyed == [5]
    ok(driver.cuGraphDestroy(second))
    ok(driver.cuGraphExecDestroy(executable))
    assert destroyed == [5, 6]


def test_a_changed_child_graph_replaces_the_references_of_the_former(context: Any, destroyed: Destroyed) -> None:
    inner, other, graph = graph_of(destroyed.create(8)), graph_of(destroyed.create(9)), ok(driver.cuGraphCreate(0))
    node = ok(driver.cuGraphAddChildGraphNode(graph, [], 0, inner))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphDestroy(inner))
    ok(driver.cuGraphExecChildGraphNodeSetParams(executable, node, other))
    assert not destroyed  # the node still has its copy of the former graph
    ok(driver.cuGraphDestroy(graph))
    assert destroyed == [8]
    ok(driver.cuGraphDestroy(other))
    ok(driver.cuGraphExecDestroy(executable))
    assert destroyed == [8, 9]


def test_mistakes_are_invalid_values(context: Any, destroyed: Destroyed) -> None:
    graph, found = ok(driver.cuGraphCreate(0)), destroyed.create(1)
    for arguments in ((1, 0, 1, NO_SYNC), (1, destroyed.destructor, 0, NO_SYNC), (1, destroyed.destructor, 1, 0)):
        assert driver.cuUserObjectCreate(*arguments) == (INVALID, None)
    for count in (0, 2**31):
        assert driver.cuUserObjectRetain(found, count) == (INVALID,)
        assert driver.cuUserObjectRelease(found, count) == (INVALID,)
        assert driver.cuGraphRetainUserObject(graph, found, count, 0) == (INVALID,)
    assert driver.cuGraphRetainUserObject(graph, found, 1, 2) == (INVALID,)
    assert driver.cuGraphRetainUserObject(graph, found, 2, MOVE) == (INVALID,)
    assert driver.cuGraphRetainUserObject(graph, 1234, 1, 0) == (INVALID,)
    assert driver.cuGraphReleaseUserObject(graph, found, 1) == (INVALID,)
