"""Copies and fills that replace the work of a node in an executable graph."""

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda

N = 64


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


def test_a_copy_gets_another_source_and_destination_size_and_dtype(stream):
    x, y, z = made(stream, 1), made(stream, 2), made(stream, 3)
    graph = copy_graph(stream, y, x)
    executable = graph.instantiate()
    assert launched(executable, stream, y).tolist() == [1] * N
    executable.set_node(graph.nodes[0], cuda.graphs.NodeCopy(z, x))
    cuda.memset(y, 0.0, stream=stream)
    assert launched(executable, stream, z).tolist() == [1] * N
    assert not y.to_host(stream=stream).any()
    executable.set_node(graph.nodes[0], cuda.graphs.NodeCopy(x, y))
    assert not launched(executable, stream, x).any()
    executable.set_node(graph.nodes[0], cuda.graphs.NodeCopy(y.view(np.int16)[:6], z.view(np.int16)[:6]))
    assert launched(executable, stream, y).tolist() == [1] * 3 + [0] * (N - 3)


def test_copies_from_and_to_page_locked_memory_get_other_memory(stream):
    first, second = cuda.pinned_empty(N, np.float32), cuda.pinned_empty(N, np.float32)
    first[:], second[:] = 1, 2
    x = made(stream, 0)
    upload = copy_graph(stream, x, first)
    executable = upload.instantiate()
    executable.set_node(upload.nodes[0], cuda.graphs.NodeCopy(x, second))
    assert launched(executable, stream, x).tolist() == [2] * N
    download = copy_graph(stream, first, x)
    executable = download.instantiate()
    executable.set_node(download.nodes[0], cuda.graphs.NodeCopy(second[: N // 2], x[N // 2 :]))
    second[:] = 0
    executable.launch(stream)
    stream.synchronize()
    assert second.tolist() == [2] * (N // 2) + [0] * (N // 2)
    assert first.tolist() == [1] * N


def test_a_fill_gets_another_value_and_array_or_rows_of_the_same_shape(stream):
    x, y = made(stream, 1), made(stream, 2)
    graph = fill_graph(stream, x, 5.0)
    executable = graph.instantiate()
    executable.set_node(graph.nodes[0], cuda.graphs.NodeFill(y, -3.5))
    assert launched(executable, stream, y).tolist() == [-3.5] * N
    assert x.to_host(stream=stream).tolist() == [1] * N
    padded, other = (made(stream, 1, np.uint8, (5, 16))[:, :7] for _ in range(2))
    graph = fill_graph(stream, padded, 9)
    executable = graph.instantiate()
    executable.set_node(graph.nodes[0], cuda.graphs.NodeFill(other, 4))
    assert launched(executable, stream, other).tolist() == [[4] * 7] * 5
    assert padded.to_host(stream=stream).tolist() == [[1] * 7] * 5
    with pytest.raises(cuda.errors.InvalidValueError, match="same rows and pitch: otherwise capture the work again"):
        executable.set_node(graph.nodes[0], cuda.graphs.NodeFill(other[:3], 4))


def test_work_stays_in_its_kind_of_memory_and_of_rows(stream):
    x, y, pinned = made(stream, 1), made(stream, 2), cuda.pinned_empty(N, np.float32)
    padded, packed = made(stream, 1, np.uint8, (5, 16))[:, :7], made(stream, 1, np.uint8, (5, 7))
    array = cuda.textures.CudaArray(N, np.float32)
    with stream.capture() as into_array:
        array.copy_from(x, stream=stream)
    for graph, work, words in (
        (fill_graph(stream, packed, 9), cuda.graphs.NodeFill(padded, 4), "cuGraphExecMemsetNodeSetParams"),
        (copy_graph(stream, padded, packed), cuda.graphs.NodeCopy(x, y), "only if .* both are contiguous"),
        (copy_graph(stream, x, y), cuda.graphs.NodeCopy(x, pinned), "between the same kinds of memory and devices"),
        (into_array, cuda.graphs.NodeCopy(y, x), "between the same kinds of memory and devices"),
    ):
        with pytest.raises(cuda.errors.InvalidValueError, match=words):
            graph.instantiate().set_node(graph.nodes[0], work)


def test_a_node_keeps_its_new_arrays_alone(stream):
    x, y, z = made(stream, 1), made(stream, 2), made(stream, 3)
    with stream.capture() as graph:
        cuda.memcpy(y, x, stream=stream)
        cuda.memset(z, 0.0, stream=stream)
    executable = graph.instantiate()
    copy, fill = graph.nodes
    executable.set_node(copy, cuda.graphs.NodeCopy(z, x))
    y.close()
    executable.set_node(fill, cuda.graphs.NodeFill(x, 7.0))
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
        executable.set_node(graph.nodes[0], cuda.graphs.NodeCopy(x, second[: N // 2].reshape(4, -1)))

    with pytest.raises(ValueError, match="argument 'dst' must have shape"):
        change()
    x = x[: N // 2]
    change()
    gc.collect()
    assert launched(executable, stream, x).tolist() == [6] * (N // 2)


BAD = [
    (lambda x, host: cuda.graphs.NodeCopy(x, host), "NodeCopy: argument 'src' must be page-locked .* not pageable"),
    (lambda x, host: cuda.graphs.NodeCopy(x[:, :2], x[:, 2:]), "NodeCopy: .*'dst' must be contiguous, .*; capture"),
    (lambda x, host: cuda.graphs.NodeCopy(x[:0], x[:0]), "NodeCopy: argument 'dst' must have at least one element"),
    (lambda x, host: cuda.graphs.NodeCopy(x, x.view(np.int32)), "'src' must have dtype float32, like 'dst', not int32"),
    (lambda x, host: cuda.graphs.NodeFill(x, 1e300), "NodeFill: argument 'value' must be a value that fits float32"),
    (
        lambda x, host: cuda.graphs.NodeFill(x.view(np.float64), 1.1),
        "must repeat a pattern of 8, 16 or 32 bits, and 1.1 as float64 does not; capture the work again",
    ),
    (lambda x, host: cuda.graphs.NodeFill(x[:0], 1), "NodeFill: argument 'dst' must have at least one element"),
    (lambda x, host: cuda.graphs.NodeFill(x[:, :2, :2], 1), "'dst' must need only one fill of the driver, not several"),
]


@pytest.mark.parametrize(("make", "words"), BAD)
def test_what_a_node_cannot_do_is_refused_when_it_is_made(stream, make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make(made(stream, 1, np.float32, (4, 4, 4)), np.zeros((4, 4, 4), np.float32))


def test_a_node_takes_work_of_its_own_kind_with_open_arrays_alone(stream):
    x, y = made(stream, 1), made(stream, 2)
    copying, filling = copy_graph(stream, y, x), fill_graph(stream, y, 3.0)
    copy, fill = cuda.graphs.NodeCopy(x, y), cuda.graphs.NodeFill(y, 3.0)
    assert (repr(copy), repr(fill)) == ("<NodeCopy of 256 bytes>", "<NodeFill of 256 bytes>")
    copies, fills = copying.instantiate(), filling.instantiate()
    with pytest.raises(ValueError, match="argument 'node' must be a memcpy, .* not a memset"):
        fills.set_node(filling.nodes[0], copy)
    with pytest.raises(ValueError, match="argument 'node' must be a memset, .* not a memcpy"):
        copies.set_node(copying.nodes[0], fill)
    y.close()
    with pytest.raises(ValueError, match="argument 1 of a copy: the array is closed"):
        copies.set_node(copying.nodes[0], copy)
    with pytest.raises(ValueError, match="argument 0 of a fill: the array is closed"):
        fills.set_node(filling.nodes[0], fill)
