"""Streams that write integers to memory, and wait for them, alone and in batches."""

import gc
import threading
import time

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import batches

KERNELS = """
extern "C" __global__ void add(int *value, int by) { *value = *value * 10 + by; }
extern "C" __global__ void signal(int *data, unsigned *flag)
{
    *data = 7;
    __threadfence_system();
    *static_cast<volatile unsigned *>(flag) = 1;
}
extern "C" __global__ void twice(int *data, int *out) { *out = *data * 2; }
"""
DTYPES = [np.int32, np.uint32, np.int64, np.uint64]


@pytest.fixture
def streams(device):
    gc.collect()  # a collection of pinned memory waits for the device, which may wait for this thread
    with cuda.Stream(non_blocking=True) as first, cuda.Stream(non_blocking=True) as second:
        yield first, second


def still_waits(stream):
    """Return whether a stream has not ended after some milliseconds."""
    time.sleep(0.01)
    return not stream.done


def pinned(value, dtype=np.uint32, count=1):
    result = cuda.pinned_empty(count, dtype, mapped=True)
    result[:] = value
    return result


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_written_to_any_array_of_integers(device, rng, dtype, streams):
    limits = np.iinfo(dtype)
    values = [int(limits.min), int(limits.max), int(rng.integers(1 << 20))]
    array = pinned(99, dtype, 5)
    for place, value in enumerate(values, 1):
        streams[0].write_value(array[place : place + 1], value)
    streams[0].synchronize()
    assert array.tolist() == [99, *values, 99]


CONDITIONS = {
    ("geq", 5, 5): True, ("geq", 4, 5): False, ("geq", 6, 5): True, ("geq", 2, 2**32 - 3): True,
    ("geq", 2**32 - 3, 2): False, ("eq", 5, 5): True, ("eq", 6, 5): False, ("and", 6, 2): True, ("and", 5, 2): False,
    ("nor", 2**32 - 2, 0): True, ("nor", 2**32 - 2, 1): False, ("nor", 0, 0): True,
}  # fmt: skip  # a table: the condition, the value in memory and the argument


@pytest.mark.parametrize(("condition", "there", "value"), CONDITIONS, ids=str)
@pytest.mark.parametrize("width", [32, 64])
def test_a_stream_waits_until_the_condition_is_met(device, streams, condition, there, value, width):
    dtype = np.uint32 if width == 32 else np.uint64
    met = CONDITIONS[condition, there, value]
    if width == 64:  # the same relations between numbers of 64 bits
        there, value = (number - 2**32 + 2**64 if number > 2**31 else number for number in (there, value))
    flag = pinned(there, dtype)
    streams[0].wait_value(flag, value, condition)
    if not met:
        assert still_waits(streams[0])
        # Each of these values ends the wait.
        flag[0] = {"geq": value, "eq": value, "and": value, "nor": 0}[condition]
    streams[0].synchronize()
    assert streams[0].done


def test_writes_and_waits_order_streams_without_events(device, streams, kernels):
    first, second = streams
    value, flags = cuda.to_device(np.zeros(1, np.int32)), pinned(0, count=2)
    device.synchronize()
    # What writes a value is queued before the wait for it: the first launch of a kernel may wait for an idle GPU.
    kernels["add"][1, 1, 0, first](value, 1)
    first.write_value(flags[:1], 1)
    second.wait_value(flags[:1], 1, "eq")
    kernels["add"][1, 1, 0, second](value, 2)
    second.write_value(flags[1:], 1)
    first.wait_value(flags[1:], 1, "eq")
    kernels["add"][1, 1, 0, first](value, 3)
    first.synchronize()
    assert value.to_host().tolist() == [123]


def test_a_kernel_can_end_a_wait(device, streams, kernels):
    first, second = streams
    flag, data, out = pinned(0), cuda.zeros(1, np.int32), cuda.zeros(1, np.int32)
    device.synchronize()
    kernels["signal"][1, 1, 0, first](data, flag)
    second.wait_value(flag, 1)
    kernels["twice"][1, 1, 0, second](data, out)
    second.synchronize()
    assert out.to_host().tolist() == [14]


def test_the_host_can_end_a_wait_before_and_while_it_waits(device, streams, kernels):
    value, flag = cuda.zeros(1, np.int32), pinned(0)
    device.synchronize()
    streams[0].wait_value(flag, 1)
    kernels["add"][1, 1, 0, streams[0]](value, 5)
    assert still_waits(streams[0])
    flag[0] = 1
    streams[0].synchronize()
    assert value.to_host().tolist() == [5]
    streams[0].wait_value(flag, 2)
    thread = threading.Timer(0.05, lambda: flag.__setitem__(0, 2))
    thread.start()
    streams[0].synchronize()
    thread.join()
    assert streams[0].done


