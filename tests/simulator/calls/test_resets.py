"""What a reset leaves in the simulator itself: no bytes and no objects that nobody uses."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("reset")

BEGIN = """
import gc
import numpy as np
import cudart_py as cuda
from cudart_py.memory import staging
from cudart_py.simulator.calls.events import events
from cudart_py.simulator.calls.graphs.executables import executables
from cudart_py.simulator.calls.modules import modules
from cudart_py.simulator.state import memory
from cudart_py.simulator.state.devices import state
from cudart_py.simulator.state.memory import pools, table
from cudart_py.simulator.state.queue.graphs import graphs, nodes
from cudart_py.simulator.state.streams import streams
"""


def test_nothing_is_left_of_what_was_made_before(python):
    program = """
stream, event, pool, x = cuda.Stream(), cuda.Event(), cuda.MemoryPool(), cuda.zeros((64, 64), np.float32)
module = cuda.compile('extern "C" __global__ void nothing() {} __device__ int variable;')
texture = cuda.Texture(x)
with stream.capture() as graph:
    with cuda.graph_empty(9, stream=stream) as scratch:
        module["nothing"][1, 1, 0, stream]()
        cuda.memset(scratch, 0.0, stream=stream)
executable = graph.instantiate()
executable.launch(stream)
pitched, pinned = cuda.empty_pitched((4, 4)), cuda.pinned_empty(4)
cuda.reset()
gc.collect()
print(*map(len, (streams, events, modules, graphs, nodes, executables, memory.known.starts, memory.live.starts)))
print(state.devices[0].used, len(pools.pools))
"""
    # The device's own pool, whose threshold is set anew, is the one that is there.
    assert python(BEGIN + program, CUDART_PY_DRIVER="simulator").stdout.split("\n")[:2] == ["0 0 0 0 0 0 0 0", "0 1"]


def test_bytes_of_host_memory_go_with_the_last_array_over_them(python):
    program = """
staging._processors = lambda: 4
cuda.to_device(np.zeros(2 << 20))  # large enough to be staged
pinned, managed = cuda.pinned_empty(1 << 20), cuda.managed_empty(1 << 20)
view = pinned[5:]
del pinned
cuda.reset()
gc.collect()
print(len(table._kept))
del managed
gc.collect()
print(len(table._kept))
view[:] = 1
print(view.sum())
del view
gc.collect()
print(len(table._kept))
"""
    printed = python(BEGIN + program, CUDART_PY_DRIVER="simulator").stdout.split()
    assert printed == ["2", "1", f"{(1 << 20) - 5}.0", "0"]


def test_page_locked_memory_that_was_dropped_after_a_fault_leaves_no_bytes(python):
    program = """
module = cuda.compile('extern "C" __global__ void wild() { *(int *)8 = 1; }')
pinned = cuda.pinned_empty(1 << 20)
module["wild"][1, 1]()
try:
    cuda.current_device().synchronize()
except cuda.IllegalAddressError:
    pass
opened = len(memory.space.region._opened)
del pinned
cuda.reset()
print(len(table._kept), len(memory.space.region._opened) < opened)
"""
    assert python(BEGIN + program, CUDART_PY_DRIVER="simulator").stdout.split() == ["0", "True"]


def test_contexts_keep_their_handles_and_references(python):
    program = """
from cudart_py.simulator import driver
context = int(cuda.Device(0).context)
for _ in range(3):
    driver.cuDevicePrimaryCtxRetain(0)
cuda.reset()
for _ in range(3):
    print(driver.cuDevicePrimaryCtxRelease(0)[0].name, end=" ")
print(int(cuda.Device(0).context) == context, cuda.zeros(3).to_host().sum())
print(driver.cuDevicePrimaryCtxRelease(0)[0].name, driver.cuDevicePrimaryCtxRelease(0)[0].name)
"""
    printed = python(BEGIN + program, CUDART_PY_DRIVER="simulator").stdout.split()
    assert printed == [*["CUDA_SUCCESS"] * 3, "True", "0.0", "CUDA_SUCCESS", "CUDA_ERROR_INVALID_CONTEXT"]
