"""Copies and fills that take the place of a node's in an executable graph."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda

N = 64


@pytest.fixture
def stream(device):
    with cuda.Stream(non_blocking=True) as made:
        yield made


def made(stream, value, dtype=np.float32, shape=N):
    array = cuda.full(shape, value, dtype, stream=stream)
    stream.synchronize()
    return array


def copy_graph(stream, dst, src):
    with stream.capture() as graph:
        cuda.memcpy(dst, src, stream=stream)
    return graph


def fill_graph(stream, dst, value):
    with stream.capture() as graph:
        cuda.memset(dst, value, stream=stream)
    return graph


def launched(executable, stream, array):
    executable.launch(stream)
    return array.to_host(stream=stream)


def test_a_copy_gets_another_source_and_destination(stream):
    x, y, z = made(stream, 1), made(stream, 2), made(stream, 3)
    graph = copy_graph(stream, y, x)
    executable = graph.instantiate()
    assert launched(executable, stream, y).tolist() == [1] * N
    executable.set_node(graph.nodes[0], cuda.NodeCopy(z, x))
    cuda.memset(y, 0.0, stream=stream)
    assert launched(executable, stream, z).tolist() == [1] * N
    assert not y.to_host(stream=stream).any()
    executable.set_node(graph.nodes[0], cuda.NodeCopy(x, y))
    assert not launched(executable, stream, x).any()


def test_a_copy_may_have_another_size_and_dtype(stream):
    x, y = made(stream, 1), made(stream, 2)
    graph = copy_graph(stream, y, x)
    executable = graph.instantiate()
    executable.set_node(graph.nodes[0], cuda.NodeCopy(y.view(np.int16)[:6], x.view(np.int16)[:6]))
    assert launched(executable, stream, y).tolist() == [1] * 3 + [2] * (N - 3)


def test_copies_from_and_to_page_locked_memory_get_other_memory(stream):
    first, second = cuda.pinned_empty(N, np.float32), cuda.pinned_empty(N, np.float32)
    first[:], second[:] = 1, 2
    x = made(stream, 0)
    upload = copy_graph(stream, x, first)
    executable = upload.instantiate()
    executable.set_node(upload.nodes[0], cuda.NodeCopy(x, second))
    assert launched(executable, stream, x).tolist() == [2] * N
    download = copy_graph(stream, first, x)
    executable = download.instantiate()
    executable.set_node(download.nodes[0], cuda.NodeCopy(second[: N // 2], x[N // 2 :]))
    second[:] = 0
    executable.launch(stream)
    stream.synchronize()
    assert second.tolist() == [2] * (N // 2) + [0] * (N // 2)
    assert first.tolist() == [1] * N


def test_a_fill_gets_another_value_and_array(stream):
    x, y = made(stream, 1), made(stream, 2)
    graph = fill_graph(stream, x, 5.0)
    executable = graph.instantiate()
    executable.set_node(graph.nodes[0], cuda.NodeFill(y, -3.5))
    assert launched(executable, stream, y).tolist() == [-3.5] * N
    assert x.to_host(stream=stream).tolist() == [1] * N


def test_a_fill_of_rows_gets_other_rows_of_the_same_shape(stream):
    padded = made(stream, 1, np.uint8, (5, 16))[:, :7]
    other = made(stream, 1, np.uint8, (5, 16))[:, :7]
    graph = fill_graph(stream, padded, 9)
    executable = graph.instantiate()
    executable.set_node(graph.nodes[0], cuda.NodeFill(other, 4))
    assert launched(executable, stream, other).tolist() == [[4] * 7] * 5
    assert padded.to_host(stream=stream).tolist() == [[1] * 7] * 5
    with pytest.raises(cuda.InvalidValueError, match="only as many of the same kind: otherwise capture the work again"):
        executable.set_node(graph.nodes[0], cuda.NodeFill(other[:3], 4))


def test_a_fill_of_one_row_becomes_no_fill_of_rows(stream):
    x, padded = made(stream, 1, np.uint8), made(stream, 1, np.uint8, (5, 16))[:, :7]
    graph = fill_graph(stream, x, 9)
    with pytest.raises(cuda.InvalidValueError, match="cuGraphExecMemsetNodeSetParams"):
        graph.instantiate().set_node(graph.nodes[0], cuda.NodeFill(padded, 4))


def test_a_copy_of_rows_stays_as_it_is(stream):
    padded, x = made(stream, 1, np.uint8, (5, 16))[:, :7], made(stream, 1, np.uint8, (5, 7))
    graph = copy_graph(stream, padded, x)
    with pytest.raises(cuda.InvalidValueError, match="only where both copies are of contiguous arrays"):
        graph.instantiate().set_node(graph.nodes[0], cuda.NodeCopy(x, x))


def test_a_copy_stays_in_the_same_kinds_of_memory(stream):
    x, pinned = made(stream, 1), cuda.pinned_empty(N, np.float32)
    graph = copy_graph(stream, x, made(stream, 2))
    with pytest.raises(cuda.InvalidValueError, match="other memory of the same kinds and devices"):
        graph.instantiate().set_node(graph.nodes[0], cuda.NodeCopy(x, pinned))


def test_a_copy_of_a_cuda_array_becomes_none_of_memory(stream):
    x, y, array = made(stream, 1), made(stream, 2), cuda.CudaArray(N, np.float32)
    with stream.capture() as graph:
        array.copy_from(x, stream=stream)
    with pytest.raises(cuda.InvalidValueError, match="other memory of the same kinds and devices"):
        graph.instantiate().set_node(graph.nodes[0], cuda.NodeCopy(y, x))


def test_a_node_keeps_its_new_arrays_alone(stream):
    x, y, z = made(stream, 1), made(stream, 2), made(stream, 3)
    with stream.capture() as graph:
        cuda.memcpy(y, x, stream=stream)
        cuda.memset(z, 0.0, stream=stream)
    executable = graph.instantiate()
    copy, fill = graph.nodes
    executable.set_node(copy, cuda.NodeCopy(z, x))
    y.close()
    executable.set_node(fill, cuda.NodeFill(x, 7.0))
    kept = weakref.ref(z)
    del z
    gc.collect()
    executable.launch(stream)
    assert kept().to_host(stream=stream).tolist() == [1] * N
    assert x.to_host(stream=stream).tolist() == [7] * N
    kept().close()
    with pytest.raises(ValueError, match="argument 0 of a copy: the array is closed"):
        executable.launch(stream)


def test_a_node_keeps_the_page_locked_memory_of_its_copy(stream):
    x, first = made(stream, 0), cuda.pinned_empty(N, np.float32)
    graph = copy_graph(stream, x, first)
    executable = graph.instantiate()

    def change():
        second = cuda.pinned_empty(N, np.float32)
        second[:] = 6
        executable.set_node(graph.nodes[0], cuda.NodeCopy(x, second[: N // 2].reshape(4, -1)))

    with pytest.raises(ValueError, match="dst has shape"):
        change()
    x = x[: N // 2]
    change()
    gc.collect()
    assert launched(executable, stream, x).tolist() == [6] * (N // 2)


def test_what_a_node_cannot_do_is_refused_when_it_is_made(stream):
    x = made(stream, 1, np.float32, (4, 4, 4))
    host = np.zeros((4, 4, 4), np.float32)
    pinned = cuda.pinned_empty((4, 4, 4), np.float32)
    with pytest.raises(ValueError, match="NodeCopy: argument 'src' lies in pageable memory"):
        cuda.NodeCopy(x, host)
    with pytest.raises(ValueError, match="NodeCopy: argument 'dst' is not contiguous; capture the work again"):
        cuda.NodeCopy(x[:, :2], x[:, 2:])
    with pytest.raises(ValueError, match="NodeCopy: argument 'dst' is empty"):
        cuda.NodeCopy(x[:0], x[:0])
    with pytest.raises(TypeError, match="NodeCopy: dst is float32 and src int32"):
        cuda.NodeCopy(x, x.view(np.int32))
    with pytest.raises(TypeError, match="NodeCopy: argument 'src' must be a DeviceArray or a NumPy array"):
        cuda.NodeCopy(x, b"abc")
    with pytest.raises(TypeError, match="NodeFill: argument 'dst' must be a DeviceArray"):
        cuda.NodeFill(pinned, 1)
    with pytest.raises(ValueError, match="NodeFill: argument 'value' must be a value that fits float32"):
        cuda.NodeFill(x, 1e300)
    with pytest.raises(ValueError, match="does not repeat after 32; capture the work again"):
        cuda.NodeFill(x.view(np.float64), 1.1)
    with pytest.raises(ValueError, match="NodeFill: argument 'dst' is empty"):
        cuda.NodeFill(x[:0], 1)
    with pytest.raises(ValueError, match="takes several fills, and a node is one"):
        cuda.NodeFill(x[:, :2, :2], 1)


def test_a_node_takes_work_of_its_own_kind_alone(stream):
    x, y = made(stream, 1), made(stream, 2)
    copying, filling = copy_graph(stream, y, x), fill_graph(stream, y, 3.0)
    with pytest.raises(ValueError, match="argument 'node' is a memset, and argument 'work' is for a memcpy"):
        filling.instantiate().set_node(filling.nodes[0], cuda.NodeCopy(x, y))
    with pytest.raises(ValueError, match="argument 'node' is a memcpy, and argument 'work' is for a memset"):
        copying.instantiate().set_node(copying.nodes[0], cuda.NodeFill(x, 3.0))


def test_a_closed_array_is_refused_when_the_node_is_changed(stream):
    x, y = made(stream, 1), made(stream, 2)
    copying, filling = copy_graph(stream, y, x), fill_graph(stream, y, 3.0)
    copy, fill = cuda.NodeCopy(x, y), cuda.NodeFill(y, 3.0)
    assert repr(copy) == "<NodeCopy of 256 bytes>"
    assert repr(fill) == "<NodeFill of 256 bytes>"
    copies, fills = copying.instantiate(), filling.instantiate()
    y.close()
    with pytest.raises(ValueError, match="argument 1 of a copy: the array is closed"):
        copies.set_node(copying.nodes[0], copy)
    with pytest.raises(ValueError, match="argument 0 of a fill: the array is closed"):
        fills.set_node(filling.nodes[0], fill)