def test_a_batch_runs_in_order(device, streams, kernels):
    first, second = streams
    flags, value = pinned(0, np.uint64, 4), cuda.zeros(1, np.int32)
    device.synchronize()
    there, back, wide = flags[:1], flags[1:2], flags[2:3]
    first.write_value(there, 1)
    batches.memory_operations([batches.WaitValue(there, 1), batches.WriteValue(there, 2)], stream=second)
    kernels["add"][1, 1, 0, second](value, 1)
    batches.memory_operations([batches.WriteValue(back, 1)], stream=second)
    batches.memory_operations([batches.WaitValue(back, 1, "eq"), batches.WriteValue(wide, 2**40)], stream=first)
    kernels["add"][1, 1, 0, first](value, 2)
    first.synchronize()
    assert value.to_host().tolist() == [12]
    assert flags.tolist() == [2, 1, 2**40, 0]
    batches.memory_operations([], stream=first)
    assert repr(batches.WaitValue(wide, 3, "eq")) == f"<WaitValue eq 3 at {wide.ctypes.data:#x}>"


def test_operations_in_captures_become_nodes_that_keep_their_memory(device, streams):
    first, _ = streams
    flags = pinned(0, count=3)
    with first.capture() as graph:
        first.write_value(flags[:1], 4)
        first.wait_value(flags[:1], 4, "eq")
        batches.memory_operations([batches.WriteValue(flags[1:2], 5), batches.WriteValue(flags[2:], 6)], stream=first)
    assert [node.kind for node in graph.nodes] == ["batch_mem_op"] * 3
    executable = graph.instantiate()
    assert not flags.any()
    executable.launch(first)
    first.synchronize()
    assert flags.tolist() == [4, 5, 6]


def test_nodes_of_memory_operations_are_added_and_changed(device, streams, kernels):
    first, _ = streams
    flags, value = pinned(0, count=2), cuda.zeros(1, np.int32)
    device.synchronize()

    def work(number):
        return cuda.graphs.NodeMemoryOperations(
            [batches.WriteValue(flags[:1], number), batches.WaitValue(flags[:1], number, "eq")]
        )

    with cuda.graphs.Graph() as graph:
        node = graph.add(work(7))
        graph.add(kernels["add"][1, 1].bind(value, 5), after=node)
        assert node.kind == "batch_mem_op"
        executable = graph.instantiate()
        for change, written in (
            (lambda: None, 7),
            (lambda: executable.set_node(node, work(8)), 8),
        ):
            change()
            executable.launch(first)
            first.synchronize()
            assert flags.tolist() == [written, 0]
        graph.set_node(node, work(9))
        graph.instantiate().launch(first)
        first.synchronize()
        assert flags.tolist() == [9, 0]
        assert value.to_host(stream=first).tolist() == [555]
        other = cuda.zeros(1, np.uint32)
        closed = cuda.graphs.NodeMemoryOperations([batches.WriteValue(other, 1)])
        other.close()
        with pytest.raises(ValueError, match="closed"):
            graph.add(closed)
    with pytest.raises(ValueError, match="^NodeMemoryOperations: .* must have at least one operation"):
        cuda.graphs.NodeMemoryOperations([])
    with pytest.raises(TypeError, match="^NodeMemoryOperations: argument 'operations' must be a list of"):
        cuda.graphs.NodeMemoryOperations(5)


class _Elsewhere:
    dtype = np.dtype(np.uint32)


BAD = {
    "type": (lambda w: (5, 1), TypeError, "'array' must be a DeviceArray or a pinned NumPy array, not the int 5"),
    "class": (lambda w: (_Elsewhere(), 1), TypeError, "'array' must be a DeviceArray or a pinned NumPy array"),
    "dtype": (lambda w: (w.view(np.float32)[:1], 1), TypeError, "'array' must have dtype int32, uint32, int64"),
    "two elements": (lambda w: (w[:2], 1), ValueError, r"'array' must have exactly one element, not the shape \(2,\)"),
    "none": (lambda w: (w[:0], 1), ValueError, r"'array' must have exactly one element"),
    "misaligned": (
        lambda w: (cuda.DeviceArray.borrow(w.pointer + 2, 1, np.uint32), 1), ValueError, "be at a multiple of 4 bytes",
    ),
    "too large": (lambda w: (w[:1], 2**32), ValueError, f"'value' must be an int from 0 to {2**32 - 1}, not"),
    "negative": (lambda w: (w[:1], -1), ValueError, f"'value' must be an int from 0 to {2**32 - 1}, not"),
    "not an int": (lambda w: (w[:1], 1.0), TypeError, "'value' must be an int, not the float"),
}  # fmt: skip  # a table


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named_and_nothing_is_queued(device, streams, case):
    words, (make, error, text) = cuda.zeros(8, np.uint32), BAD[case]
    array, value = make(words)
    for call, use in {
        "Stream.write_value": streams[0].write_value,
        "Stream.wait_value": streams[0].wait_value,
        "WriteValue": batches.WriteValue,
        "WaitValue": batches.WaitValue,
    }.items():
        with pytest.raises(error, match=f"^{call}: argument {text}|^{call}: argument 'array' must {text}"):
            use(array, value)
    assert not words.to_host().any()


