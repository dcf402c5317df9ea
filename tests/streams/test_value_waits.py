"""Waits for values that other streams, threads or the host write only after the wait has begun.

Each program runs alone, because other threads of a process might write the values too. On a GPU, streams may share a
queue, in which a wait can hold up the write that would end it, so these programs need a driver that runs streams apart.
"""

import pytest

pytestmark = pytest.mark.needs("in_process")

BEGIN = """
import signal
import threading
import time
import numpy as np
import cudart_py as cuda
from cudart_py.batches import WaitValue, WriteValue, memory_operations
from cudart_py.graphs import Graph, NodeMemoryOperations

first, second, third = (cuda.Stream(non_blocking=True) for _ in range(3))
flags = cuda.pinned_empty(4, np.uint32)
flags[:] = 0
a, b, c, d = np.split(flags, 4)
order = []


def note(stream, name):
    stream.launch_host_function(lambda: order.append(name))

"""

# `first` waits for `third`, and `second`, which runs in the meantime, waits for `first`.
GRAPH = """
first.wait_value(a, 1)
note(first, "first")
first.write_value(b, 1)
with second.capture() as graph:
    second.wait_value(b, 1)
    note(second, "graph")
graph.instantiate().launch(second)
third.write_value(a, 1)
"""
BATCH = """
first.wait_value(a, 1)
note(first, "first")
first.write_value(b, 1)
memory_operations([WriteValue(c, 1), WaitValue(b, 1), WriteValue(d, 1)], stream=second)
note(second, "batch")
third.write_value(a, 1)
"""
# Two nodes that nothing orders: one waits for `second`, which waits for the other.
BRANCHES = """
graph = Graph()
for operation in {operations}:
    graph.add(NodeMemoryOperations([operation]))
executable = graph.instantiate()
executable.launch(first)
second.wait_value(b, 1)
note(second, "second")
second.write_value(a, 1)
"""
CHILD = """
inner = Graph()
inner.add(NodeMemoryOperations([WaitValue(a, 1)]))
graph = Graph()
graph.add(inner)
graph.add(NodeMemoryOperations([WriteValue(b, 1)]))
executable = graph.instantiate()
executable.launch(first)
second.wait_value(b, 1)
note(second, "second")
second.write_value(a, 1)
"""
# One executable graph, launched twice: the second launch waits for the first to end.
TWICE = """
with first.capture() as graph:
    first.wait_value(a, 1, "eq")
    first.write_value(a, 0)
    note(first, "launch")
executable = graph.instantiate()
for _ in range(2):
    executable.launch(first)
    second.write_value(a, 1)
    second.wait_value(a, 0, "eq")
    note(second, "second")
"""
PROGRAMS = {
    **{f"graph, {stream}": (GRAPH, stream, ["first", "graph"]) for stream in ("first", "second")},
    **{f"batch, {stream}": (BATCH, stream, ["first", "batch"]) for stream in ("first", "second")},
    "wait is added last": (BRANCHES.format(operations="WriteValue(b, 1), WaitValue(a, 1)"), "first", ["second"]),
    "wait is added first": (BRANCHES.format(operations="WaitValue(a, 1), WriteValue(b, 1)"), "first", ["second"]),
    "child graph": (CHILD, "first", ["second"]),
    "twice": (TWICE, "first", ["launch", "second"] * 2),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_work_of_another_stream_ends_a_wait_in_a_graph_or_a_batch(python, case):
    program, waiting, expected = PROGRAMS[case]
    end = f"{waiting}.synchronize()\ncuda.current_device().synchronize()\nprint(order)"
    assert python(BEGIN + program + end).stdout == f"{expected}\n"


@pytest.mark.parametrize("query", ["first.done", "first.record().done", "cuda.current_device().synchronize()"])
def test_other_streams_run_while_a_query_finds_a_wait(python, query):
    program = """
first.wait_value(a, 1)
note(first, "first")
note(second, "second")
second.write_value(a, 1)
for _ in range(20):
    {query}
print(order)
"""
    assert python(BEGIN + program.format(query=query)).stdout == "['second', 'first']\n"


def test_another_thread_may_queue_the_work_that_ends_a_wait(python):
    """The memory is on the device, so that only the device can write it."""
    program = """
flag = cuda.empty_pitched((1, 1), np.uint32)
cuda.memset(flag, 0)
cuda.current_device().synchronize()
first.wait_value(flag, 1)
note(first, "first")


def write():
    time.sleep(0.1)
    note(second, "second")
    second.write_value(flag, 1)
    second.synchronize()


thread = threading.Thread(target=write)
thread.start()
first.synchronize()
thread.join()
print(order)
"""
    assert python(BEGIN + program).stdout == "['second', 'first']\n"


def test_memory_that_is_freed_during_a_wait_is_a_fault(python):
    program = """
flag = cuda.empty_pitched((1, 1), np.uint32)
cuda.memset(flag, 0)
cuda.current_device().synchronize()
first.wait_value(flag, 1)
print(first.done)
from cudart_py.driver.calls import api
api.cuMemFreeAsync(flag.pointer, second.native)
try:
    first.synchronize()
except cuda.CudaError as error:
    print(type(error).__name__, "was freed" in str(error))
"""
    assert python(BEGIN + program).stdout == "False\nIllegalAddressError True\n"


HANDLERS = {"ctrl-c": "", "handler": "signal.signal(signal.SIGUSR1, lambda *_: None)"}


@pytest.mark.parametrize("handler", HANDLERS)
def test_an_interrupted_wait_goes_on_later(python, handler):
    program = """
import os
signal.signal(signal.SIGINT, signal.default_int_handler)
{handler}
first.wait_value(a, 1)
note(first, "first")
try:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()  # a slow machine may be interrupted here
    first.synchronize()
except KeyboardInterrupt:
    print("interrupted", order)
a[0] = 1
first.synchronize()
print(order)
"""
    found = python(BEGIN + program.format(handler=HANDLERS[handler])).stdout
    assert found == "interrupted []\n['first']\n"


def test_a_wait_that_other_threads_leave_alone_is_reported_after_the_time_limit(python):
    program = """
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
first.wait_value(a, 1)
try:
    first.synchronize()
except cuda.errors.KernelTimeoutError as error:
    print(error)
stop.set()
"""
    found = python(BEGIN + program, CUDART_PY_SIMULATOR_SECONDS="1").stdout
    assert "has not ended within 1 seconds" in found
    assert "CUDART_PY_SIMULATOR_SECONDS sets the limit" in found


@pytest.mark.needs("reset")
def test_a_reset_drops_work_that_waits(python):
    program = """
first.wait_value(a, 1)
note(first, "first")
print(first.done)
cuda.reset()
cuda.current_device().synchronize()
with cuda.Stream() as later:
    flag = cuda.pinned_empty(1, np.uint32)
    flag[0] = 0
    later.write_value(flag, 3)
    later.synchronize()
print(order, flag)
"""
    assert python(BEGIN + program).stdout == "False\n[] [3]\n"


def test_a_host_that_waits_without_a_call_is_not_told_of_a_deadlock(python):
    """On the simulator, `run_queued` runs what is queued while the host of a C++ program waits without a call."""
    program = """
from cudart_py.driver.calls import api
first.wait_value(a, 1)
note(first, "first")
note(second, "second")
print(api.run_queued(), api.run_queued(), order)
a[0] = 1
print(api.run_queued(), order)
"""
    assert python(BEGIN + program).stdout == "True False ['second']\nTrue ['second', 'first']\n"


# Streams that wait for counters, each of which one stream increases. So it does not matter in which order the streams
# advance: the same ones end.
RANDOM = """
import random
import re

STREAMS, FLAGS = 4, 3


def random_program(generator):
    written = [0] * FLAGS
    program = [[] for _ in range(STREAMS)]
    for _ in range(generator.randrange(4, 16)):
        flag = generator.randrange(FLAGS)
        if generator.random() < 0.5:
            written[flag] += 1
            program[flag].append(("write", flag, written[flag]))
        else:
            value = generator.randrange(1, written[flag] + 2)
            program[generator.randrange(STREAMS)].append(("wait", flag, value))
    return program


def expected(program):
    values, places = [0] * FLAGS, [0] * STREAMS
    progress = True
    while progress:
        progress = False
        for stream, steps in enumerate(program):
            while places[stream] < len(steps):
                kind, flag, value = steps[places[stream]]
                if kind == "wait" and values[flag] < value:
                    break
                if kind == "write":
                    values[flag] = value
                places[stream] += 1
                progress = True
    return [place == len(steps) for place, steps in zip(places, program)]


def queue(program, streams, flags, generator):
    # The parts of a stream's steps that are queued alone, in a batch or in a graph.
    waiting = [[(stream, step) for step in steps] for stream, steps in enumerate(program)]
    while any(waiting):
        steps = generator.choice([each for each in waiting if each])
        count = generator.randrange(1, len(steps) + 1)
        stream = streams[steps[0][0]]
        operations = [
            (WriteValue if kind == "write" else WaitValue)(flags[flag : flag + 1], value)
            for _, (kind, flag, value) in steps[:count]
        ]
        del steps[:count]
        how = generator.choice(["alone", "batch", "graph", "capture"])
        if how == "graph":
            graph, before = Graph(), ()
            for operation in operations:
                before = graph.add(NodeMemoryOperations([operation]), after=before)
            graph.instantiate().launch(stream)
        elif how == "capture":
            with stream.capture() as graph:
                memory_operations(operations, stream=stream)
            graph.instantiate().launch(stream)
        elif how == "batch":
            memory_operations(operations, stream=stream)
        else:
            for operation in operations:
                memory_operations([operation], stream=stream)


def ends(stream):
    try:
        stream.synchronize()
    except cuda.errors.KernelTimeoutError as error:
        assert re.search("deadlock: wait for the 32-bit value at .* never end", str(error)), error
        return False
    return True


stuck, kept = 0, []
for seed in {seeds}:
    generator = random.Random(seed)
    program = random_program(generator)
    ended = expected(program)
    for asked in generator.sample(range(STREAMS), 2):  # a deadlock ends the context, so one stream is asked at a time
        streams = [cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
        flags = cuda.pinned_empty(FLAGS, np.uint32)
        kept.append((streams, flags))  # freeing them would wait for streams that never end
        flags[:] = 0
        queue(program, streams, flags, generator)
        for _ in range(generator.randrange(3)):
            streams[generator.randrange(STREAMS)].done
        assert ends(streams[asked]) == ended[asked], (seed, asked, program)
        stuck += not ended[asked]
        if not ended[asked]:
            cuda.reset()
print(stuck)
"""


@pytest.mark.needs("reset")
@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_random_streams_end_or_are_reported_as_deadlocks(python, first):
    seeds = range(first, first + (1000 if first else 40))
    # A reset examines all objects of the process, so this one has only the imports that it needs.
    stuck = int(python(BEGIN + RANDOM.replace("{seeds}", repr(seeds)), own_imports=True).stdout)
    assert len(seeds) / 4 < stuck < len(seeds) * 7 / 4