def test_other_bad_arguments_of_waits_and_batches(device, streams):
    flag, in_pool, managed = pinned(0), cuda.zeros(1, np.uint32), cuda.managed_empty(1, np.uint32)
    with pytest.raises(ValueError, match="^Stream.wait_value: argument 'condition' must be one of 'geq', 'eq', 'and'"):
        streams[0].wait_value(flag, 1, "ge")
    for elsewhere in (np.zeros(1, np.uint32), in_pool, managed):
        with pytest.raises(cuda.CudaError, match="must be pinned, or device memory") as raised:
            streams[0].write_value(elsewhere, 1)
        assert raised.value.call == "cuStreamWriteValue32"
    one = batches.WriteValue(flag, 1)
    for bad in (5, one, [5], [one, None], "ab"):
        with pytest.raises(TypeError, match="^batches.memory_operations: argument 'operations' must be a list of"):
            batches.memory_operations(bad, stream=streams[0])
    with pytest.raises(ValueError, match="must have at most 255 operations, not 256"):
        batches.memory_operations([one] * 256, stream=streams[0])
    batches.memory_operations([one] * 255, stream=streams[0])
    streams[0].synchronize()
    assert flag.tolist() == [1]
    one = batches.WriteValue(in_pool, 1)
    in_pool.close()
    with pytest.raises(ValueError, match="'operations' must be operations on open arrays, not a closed DeviceArray"):
        batches.memory_operations([one], stream=streams[0])
    for call in (streams[0].write_value, streams[0].wait_value):
        with pytest.raises(ValueError, match="'array' must be open, not a closed DeviceArray"):
            call(in_pool, 1)


def test_memory_that_drivers_refuse_is_explained_in_batches(device, streams):
    refused = [batches.WriteValue(cuda.zeros(1, np.uint32), 1)]
    with pytest.raises(cuda.errors.InvalidValueError, match="The memory must be pinned") as raised:
        batches.memory_operations(refused, stream=streams[0])
    assert raised.value.call == "cuStreamBatchMemOp"


@pytest.mark.needs("in_process")  # a GPU's driver may refuse the memory only when the graph is launched
def test_memory_that_drivers_refuse_is_explained_in_nodes(device, streams):
    flag = pinned(0)
    bad = cuda.graphs.NodeMemoryOperations([batches.WriteValue(cuda.zeros(1, np.uint32), 1)])
    with cuda.graphs.Graph() as graph:
        node = graph.add(cuda.graphs.NodeMemoryOperations([batches.WriteValue(flag, 1)]))
        executable = graph.instantiate()
        for call, attempt in {
            "cuGraphAddBatchMemOpNode": lambda: graph.add(bad),
            "cuGraphBatchMemOpNodeSetParams": lambda: graph.set_node(node, bad),
            "cuGraphExecBatchMemOpNodeSetParams": lambda: executable.set_node(node, bad),
        }.items():
            with pytest.raises(cuda.errors.InvalidValueError, match="The memory must be pinned") as raised:
                attempt()
            assert raised.value.call == call
        executable.launch(streams[0])
        streams[0].synchronize()
        assert flag.tolist() == [1]


def test_pinned_memory_that_was_closed_is_refused_in_calls_and_launches(device, streams):
    flags = pinned(0, count=2)
    first = flags[:1]
    with streams[0].capture() as graph:
        streams[0].write_value(first, 1)
    executable, operation = graph.instantiate(), batches.WriteValue(first, 1)
    flags.base.close()
    for call in (streams[0].write_value, streams[0].wait_value, batches.WriteValue):
        with pytest.raises(ValueError, match="argument 'array' must be open"):
            call(first, 1)
    with pytest.raises(ValueError, match="'operations' must be operations on open arrays"):
        batches.memory_operations([operation], stream=streams[0])
    with pytest.raises(ValueError, match="a memory operation: the page-locked or managed memory of an argument is cl"):
        executable.launch(streams[0])
